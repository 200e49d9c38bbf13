"""The time of an opening in a large library, in process and from the command line, and the cost of
learning again.

    python benchmarks/opening_speed.py [--episodes 10000] [--logs FOLDER]

A store is filled with the requested number of generated episodes: half of them run shell commands,
half call custom tools. The alternative in the same run works without an index: it reads every
request and embeds it for each task. With a folder of logs, learning from them is timed as a
command, the first and the second time, and openings are timed on the result. The ratio of the
alternative to ours is printed last.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from journeyman import Journeyman
from journeyman.learning.search_keys import call_text, words
from journeyman.models.embedder import Embedder
from journeyman.records import (
    CommandUse,
    Episode,
    MinedSession,
    Observations,
    SearchKeys,
    SessionId,
    Step,
)

_VERBS = ("cancel", "book", "change", "find", "update", "refund", "print", "check", "merge", "test")
_THINGS = (
    *("flight", "order", "hotel", "seat", "invoice", "branch", "file", "column", "report", "user"),
    *(
        "ticket",
        "chart",
        "module",
        "dataset",
        "address",
        "payment",
        "passenger",
        "release",
        "index",
    ),
)
_TASKS = 50
_SESSIONS = 200
_STARTS = 7
_REAL_TASKS = (
    "create a PR",
    "commit these changes",
    "run the tests and fix what fails",
    "review the changes in this branch",
    "add tests for the parser",
)


def made_up(count: int, rng: random.Random) -> Iterator[Episode]:
    for number in range(count):
        verb, one, other = rng.choice(_VERBS), rng.choice(_THINGS), rng.choice(_THINGS)
        arguments = {f"{one}_id": str(number), other: f"x{number}"}
        step = Step(
            tool=f"{verb}_{one}",
            arguments=json.dumps(arguments),
            result=f'{{"status": "done", "{one}": {{"id": {number}, "{other}": "x{number}"}}}}',
        )
        commands: tuple[CommandUse, ...] = ()
        if number % 2:
            line = f"{one} {verb} --{other} x{number}"
            step = Step(tool="Bash", arguments=json.dumps({"command": line}), result="done")
            commands = (CommandUse(f"{one} {verb}", f"{one} {verb} --{other} …", 1),)
        yield Episode(
            session=SessionId(f"s{number % _SESSIONS}"),
            number=number,
            request=f"Please {verb} the {one} of {other} number {number}, and tell me about it",
            ending="well",
            at=float(number),
            steps=(step,),
            observed=Observations(commands=commands),
        )


def fill(journeyman: Journeyman, count: int) -> None:
    embedder = Embedder()
    for number in range(_SESSIONS):
        journeyman.record([{"role": "user", "content": "x"}], session_id=f"s{number}", outcome=1.0)
    digests = {one.session.id: one.digest for one in journeyman.sessions.list()}
    by_session: dict[SessionId, list[Episode]] = {session: [] for session in digests}
    for episode in made_up(count, random.Random(7)):
        by_session[episode.session].append(episode)
    for session, digest in digests.items():
        own = by_session[session]
        requests, calls = [one.request for one in own], [call_text(one) for one in own]
        vectors = embedder.embed([*requests, *calls]).astype(np.float16)
        keys = {
            (session, one.number): SearchKeys(
                words=words(requests[at]).tobytes(),
                call_words=words(calls[at]).tobytes(),
                vector=vectors[at].tobytes(),
                call_vector=vectors[at + len(own)].tobytes(),
            )
            for at, one in enumerate(own)
        }
        found = [MinedSession(session=session, digest=digest, outcome=1.0, episodes=tuple(own))]
        journeyman._store.learned.save("benchmark", found, keys)  # noqa: SLF001


def tasks() -> list[str]:
    rng = random.Random(11)
    return [
        f"I want to {rng.choice(_VERBS)} my {rng.choice(_THINGS)}, it is about a "
        f"{rng.choice(_THINGS)}"
        for _ in range(_TASKS)
    ]


def timed_openings(journeyman: Journeyman, asked: Sequence[str]) -> list[float]:
    journeyman.opening("warm up the library")
    seconds = []
    for task in asked:
        began = time.perf_counter()
        opening = journeyman.opening(task)
        seconds.append(time.perf_counter() - began)
        assert not opening.is_empty, "the benchmark should find something"
    return seconds


def without_an_index(journeyman: Journeyman) -> float:
    embedder = Embedder()
    began = time.perf_counter()
    store = journeyman._store  # noqa: SLF001
    episodes = store.episodes.by_row([one.row for one in store.episodes.rows()])
    requests = [episode.request for episode in episodes.values()]
    task = embedder.embed(tasks()[:1])[0]
    sorted(zip(embedder.embed(requests) @ task, range(len(requests)), strict=True))
    return time.perf_counter() - began


def timed_command(home: Path, *arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "journeyman", "--home", str(home), *arguments],
        check=True,
        capture_output=True,
        env=os.environ,
    )
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--logs", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        with Journeyman(home=home) as journeyman:
            fill(journeyman, asked.episodes)
            began = time.perf_counter()
            journeyman.opening("the first one reads the library")
            first = time.perf_counter() - began
            print(f"{asked.episodes:,} episodes; the first opening {first:.2f} s")
            ours = statistics.median(timed_openings(journeyman, tasks()))
            other = without_an_index(journeyman)
        print(f"opening(): median of {_TASKS} {1000 * ours:.1f} ms")
        starts = [timed_command(home, "open", task) for task in tasks()[:_STARTS]]
        start = statistics.median(starts)
        print(f"journeyman open, one process each: median of {_STARTS} {start:.2f} s")
        if asked.logs:
            logs = Path(folder, "logs")
            timed_command(logs, "import", str(asked.logs))
            first = timed_command(logs, "learn")
            second = statistics.median(timed_command(logs, "learn") for _ in range(5))
            print(f"learning: {first:.2f} s, again {second:.2f} s, {100 * second / first:.1f} %")
            with Journeyman(home=logs) as journeyman:
                real = statistics.median(timed_openings(journeyman, _REAL_TASKS * 5))
            print(f"opening() on these logs: median {1000 * real:.1f} ms")
        print(f"without an index: {1000 * other:.1f} ms")
        print(f"ratio: {other / ours:.1f}")


if __name__ == "__main__":
    main()
