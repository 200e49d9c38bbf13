"""An import that is killed at any moment leaves no half session, and the next run completes."""

import json
import random
import shutil
import signal
import time
import zlib
from contextlib import ExitStack
from pathlib import Path

import pytest
from benchmarks.import_speed import write_large_claude_log
from tests.program import Command

from journeyman import Journeyman
from journeyman.testing import Corpus

_KILLS = 10


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
            # The sessions spread over six files, each whole in one.
            session = json.loads(line).get("sessionId", "")
            parts[zlib.crc32(session.encode()) % len(parts)].write(line)
    large.unlink()
    return folder


def state_of(home: Path) -> dict[str, tuple[str, int, int, int]]:
    """Every session with its digest, its counts and the messages that are really there."""
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


def test_killed_at_random_points(logs: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    command = Command(tmp_path)
    began = time.monotonic()
    command("--home", whole, "import", logs)
    takes = time.monotonic() - began
    expected = state_of(whole)
    moments = random.Random(7)
    reached: set[int] = set()
    for number in range(3 * _KILLS):  # on a busy machine it takes some more to hit the middle
        if number >= _KILLS and len(reached) > 2:
            break
        home = tmp_path / f"home{number}"
        running = command.start("--home", home, "import", logs)
        time.sleep(moments.uniform(0.1, 1.1) * takes)
        running.signal(signal.SIGKILL)
        running.wait()
        found = state_of(home)
        reached.add(len(found))
        for session, seen in found.items():
            assert seen == expected[session], "a half session was left behind"
        with Journeyman(home=home) as journeyman:
            journeyman.import_logs([logs])
        assert state_of(home) == expected
        shutil.rmtree(home)
    assert len(reached) > 2, f"the kills hit too few different moments: {reached}"
