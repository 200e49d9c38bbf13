"""How long an opening takes in a large library, in process and from the command line, and what
learning again costs.

    python benchmarks/opening_speed.py [--patterns 10000] [--logs FOLDER]

A store is filled with as many made-up patterns as asked for. The alternative in the same run asks
without an index: it reads every pattern and embeds its intent for each task. With a folder of
logs, learning from them is timed as a command, the first time and the second. The ratio of the
alternative to ours comes last.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from journeyman import Journeyman
from journeyman.embeddings.embedder import Embedder
from journeyman.records import MinedSession, Pattern, PatternId, SearchKeys, SessionId, Step
from journeyman.templates.cost import tokens_of
from journeyman.templates.selecting.words import words_of

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
_STARTS = 7


def made_up(count: int, rng: random.Random, embedder: Embedder) -> Iterator[Pattern]:
    for number in range(count):
        verb, one, other = rng.choice(_VERBS), rng.choice(_THINGS), rng.choice(_THINGS)
        intent = f"Please {verb} the {one} of {other} number {number}, and tell me when it is done"
        step = Step(
            tool=f"{verb}_{one}",
            arguments=f'{{"{one}_id": "{number}", "{other}": "x{number}"}}',
            result=f'{{"status": "done", "{one}": {{"id": {number}, "{other}": "x{number}"}}}}',
        )
        pattern = Pattern(
            id=PatternId(f"p{number}"),
            kind="first_try",
            intent=intent,
            steps=(step,),
            sessions=(SessionId(f"s{number % 20}"),),
        )
        yield Pattern(
            **{
                name: getattr(pattern, name)
                for name in ("id", "kind", "intent", "steps", "sessions")
            },
            tokens=tokens_of(pattern, embedder.count_tokens),
        )


def fill(journeyman: Journeyman, count: int) -> None:
    embedder = Embedder()
    for number in range(20):
        journeyman.record([{"role": "user", "content": "x"}], session_id=f"s{number}", outcome=1.0)
    digests = {one.session.id: one.digest for one in journeyman.sessions.list()}
    patterns = list(made_up(count, random.Random(7), embedder))
    for session, digest in digests.items():
        own = tuple(one for one in patterns if one.sessions == (session,))
        vectors = embedder.embed([one.intent for one in own])
        keys = {
            one.id: SearchKeys(
                words=words_of(one).tobytes(), vector=vector.astype(np.float16).tobytes()
            )
            for one, vector in zip(own, vectors, strict=True)
        }
        found = [MinedSession(session=session, digest=digest, outcome=1.0, patterns=own)]
        journeyman._store.learned.save("benchmark", found, keys)  # noqa: SLF001


def tasks() -> list[str]:
    rng = random.Random(11)
    return [
        f"I want to {rng.choice(_VERBS)} my {rng.choice(_THINGS)}, it is about a "
        f"{rng.choice(_THINGS)}"
        for _ in range(_TASKS)
    ]


def timed_openings(journeyman: Journeyman) -> list[float]:
    journeyman.opening("warm up")
    seconds = []
    for task in tasks():
        began = time.perf_counter()
        opening = journeyman.opening(task)
        seconds.append(time.perf_counter() - began)
        assert opening.choices, "the benchmark should find something"
    return seconds


def without_an_index(journeyman: Journeyman) -> float:
    embedder = Embedder()
    began = time.perf_counter()
    intents = [one.pattern.intent for one in journeyman.patterns.list()]
    task = embedder.embed(tasks()[:1])[0]
    sorted(zip(embedder.embed(intents) @ task, range(len(intents)), strict=True))
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
    parser.add_argument("--patterns", type=int, default=10_000)
    parser.add_argument("--logs", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        with Journeyman(home=home) as journeyman:
            fill(journeyman, asked.patterns)
            began = time.perf_counter()
            journeyman.opening("the first one reads the library")
            first = time.perf_counter() - began
            print(f"{asked.patterns:,} patterns; the first opening {first:.2f} s")
            ours = statistics.median(timed_openings(journeyman))
            other = without_an_index(journeyman)
        print(f"opening(): median of {_TASKS} {1000 * ours:.1f} ms")
        starts = [timed_command(home, "open", task) for task in tasks()[:_STARTS]]
        start = statistics.median(starts)
        print(f"journeyman open, a process each: median of {_STARTS} {start:.2f} s")
        if asked.logs:
            logs = Path(folder, "logs")
            timed_command(logs, "import", str(asked.logs))
            first = timed_command(logs, "learn")
            second = statistics.median(timed_command(logs, "learn") for _ in range(5))
            print(f"learning: {first:.2f} s, again {second:.2f} s, {100 * second / first:.1f} %")
        print(f"without an index: {1000 * other:.1f} ms")
        print(f"ratio: {other / ours:.1f}")


if __name__ == "__main__":
    main()
