"""An import that is killed at any moment leaves no half session, and the next run completes."""

import json
import random
import shutil
import signal
import subprocess
import sys
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.import_speed import write_large_claude_log
from tests.waiting import LONGEST_S

from journeyman import Journeyman
from journeyman.testing import Corpus

_KILLS = 20

_KILLED_IMPORT = """
import os, signal, sys
from pathlib import Path
from journeyman import Journeyman

home, logs, reports_left, calls_left = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

def count_calls(*_):
    global calls_left
    calls_left -= 1
    if calls_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def count_reports(_):
    global reports_left
    reports_left -= 1
    if reports_left == 0:
        sys.setprofile(count_calls)

with Journeyman(home=home) as journeyman:
    journeyman.import_logs([Path(logs)], progress=count_reports)
"""
"""An import that kills itself after a number of progress reports and a number of function calls
after those, so that the moment does not depend on the speed of the machine.
"""


@pytest.fixture(scope="module")
def logs(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of every kind, large and small, so that a kill can hit within and between them."""
    folder = tmp_path_factory.mktemp("logs")
    shutil.copytree(corpus.folder, folder / "m-samples")
    large = folder / "large.jsonl"
    write_large_claude_log(large, 6_000_000)
    with ExitStack() as files, large.open("rb") as lines:
        parts = [files.enter_context((folder / f"{name}.jsonl").open("wb")) for name in "azbycx"]
        for line in lines:
            # The sessions are distributed over six files, each complete in one.
            session = json.loads(line).get("sessionId", "")
            parts[zlib.crc32(session.encode()) % len(parts)].write(line)
    large.unlink()
    return folder


State = dict[str, tuple[str, int, int, int]]


def state_of(home: Path) -> State:
    """Every session with its digest, its counts and the number of messages actually stored."""
    with Journeyman(home=home) as journeyman:
        return {
            one.session.id: (
                one.digest,
                one.messages,
                one.calls,
                sum(1 for _ in journeyman.sessions.messages(one.session.id)),
            )
            for one in journeyman.sessions.list()
        }


def imported(home: Path, logs: Path) -> int:
    """Import the logs; return the number of progress reports."""
    reports = 0

    def count(_progress: object) -> None:
        nonlocal reports
        reports += 1

    with Journeyman(home=home) as journeyman:
        assert journeyman.import_logs([logs], progress=count).problems == []
    return reports


def killed(home: Path, logs: Path, expected: State, *, reports: int, calls: int) -> int:
    """Kill an import at a given moment, check what it leaves, and complete it; return how many
    sessions were stored at the kill.
    """
    moment = map(str, (home, logs, reports, calls))
    program = [sys.executable, "-c", _KILLED_IMPORT, *moment]
    ended = subprocess.run(program, timeout=LONGEST_S, check=False)
    assert ended.returncode == -signal.SIGKILL
    found = state_of(home)
    for session, seen in found.items():
        assert seen == expected[session], "a half session was left behind"
    imported(home, logs)
    assert state_of(home) == expected
    return len(found)


def test_killed_in_the_middle(corpus: Corpus, tmp_path: Path) -> None:
    logs = corpus.folder / "claude"
    reports = imported(tmp_path / "whole", logs)
    expected = state_of(tmp_path / "whole")
    stored = killed(tmp_path / "home", logs, expected, reports=reports // 2, calls=100)
    assert 0 < stored < len(expected)


@pytest.mark.soak
def test_killed_at_random_points(logs: Path, tmp_path: Path) -> None:
    reports = imported(tmp_path / "whole", logs)
    expected = state_of(tmp_path / "whole")
    moments = random.Random(7)
    reached: set[int] = set()
    for number in range(_KILLS):
        home = tmp_path / f"home{number}"
        # The end of the transaction is some ten thousand function calls after a report.
        later = moments.choice((0, 10, 100, 1000, 10_000))
        moment = {"reports": moments.randrange(1, reports), "calls": moments.randint(0, later)}
        reached.add(killed(home, logs, expected, **moment))
        shutil.rmtree(home)
    assert len(reached) > 5, f"the kills hit too few different moments: {reached}"
