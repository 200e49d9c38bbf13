"""The time of `journeyman profile` on a thousand stored sessions: the first time, when every call
has to be judged, and the second, when the verdicts are stored. The ratio is printed last.

    python benchmarks/profile_speed.py [SESSIONS]
"""

import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import msgspec

from journeyman import Journeyman
from journeyman.records import Fragment, Message, SessionId
from journeyman.store.store import Store
from journeyman.testing import write_corpus

_ROUNDS = 3


def fill(home: Path, number: int) -> tuple[int, int]:
    """Fill a store with copies of the sample sessions; return its messages and calls."""
    with Journeyman(home=home, environ={}) as journeyman:
        journeyman.import_logs(write_corpus(home / "samples").folder)
        samples = [
            (overview.session, tuple(journeyman.sessions.messages(overview.session.id)))
            for overview in journeyman.sessions.list()
            if overview.calls
        ]
    with Store(f"sqlite:///{home / 'journeyman.db'}") as store, store.writing() as writing:
        for at, (session, messages) in enumerate(islice(cycle(samples), number)):
            copy = msgspec.structs.replace(session, id=SessionId(f"copy-{at}"), lineage=None)
            writing.add(Fragment(session=copy, messages=_marked(messages, at), replaces=True))
        writing.finish()
    with Journeyman(home=home, environ={}) as journeyman:
        totals = journeyman.sessions.totals()
        return sum(one.messages for one in totals), sum(one.calls for one in totals)


def _marked(messages: tuple[Message, ...], number: int) -> tuple[Message, ...]:
    first = msgspec.structs.replace(messages[0], text=f"{messages[0].text} ({number})")
    return (first, *messages[1:])


def seconds(home: Path) -> float:
    environ = os.environ | {"JOURNEYMAN_HOME": str(home)}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "journeyman", "profile"],
        env=environ,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        messages, calls = fill(home, number)
        print(f"{number:,} sessions and the samples: {messages:,} messages, {calls:,} calls")
        first = seconds(home)
        again = min(seconds(home) for _ in range(_ROUNDS))
    print(f"the first time {first:.2f} s, the second {again:.2f} s")
    print(f"ratio {again / first:.2f}")


if __name__ == "__main__":
    main()
