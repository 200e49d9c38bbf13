"""If learning is killed or interrupted at any moment, only the current batches are lost; the next
run continues, and the resulting library is the same, regardless of the number of processes.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.waiting import LONGEST_S, until

from journeyman import Journeyman
from journeyman.testing import Corpus

_KILLS = 10
_BATCH = 3
"""Sessions saved per batch in these tests."""

_LEARNING = f"""
import multiprocessing, os, signal, sys, time
from journeyman import Journeyman
from journeyman.records.errors import OutsideProblem
from journeyman.learning import learner

home, workers, event, sessions, calls_left = *sys.argv[1:4], *map(int, sys.argv[4:])
if event == "kill worker":
    learner._BATCH_SESSIONS = 1
else:
    learner._BATCH_SESSIONS = {_BATCH}
learner._WORTH_WORKERS = 0

def count_calls(*_):
    global calls_left
    calls_left -= 1
    if calls_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def act(progress):
    if progress.done < sessions:
        return
    if event == "kill":
        sys.setprofile(count_calls)
    elif event == "kill worker":
        while progress.done == 0 and len(multiprocessing.active_children()) < 2:
            time.sleep(0.01)
        for worker in multiprocessing.active_children() if progress.done == 0 else ():
            if worker.name.endswith("-2"):  # it has the second session, and is still starting
                worker.kill()
    elif event == "wait":
        print("learning", flush=True)
        signal.pause()

with Journeyman(home=home) as journeyman:
    try:
        journeyman.learn(workers=int(workers), progress=act)
    except OutsideProblem as lost:
        print(lost, end="")
"""
"""Learning with an event after a number of sessions were saved: it kills itself some function calls
later, kills one of its workers, or waits for a signal.
"""


def library(home: Path) -> list[bytes]:
    """Everything learned, regardless of order."""
    with Journeyman(home=home) as journeyman:
        store = journeyman._store
        rows = store.episodes.rows()
        keys = [(one.words, one.call_words, one.vector, one.call_vector) for one in rows]
        episodes = zip(store.episodes.by_row([one.row for one in rows]).values(), keys, strict=True)
        return sorted(msgspec.json.encode(one) for one in episodes)


def mined(home: Path) -> int:
    with Journeyman(home=home) as journeyman:
        return sum(journeyman._store.learned.counts().values())


def program(home: Path, event: str, *, workers: int, sessions: int, calls: int = 0) -> list[str]:
    moment = map(str, (home, workers, event, sessions, calls))
    return [sys.executable, "-c", _LEARNING, *moment]


def killed(home: Path, *, sessions: int, calls: int, workers: int = 1) -> None:
    command = program(home, "kill", workers=workers, sessions=sessions, calls=calls)
    ended = subprocess.run(command, timeout=LONGEST_S, check=False)
    assert ended.returncode == -signal.SIGKILL


def is_group_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


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


def test_a_kill_loses_only_the_current_batch(imported: Path, tmp_path: Path) -> None:
    sessions, expected = learned_whole(imported, tmp_path)
    home = tmp_path / "home"
    shutil.copytree(imported, home)
    killed(home, sessions=2 * _BATCH, calls=200)
    assert mined(home) == 2 * _BATCH
    with Journeyman(home=home) as journeyman:
        assert journeyman.learn().mined == sessions - 2 * _BATCH
    assert library(home) == expected


def test_several_processes_learn_the_same_even_if_one_is_killed(
    imported: Path, tmp_path: Path
) -> None:
    whole, home = tmp_path / "whole", tmp_path / "home"
    for copy in (whole, home):
        shutil.copytree(imported, copy)
    command = program(whole, "none", workers=1, sessions=0)
    subprocess.run(command, timeout=LONGEST_S, check=True)
    command = program(home, "kill worker", workers=2, sessions=0)
    ended = subprocess.run(command, timeout=LONGEST_S, check=True, stdout=subprocess.PIPE)
    assert b"ended abruptly" in ended.stdout
    command = program(home, "none", workers=2, sessions=0)
    subprocess.run(command, timeout=LONGEST_S, check=True)
    assert library(home) == library(whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_is_left_behind(imported: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C reaches all processes of a terminal; a kill only the first."""
    home = tmp_path / "home"
    shutil.copytree(imported, home)
    command = program(home, "wait", workers=2, sessions=_BATCH)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"learning\n"
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.kill()
        _, said = process.communicate(timeout=LONGEST_S)
        until(lambda: is_group_gone(process.pid))
    if number == signal.SIGINT:
        assert said.count(b"Traceback") == 1, said
        assert said.endswith(b"KeyboardInterrupt\n")
    assert mined(home) >= _BATCH


@pytest.mark.soak
def test_killed_at_ten_random_moments(imported: Path, tmp_path: Path) -> None:
    sessions, expected = learned_whole(imported, tmp_path)
    moments, reached = random.Random(5), set[int]()
    for number in range(_KILLS):
        home = tmp_path / f"home{number}"
        shutil.copytree(imported, home)
        # The next session is being saved some ten thousand function calls after the previous one.
        later = moments.choice((10, 1_000, 10_000, 60_000))
        done = moments.randrange(1, sessions - 1)
        killed(home, sessions=done, calls=moments.randint(0, later))
        reached.add(mined(home))
        with Journeyman(home=home) as journeyman:
            journeyman.learn()
        assert library(home) == expected
    assert len(reached) > 2, f"the kills hit too few different moments: {reached}"
