"""Whether an opening shows the tools that a task needs, beside simpler ways to choose.

    python benchmarks/selection.py FOLDER… [--budget 1500]

The folders hold logs of repeated tasks with a known outcome (tau_bench, tau2). Each task is left
out in turn: the library then has only what other tasks taught. Its text is what the user said
first in its first run; what it needs are the tools that its successful runs called with success
(trivial ones, which are never learned, do not count). The share of these that the opening shows
within the budget is averaged over tasks. In one run: ours, the first 15 patterns in stored order,
and BM25 alone with 15 and with as many as ours may have; all from the same patterns with the same
costs. The ratio of ours to the first 15 comes last.
"""

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from journeyman import Journeyman
from journeyman.embeddings.embedder import Embedder
from journeyman.records import Message, Pattern, PatternId, SessionId, Template
from journeyman.templates.cost import tokens_of_note
from journeyman.templates.defaults import MOST_PATTERNS
from journeyman.templates.openings import Openings
from journeyman.templates.selecting.bm25 import Bm25
from journeyman.templates.selecting.selection import Limits
from journeyman.templates.selecting.words import words, words_of
from journeyman.templates.shown.opening_wording import note

_FIRST = 15


Task = tuple[str, str]


class Run(NamedTuple):
    """One run of a task."""

    session: SessionId
    said_first: str
    used_well: frozenset[str]


def said_first(messages: Iterable[Message]) -> str:
    said = (one.text for one in messages if one.role == "user" and one.kind == "plain")
    return next((text for text in said if text.strip()), "")


def runs_by_task(journeyman: Journeyman) -> dict[Task, list[Run]]:
    judged = {one.id: one for one in journeyman.judged()}
    trivial = set(journeyman.settings.trivial_tools)
    found: dict[Task, list[Run]] = defaultdict(list)
    for overview in reversed(journeyman.sessions.list()):
        session = overview.session
        if "task_id" not in session.details:
            continue
        # tau_bench's file does not name its domain, which is the airline's. The task of one
        # number in both collections counts as one, to be on the safe side.
        domain = str(session.details.get("domain", "airline"))
        ok = [call.tool for call in judged[session.id].calls if call.verdict.status == "ok"]
        run = Run(
            session=session.id,
            said_first=said_first(journeyman.sessions.messages(session.id)),
            used_well=frozenset(ok) - trivial if session.outcome == 1.0 else frozenset(),
        )
        found[domain, str(session.details["task_id"])].append(run)
    return found


def seen_in(journeyman: Journeyman, runs: Iterable[Run]) -> dict[PatternId, Pattern]:
    """What runs taught, in stored order."""
    stored = journeyman.patterns.of_sessions([run.session for run in runs])
    return {one.pattern.id: one.pattern for one in stored if not one.pattern.quarantined}


def within(patterns: Iterable[Pattern], tokens: int, most: int) -> set[str]:
    """The tools that patterns show, in their order, as far as the budget goes."""
    shown: set[str] = set()
    count = 0
    for pattern in patterns:
        if count < most and pattern.tokens <= tokens:
            tokens -= pattern.tokens
            count += 1
            shown.update(pattern.tools)
    return shown


def by_words(patterns: Sequence[Pattern], task: str) -> list[Pattern]:
    scores = Bm25([words_of(pattern) for pattern in patterns]).scores(words(task))
    return [patterns[at] for at in np.argsort(-scores, kind="stable") if scores[at] > 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=1500)
    asked = parser.parse_args()
    embedder = Embedder()
    room = asked.budget - tokens_of_note(note(2), embedder.count_tokens)
    shares: dict[str, list[float]] = defaultdict(list)
    chosen: list[int] = []
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs(asked.folders)
        print(f"learned: {msgspec.json.encode(journeyman.learn()).decode()}")
        tasks = runs_by_task(journeyman)
        everything = seen_in(journeyman, (run for runs in tasks.values() for run in runs))
        openings = Openings(journeyman._store, embedder)  # noqa: SLF001 - patterns of one's own
        for runs in tasks.values():
            needed = frozenset[str]().union(*(run.used_well for run in runs))
            if not needed:
                continue
            own = seen_in(journeyman, runs)
            library = [pattern for id_, pattern in everything.items() if id_ not in own]
            text = runs[0].said_first
            template = Template(name="others", patterns=tuple(library))
            opening = openings.make(text, Limits(tokens=asked.budget), template=template)
            chosen.append(len(opening.choices))
            matching = by_words(library, text)
            ways = {
                "ours": {tool for pattern in opening.patterns for tool in pattern.tools},
                f"first {_FIRST}": within(library, room, _FIRST),
                f"BM25, {_FIRST}": within(matching, room, _FIRST),
                f"BM25, {MOST_PATTERNS}": within(matching, room, MOST_PATTERNS),
            }
            for way, shown in ways.items():
                shares[way].append(len(shown & needed) / len(needed))
    print(f"{len(chosen)} tasks; our openings have {np.mean(chosen):.1f} patterns on average")
    for way, found in shares.items():
        print(f"{way:>12}: {np.mean(found):.3f} of the tools needed are shown")
    for way in list(shares)[:0:-1]:
        ratio = np.mean(shares["ours"]) / np.mean(shares[way])
        print(f"ratio to {way}: {ratio:.2f}")


if __name__ == "__main__":
    main()
