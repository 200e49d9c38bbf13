"""Learning that is killed at any moment costs the session in hand; the next run continues, and the
library is the same in the end.
"""

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.program import TIMEOUT_S

from journeyman import Journeyman
from journeyman.testing import Corpus

_KILLS = 10

_KILLED_LEARNING = """
import os, signal, sys
from journeyman import Journeyman

home, sessions_left, calls_left = sys.argv[1], *map(int, sys.argv[2:])

def count_calls(*_):
    global calls_left
    calls_left -= 1
    if calls_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def count_sessions(_done, _total):
    global sessions_left
    sessions_left -= 1
    if sessions_left == 0:
        sys.setprofile(count_calls)

with Journeyman(home=home) as journeyman:
    journeyman.learn(progress=count_sessions)
"""
"""Learning that kills itself some calls of functions after so many sessions are done."""


def library(home: Path) -> tuple[list[bytes], list[bytes]]:
    """Everything that was learned, whatever the order in which it came."""
    with Journeyman(home=home) as journeyman:
        store = journeyman._store
        rows = store.episodes.rows()
        keys = [(one.words, one.call_words, one.vector, one.call_vector) for one in rows]
        episodes = zip(store.episodes.at([one.row for one in rows]), keys, strict=True)
        patterns = (one.pattern for one in journeyman.patterns.list())
        return (
            sorted(msgspec.json.encode(one) for one in episodes),
            sorted(msgspec.json.encode(one) for one in patterns),
        )


def mined(home: Path) -> int:
    with Journeyman(home=home) as journeyman:
        return sum(journeyman.patterns.reasons().values())


def killed(home: Path, *, sessions: int, calls: int) -> None:
    program = [sys.executable, "-c", _KILLED_LEARNING, str(home), str(sessions), str(calls)]
    ended = subprocess.run(program, timeout=TIMEOUT_S, check=False)
    assert ended.returncode == -signal.SIGKILL


def learned_whole(imported: Path, tmp_path: Path) -> tuple[int, tuple[list[bytes], list[bytes]]]:
    whole = tmp_path / "whole"
    shutil.copytree(imported, whole)
    with Journeyman(home=whole) as journeyman:
        return journeyman.learn().mined, library(whole)


@pytest.fixture(scope="module")
def imported(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("imported") / "home"
    with Journeyman(home=home) as journeyman:
        journeyman.import_logs([corpus.folder / "claude"])
    return home


def test_a_kill_costs_the_session_in_hand(imported: Path, tmp_path: Path) -> None:
    sessions, expected = learned_whole(imported, tmp_path)
    home = tmp_path / "home"
    shutil.copytree(imported, home)
    killed(home, sessions=sessions // 2, calls=200)
    assert mined(home) == sessions // 2
    with Journeyman(home=home) as journeyman:
        assert journeyman.learn().mined == sessions - sessions // 2
    assert library(home) == expected


@pytest.mark.soak
def test_killed_at_ten_random_moments(imported: Path, tmp_path: Path) -> None:
    sessions, expected = learned_whole(imported, tmp_path)
    moments, reached = random.Random(5), set[int]()
    for number in range(_KILLS):
        home = tmp_path / f"home{number}"
        shutil.copytree(imported, home)
        # Some ten thousand calls of functions after a session the next one is being saved.
        later = moments.choice((10, 1_000, 10_000, 60_000))
        done = moments.randrange(1, sessions - 1)
        killed(home, sessions=done, calls=moments.randint(0, later))
        reached.add(mined(home))
        with Journeyman(home=home) as journeyman:
            journeyman.learn()
        assert library(home) == expected
    assert len(reached) > 3, f"the kills hit too few different moments: {reached}"
