"""How much honest work the safety rules exclude from learning, compared with a plain word list.

    python benchmarks/kept_out.py --data FOLDER [--episodes 200]

The folder holds logs of ordinary work. Episodes that ended well are sampled equally from all
sources. Every excluded call is listed with its rule, for a person to judge which are wrong; an
episode counts once, however much of it is excluded. The alternative in the same run excludes every
episode with one of the usual words in its request, calls or results. The shares are printed last.
"""

import argparse
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from journeyman import Journeyman
from journeyman.learning.episodes import mine
from journeyman.learning.requests import requests
from journeyman.learning.safety import why_unsafe
from journeyman.records import Episode, SessionOverview, join_calls

_WORDS = re.compile(r"ignore|system prompt|curl|sudo|password", re.IGNORECASE)
_SHOWN = 160


class Honest(NamedTuple):
    """An episode, the calls excluded from it, whether its request is kept, and the words of the
    list that it contains.
    """

    episode: Episode
    kept_out: tuple[str, ...]
    is_whole: bool
    words: frozenset[str]


def honest_episodes(journeyman: Journeyman, overview: SessionOverview) -> Iterator[Honest]:
    session = overview.session
    messages = sorted(journeyman.sessions.messages(session.id), key=lambda one: one.position)
    (judged,) = journeyman.judged(session.id)
    mined = mine(
        session, messages, judged.calls, trivial=frozenset(journeyman.settings.trivial_tools)
    )
    found = requests(messages)
    under = {one.key: request for one, request in zip(messages, found, strict=True)}
    texts: defaultdict[int, list[str]] = defaultdict(list)
    excluded: defaultdict[int, list[str]] = defaultdict(list)
    for call in join_calls(messages):
        if request := under.get(call.asked_key):
            texts[request.number] += [call.arguments, call.result or ""]
            if decision := why_unsafe(call.tool, call.arguments, session.cwd):
                shown = " ".join(call.arguments.split())[:_SHOWN]
                excluded[request.number].append(f"{decision.rule}: {shown}")
    for one in mined.episodes:
        if one.ending == "well":
            words = _WORDS.findall("\n".join((one.request, *texts[one.number])))
            asked = next(each.text for each in under.values() if each.number == one.number)
            is_whole = bool(one.request) or not asked.strip()
            yield Honest(
                one, tuple(excluded[one.number]), is_whole, frozenset(map(str.lower, words))
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=200)
    asked = parser.parse_args()
    by_source: defaultdict[str, list[Honest]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Journeyman(home=folder) as journeyman:
        journeyman.import_logs([asked.data])
        for overview in journeyman.sessions.list():
            by_source[overview.session.source] += honest_episodes(journeyman, overview)
    for episodes in by_source.values():
        episodes.sort(key=lambda one: (one.episode.session, one.episode.number))
        random.Random(16).shuffle(episodes)
    turns = chain.from_iterable(zip_longest(*by_source.values()))
    sample = [one for one in turns if one is not None][: asked.episodes]
    for source in sorted(by_source):
        drawn = sum(one.episode.source == source for one in sample)
        print(f"{source}: {drawn} of {len(by_source[source])} episodes that ended well")
    for one in sample:
        for text in one.kept_out:
            print(f"  {one.episode.session}#{one.episode.number} {text}")
    ours = sum(bool(one.kept_out) or not one.is_whole for one in sample)
    wholly = sum(not one.is_whole for one in sample)
    listed = sum(bool(one.words) for one in sample)
    print(f"{len(sample)} episodes; {wholly} of them are excluded entirely")
    print(f"something is excluded from: {ours / len(sample):.1%}")
    print(f"a word list would exclude: {listed / len(sample):.1%}")


if __name__ == "__main__":
    main()
