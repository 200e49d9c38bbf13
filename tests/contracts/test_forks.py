"""Forks of clients that repeat the messages of the session that they came from."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.client_logs import write_lines
from tests.opencode_log import OpencodeLog, step, text, tool

from journeyman import Journeyman

PARENT = "01a1eb8c-aaaa-74e3-878a-a8f0d448d622"
FORK = "01a1eb8c-bbbb-74e3-878a-a8f0d448d622"


def write_opencode(folder: Path) -> None:
    log = OpencodeLog(folder / "opencode.db")
    log.session(PARENT)
    call = tool("c1", "bash", {"command": "ls"}, output="a", metadata={"exit": 0})
    times = [log.next_ms(), log.next_ms()]
    for session in (PARENT, FORK):
        if session == FORK:
            log.session(FORK, title="A title (fork #1)")
        log.message("user", text("Look"), session=session, at=times[0])
        log.message("assistant", call, step(), session=session, at=times[1])
    log.message("user", text("Now differently"), session=FORK)
    log.message("assistant", text("Yes."), step(), session=FORK)
    log.connection.close()


def write_codex(folder: Path) -> None:
    """Older versions copy the lines of the parent, its header included."""

    def line(second: int, kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": f"2026-01-01T00:00:{second:02d}Z", "type": kind, "payload": payload}

    def said(second: int, role: str, words: str) -> dict[str, object]:
        return line(second, "response_item", type="message", role=role, content=words)

    def used(second: int, answers: int) -> dict[str, object]:
        last = {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 50}
        total = {name: count * answers for name, count in last.items()}
        info = {"last_token_usage": last, "total_token_usage": total}
        return line(second, "event_msg", type="token_count", info=info)

    started = {"cwd": "/work/app", "cli_version": "0.50.0"}
    call = {"call_id": "c1", "name": "shell", "arguments": json.dumps({"command": ["ls"]})}
    parent = [
        line(0, "session_meta", id=PARENT, timestamp="2026-01-01T00:00:00Z", **started),
        said(1, "user", "Look"),
        line(2, "response_item", type="function_call", **call),
        line(3, "response_item", type="function_call_output", call_id="c1", output="a"),
        used(4, 1),
    ]
    header = {"timestamp": "2026-01-01T00:00:10Z", "forked_from_id": PARENT, **started}
    own = [said(11, "user", "Now differently"), said(12, "assistant", "Yes."), used(13, 2)]
    fork = [line(10, "session_meta", id=FORK, **header), *parent, *own]
    write_lines(folder / f"rollout-2026-01-01T00-00-00-{PARENT}.jsonl", parent)
    write_lines(folder / f"rollout-2026-01-01T00-00-10-{FORK}.jsonl", fork)


@pytest.mark.parametrize("write", [write_opencode, write_codex])
def test_copies_count_once_and_again_without_their_original(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder)
    with Journeyman(home=tmp_path / "home", environ={}) as journeyman:
        journeyman.import_logs([folder])
        counted = {
            one.session.id: (one.messages, one.calls, one.answered, one.tokens.total)
            for one in journeyman.sessions.list()
        }
        (parent_tokens, fork_tokens) = (counted[id_][3] for id_ in (PARENT, FORK))
        assert counted[PARENT][:3] == (3, 1, 1)
        assert counted[FORK][:3] == (2, 0, 0)
        assert parent_tokens == fork_tokens, "each paid for one answer"
        assert len(list(journeyman.sessions.messages(FORK))) == 5, "the conversation is complete"
        journeyman.sessions.delete(PARENT)
        (fork,) = journeyman.sessions.list()
        assert (fork.messages, fork.calls, fork.answered) == (5, 1, 1)
        assert fork.tokens.total == parent_tokens + fork_tokens
