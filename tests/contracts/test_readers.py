"""The contract of every reader, on the sample corpus and on logs of the other formats."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from msgspec import to_builtins
from tests.client_logs import CopilotLog, GeminiLog, gemini_call, write_lines
from tests.opencode_log import OpencodeLog, step, text, tool

from journeyman import Journeyman
from journeyman.logs.chat import read_message
from journeyman.logs.line_reader import FRAGMENT_MESSAGES
from journeyman.logs.log_file import LogFile
from journeyman.logs.registry import Reader, Readers
from journeyman.records import (
    Fragment,
    Mark,
    Message,
    Session,
    SessionId,
    Skip,
    Usage,
    join_calls,
)
from journeyman.records.fragment import ExportedSession
from journeyman.testing import Corpus

READERS = Readers(plugins=[])


def a_chat(turns: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for turn in range(turns):
        function = {"name": "shell", "arguments": '{"command": "ls"}'}
        messages += [
            {"role": "user", "content": f"question {turn}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"answer {turn}"},
        ]
    return messages


def journeyman_export() -> object:
    messages = [m for n, raw in enumerate(a_chat(200)) for m in read_message(raw, str(n), n)]
    session = Session(id=SessionId("20261001_100000_abcdef"), source="mine")
    usage = Usage(key="u", model="m", input_tokens=5, cost_usd=0.5)
    return to_builtins(ExportedSession(session=session, messages=messages, usage=[usage]))


def an_opencode_database(path: Path, turns: int) -> Path:
    log = OpencodeLog(path)
    log.session()
    for turn in range(turns):
        call = tool(f"c{turn}", "bash", {"command": "ls"}, output="x", metadata={"exit": 0})
        log.message("user", text(f"question {turn}"))
        log.message("assistant", text("Looking."), call, step())
    log.connection.close()
    return path


def a_copilot_log(turns: int) -> CopilotLog:
    log = CopilotLog()
    log.start()
    for turn in range(turns):
        log.prompt(f"question {turn}")
        log.usage()
        log.answer("Looking.", (f"c{turn}", "bash", {"command": "ls"}))
        log.result(f"c{turn}", "x", shellExecution={"exitCode": 0})
    return log


def a_gemini_log(turns: int) -> GeminiLog:
    log = GeminiLog()
    for turn in range(turns):
        log.prompt(f"question {turn}")
        log.answer("Looking.", gemini_call(f"c{turn}", "read_file", {}, output="x"))
    return log


@pytest.fixture(scope="module")
def logs(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """Logs of every kind, each with the name of its reader."""
    folder = tmp_path_factory.mktemp("logs")
    found = dict.fromkeys(corpus.logs("claude_code"), "claude_code")
    found |= dict.fromkeys(corpus.logs("codex"), "codex")
    found |= dict.fromkeys(corpus.logs("hermes"), "hermes")
    found |= dict.fromkeys(corpus.logs("chat"), "openai")

    def write(name: str, value: object, reader: str) -> None:
        found[folder / name] = reader
        (folder / name).write_text(json.dumps(value))

    write("chat.json", a_chat(200), "openai")
    write("one.json", {"messages": a_chat(200)}, "openai")
    write("journeyman.jsonl", journeyman_export(), "journeyman")
    found[an_opencode_database(folder / "opencode.db", 200)] = "opencode"
    found[write_lines(folder / "copilot" / "events.jsonl", a_copilot_log(200))] = "copilot"
    found[write_lines(folder / "session-gemini.jsonl", a_gemini_log(200))] = "gemini"
    lines = [json.dumps(message) for message in a_chat(300)]
    found[folder / "messages.jsonl"] = "openai"
    (folder / "messages.jsonl").write_text("\n".join(lines) + "\n")
    return found


def read(reader: Reader, log: Path) -> list[Fragment | Skip | Mark]:
    return list(reader.read(LogFile(log), None))


def test_each_log_is_recognised_by_its_reader_alone(logs: dict[Path, str]) -> None:
    for log, name in logs.items():
        assert READERS.reader_for(LogFile(log)).name == name, log
        knowing = {reader.name for reader in READERS.all if reader.recognises(LogFile(log))}
        assert knowing - {"openai"} == {name} - {"openai"}, log  # the openai reader is tried last


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    for name, content in (
        ("chat.json", json.dumps(a_chat(2))),
        ("chat.jsonl", "\n".join(json.dumps(one) for one in a_chat(2)) + "\n"),
    ):
        file = tmp_path / name
        file.write_text(content, encoding="utf-8-sig")
        reader = READERS.reader_for(LogFile(file))
        events = read(reader, file)
        assert not [one for one in events if isinstance(one, Skip)]
        assert sum(len(one.messages) for one in events if isinstance(one, Fragment)) == 6


class TestReading:
    def test_reading_is_repeatable_and_changes_nothing(self, logs: dict[Path, str]) -> None:
        for log, name in logs.items():
            before = log.read_bytes(), log.stat().st_mtime_ns
            reader = READERS.named(name)
            assert read(reader, log) == read(reader, log), log
            assert (log.read_bytes(), log.stat().st_mtime_ns) == before

    def test_reading_ends_with_a_mark_and_marks_never_split_a_session(
        self, logs: dict[Path, str]
    ) -> None:
        for log, name in logs.items():
            events = read(READERS.named(name), log)
            assert isinstance(events[-1], Mark), log
            done: set[str] = set()
            now: set[str] = set()
            for event in events:
                if isinstance(event, Mark):
                    done |= now
                    now = set()
                elif isinstance(event, Fragment):
                    assert event.session.id not in done, f"{log}: a mark inside a session"
                    now.add(event.session.id)

    def test_fragments_are_small(self, logs: dict[Path, str]) -> None:
        for log, name in logs.items():
            for event in read(READERS.named(name), log):
                if isinstance(event, Fragment):
                    assert len(event.messages) <= FRAGMENT_MESSAGES + 20, log

    def test_every_message_has_a_unique_key_and_position(self, logs: dict[Path, str]) -> None:
        for log, name in logs.items():
            sessions: dict[str, list[Message]] = defaultdict(list)
            for event in read(READERS.named(name), log):
                if isinstance(event, Fragment):
                    sessions[event.session.id] += event.messages
            for messages in sessions.values():
                positions = [message.position for message in messages]
                assert positions == sorted(set(positions)), log
                assert len({message.key for message in messages}) == len(messages), log

    def test_every_call_is_joined_with_its_result(self, logs: dict[Path, str]) -> None:
        for log, name in logs.items():
            sessions: dict[str, list[Message]] = defaultdict(list)
            for event in read(READERS.named(name), log):
                if isinstance(event, Fragment):
                    sessions[event.session.id] += event.messages
            for messages in sessions.values():
                results = [message for message in messages if message.role == "tool"]
                answered = [call for call in join_calls(messages) if call.result is not None]
                assert len(answered) == len(results), log


def a_codex_log() -> list[object]:
    """A command that a hook rewrote, one that runs in the background, and one that was reverted."""

    def line(kind: str, **payload: object) -> dict[str, object]:
        return {"timestamp": "2026-01-01T00:00:01Z", "type": kind, "payload": payload}

    def call(id_: str, command: str) -> dict[str, object]:
        fields = {"call_id": id_, "name": "exec_command", "arguments": json.dumps({"cmd": command})}
        return line("response_item", type="function_call", **fields)

    def result(id_: str, output: str) -> dict[str, object]:
        return line("response_item", type="function_call_output", call_id=id_, output=output)

    def completed(id_: str, command: str) -> dict[str, object]:
        ran = {"command": ["/bin/sh", "-c", command], "exit_code": 0, "status": "completed"}
        item = {"type": "CommandExecution", "id": id_, "aggregated_output": "done", **ran}
        return line("event_msg", type="item_completed", item=item)

    prompt: dict[str, object] = {"type": "message", "role": "user", "content": "build it"}
    return [
        line("session_meta", id="s1", cwd="/work/app", cli_version="0.169.0"),
        line("response_item", **prompt),
        *(call("c1", "rm -r x"), completed("c1", "trash x"), result("c1", "Exit code: 0")),
        *(call("c2", "make"), result("c2", "Wall time: 1\nProcess running with session ID 7\n")),
        *(line("event_msg", type="task_complete"), completed("c2", "make -j2")),
        *(line("response_item", **prompt), call("c3", "ls")),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        completed("c3", "ls -l"),
    ]


def a_copilot_log_with_errors() -> CopilotLog:
    log = a_copilot_log(1)
    log.event("session.error", {})
    log.event("session.shutdown", {"shutdownType": "routine"})
    log.prompt("again")
    log.event("session.shutdown", {"shutdownType": "routine"})
    log.prompt("and again")
    return log


@pytest.mark.parametrize(
    "log",
    [a_codex_log(), a_copilot_log_with_errors()],
    ids=["codex", "copilot"],
)
def test_a_log_read_line_by_line_is_stored_like_one_read_whole(
    tmp_path: Path, log: list[object]
) -> None:
    """After every line, the store is as if the log had been read whole."""
    path = tmp_path / "log.jsonl"
    with (
        Journeyman(home=tmp_path / "parts", environ={}) as parts,
        Journeyman(home=tmp_path / "whole", environ={}) as whole,
    ):
        for end in range(1, len(log) + 1):
            write_lines(path, log[:end])
            stored = []
            for journeyman, reread in ((parts, False), (whole, True)):
                journeyman.import_logs([path], reread=reread)
                overviews = journeyman.sessions.list()
                ids = [overview.session.id for overview in overviews]
                messages = [list(journeyman.sessions.messages(id_)) for id_ in ids]
                stored.append((overviews, messages))
            assert stored[0] == stored[1], f"after line {end}"
