"""Copies in real formats, from the log to what is learned: a pattern's or a rate's count never
contains a copy.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.program import Command
from tests.samples.claude_code_log import encode_lines, fork_lines
from tests.turns import learned

from journeyman import Journeyman
from journeyman.testing import Corpus

FORK = "0f0c5e1e-0000-4000-8000-000000000001"
AT = 4_000_000_000.0


@pytest.fixture
def parent(corpus: Corpus) -> Path:
    """A transcript with many calls."""
    logs = (corpus.folder / "claude").rglob("*.jsonl")
    return max(
        (log for log in logs if "agent-" not in log.name), key=lambda log: log.stat().st_size
    )


def write_fork(parent: Path, folder: Path) -> Path:
    """Write a fork of a transcript that only says goodbye."""
    lines = [json.loads(line) for line in parent.read_bytes().splitlines()]
    lines = fork_lines(lines, FORK, AT)
    last = lines[-1]
    own: dict[str, Any] = {
        **{name: last[name] for name in ("cwd", "version", "gitBranch", "isSidechain")},
        "type": "user",
        "uuid": FORK.replace("0001", "0002"),
        "parentUuid": last["uuid"],
        "sessionId": FORK,
        "timestamp": "2096-10-02T07:06:50Z",
        "message": {"role": "user", "content": "Thank you, goodbye"},
    }
    path = folder / f"{FORK}.jsonl"
    path.write_bytes(encode_lines([*lines, own]))
    return path


def experience(home: Path, *logs: Path) -> dict[str, Any]:
    """Import logs one after the other, learn, and return everything that counts."""
    with Journeyman(home=home, environ={}) as journeyman:
        for log in logs:
            journeyman.import_logs([log])
        journeyman.learn()
        judged = journeyman.judged()
        (totals,) = journeyman.sessions.totals()
        return {
            "calls": totals.calls,
            "tokens": totals.tokens,
            "verdicts": sum(len(session.calls) for session in judged),
            "requests": sorted(one.request for one in learned(journeyman)),
            "playbook": journeyman.playbook(judged[0].project),
            "usage": journeyman.accounting.report().total,
        }


def test_a_fork_adds_only_what_is_new(parent: Path, tmp_path: Path) -> None:
    fork = write_fork(parent, tmp_path)
    alone = experience(tmp_path / "alone", parent)
    assert alone["requests"]
    assert experience(tmp_path / "after", parent, fork) == alone
    assert experience(tmp_path / "before", fork, parent) == alone
    again = tmp_path / "again"
    experience(again, fork)
    assert experience(again, parent, fork) == alone


def test_a_fork_as_a_person_sees_it(parent: Path, tmp_path: Path, command: Command) -> None:
    fork = write_fork(parent, tmp_path)
    shutil.copy(parent, command.home / parent.name)
    shutil.copy(fork, command.home / fork.name)
    command("import", command.home)
    shown = command("sessions", "show", FORK).stdout
    assert f"branch of {parent.stem}" in shown
    assert "(copy)" in shown
    exported = json.loads(command("sessions", "export", FORK).stdout)
    copies = [message for message in exported["messages"] if message.get("copied")]
    assert len(copies) == len(exported["messages"]) - 1
    # Without the original, the lines of the fork count.
    assert command.json("sessions", "list", "--json")[0]["calls"] == 0
    command("sessions", "delete", parent.stem, "--yes")
    assert command.json("sessions", "list", "--json")[0]["calls"] > 0
