"""Whether an opening shows the tools that a task needs, compared with simpler ways to choose.

    pip install ./benchmarks/readers
    python benchmarks/selection.py FOLDER… [--budget 1500]

The folders hold logs of repeated tasks with a known outcome (tau_bench, tau2). Each task is left
out in turn: the experience then has only what other tasks taught. The text of a task is the first
user message of its first run; the tools it needs are those that its successful runs called
successfully (trivial ones, which are never learned, do not count). The share of these that the
opening shows within the budget is averaged over tasks. In one run: ours, the first 15 episodes in
stored order, and BM25 alone with 15 and with as many as ours may have; all from the same episodes
with the same costs. The ratio of ours to the first 15 is printed last.
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
from journeyman.models.embedder import Embedder
from journeyman.records import Episode, Message, SessionId
from journeyman.records.defaults import MOST_PATTERNS
from journeyman.templates.examples import call_text, note_tokens
from journeyman.templates.experience import Experience
from journeyman.templates.opening_builder import OpeningRequest
from journeyman.templates.opening_text import note
from journeyman.templates.ranking import Bm25, words
from journeyman.templates.selection import OpeningLimits

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
        # tau_bench's file does not name its domain, which is the airline's. Tasks with the same
        # number in both collections count as one, to be on the safe side.
        domain = str(session.details.get("domain", "airline"))
        ok = [call.tool for call in judged[session.id].calls if call.verdict.status == "ok"]
        run = Run(
            session=session.id,
            said_first=said_first(journeyman.sessions.messages(session.id)),
            used_well=frozenset(ok) - trivial if session.outcome == 1.0 else frozenset(),
        )
        found[domain, str(session.details["task_id"])].append(run)
    return found


def tools_of(episode: Episode) -> set[str]:
    return {step.tool for step in episode.steps}


def within(episodes: Iterable[Episode], tokens: int, most: int) -> set[str]:
    """The tools that episodes show, in order, within the budget."""
    shown: set[str] = set()
    count = 0
    for episode in episodes:
        if count < most and episode.tokens <= tokens:
            tokens -= episode.tokens
            count += 1
            shown.update(tools_of(episode))
    return shown


def by_words(episodes: Sequence[Episode], task: str) -> list[Episode]:
    texts = [f"{one.request} {call_text(one)}" for one in episodes]
    scores = Bm25([words(text) for text in texts]).scores(words(task))
    return [episodes[at] for at in np.argsort(-scores, kind="stable") if scores[at] > 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=1500)
    asked = parser.parse_args()
    embedder = Embedder()
    room = asked.budget - note_tokens(note(2), embedder.count_tokens)
    shares: dict[str, list[float]] = defaultdict(list)
    chosen: list[int] = []
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs(asked.folders)
        print(f"learned: {msgspec.json.encode(journeyman.learn()).decode()}")
        tasks = runs_by_task(journeyman)
        if not tasks:
            parser.error("No tasks were found. Are the readers installed, and the folders right?")
        store = journeyman._store  # noqa: SLF001 - episodes are chosen here
        rows = store.episodes.rows()
        episodes = store.episodes.by_row([row.row for row in rows])
        for runs in tasks.values():
            needed = frozenset[str]().union(*(run.used_well for run in runs))
            if not needed:
                continue
            own = {run.session for run in runs}
            others = [row for row in rows if row.session not in own]
            library = [episodes[row.row] for row in others if episodes[row.row].teaches]
            text = runs[0].said_first
            experience = Experience("", others, embedder)
            limits = OpeningLimits(tokens=asked.budget)
            opening = OpeningRequest(store, embedder, text, limits).from_experience(experience)
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
    print(f"{len(chosen)} tasks; our openings have {np.mean(chosen):.1f} episodes on average")
    for way, found in shares.items():
        print(f"{way:>12}: {np.mean(found):.3f} of the tools needed are shown")
    for way in list(shares)[:0:-1]:
        ratio = np.mean(shares["ours"]) / np.mean(shares[way])
        print(f"ratio to {way}: {ratio:.2f}")


if __name__ == "__main__":
    main()
