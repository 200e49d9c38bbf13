"""The search of a text for everything that must not be learned. One pass of an automaton finds the
literal words that rows need; only rows whose words are there are tried, and only where they are.
"""

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

# As fast as the sets of RE2, which give no places, and Hyperscan, which wants certain processors.
from ahocorasick_rs import AhoCorasick, Implementation

from journeyman.redaction.assignments import find_assigned, find_in_secrets
from journeyman.redaction.families import Family, compiled, table
from journeyman.redaction.normaliser import View, find_base64, joined, long_runs, spellings, view_of
from journeyman.redaction.people import find_people, is_home, is_personal
from journeyman.redaction.values import (
    CHECKS,
    PLACEHOLDER,
    Found,
    looks_generated,
    looks_random,
    place_of,
    refers,
)

_SHORTEST = 5
_REMEMBERED = 4_096
_FAR = 1000
_DEEPEST = 3
"""How often base64 may hold base64."""

_NAME = -1
_KUBERNETES = "kind: Secret"

Ranked = tuple[int, Found]
"""What was found, with its rank: 1 by form or base64, 2 by place, 3 details of people, 4 names of
users. Where findings overlap, the lowest rank counts, then the longest."""


class Hits(NamedTuple):
    """Where the words of rows stand: for each row its places, for names the stretches of theirs."""

    rows: dict[int, list[int]]
    names: list[tuple[int, int]]


def find_secrets(text: str, *, people: bool = True) -> tuple[Found, ...]:
    """All secrets of a text, and with `people` their details and names, in order and without
    overlaps. Learning reads a text several times, so those of the length it keeps are remembered.
    """
    if len(text) < _SHORTEST:
        return ()
    return (_find_cached if len(text) <= _REMEMBERED else _find)(text, people=people)


def _find(text: str, *, people: bool, depth: int = 0) -> tuple[Found, ...]:
    ranked: list[Ranked] = []
    known: set[str] = set()
    level, spelling, starts = 0, text, set[int]()
    for level, (spelling, is_other) in enumerate(spellings(text)):
        hits = _hits(spelling)
        found = [*_rows(spelling, hits)] if hits.rows else []
        if hits.names:
            found += ((2, one) for one in find_assigned(spelling, _lower(spelling), hits.names))
        if _KUBERNETES in spelling:
            found += ((2, one) for one in find_in_secrets(spelling))
        if people:
            found += ((4, one) for one in _owners(spelling, hits)) if hits.rows else ()
            found += ((3, one) for one in find_people(spelling)) if is_other else ()
        if is_other:
            found += _encoded(spelling, people=people, depth=depth)
        starts = {one.start for rank, one in found if rank == 1}
        # What stands in the text as it is written need not be found again in another spelling.
        found = [
            (rank, one)
            for rank, one in found
            if one.start < one.end and (not level or _value(spelling, one) not in known)
        ]
        if found:
            view = view_of(text, level)
            ranked += (_placed(view, one) for one in found)
            known.update(_value(spelling, one) for _, one in found)
    broken = joined(text, level, spelling, starts)
    if broken is not None:
        ranked += (_placed(broken, one) for one in _find_broken(broken, people=people, depth=depth))
    return tuple(_resolved(text, ranked)) if ranked else ()


_find_cached = lru_cache(maxsize=1_024)(_find)


def _value(text: str, found: Found) -> str:
    return found.value or text[found.start : found.end]


def _placed(view: View, one: Ranked) -> Ranked:
    rank, found = one
    start, end = view.starts[found.start], view.ends[found.end - 1]
    return rank, Found(start, end, found.family, found.wants_quotes, _value(view.text, found))


def _resolved(text: str, ranked: list[Ranked]) -> list[Found]:
    found: list[Found] = []
    taken, inside = bytearray(len(text)), bytearray(len(text) + 1)  # inside a placeholder
    for kept in PLACEHOLDER.finditer(text) if "<" in text else ():
        inside[kept.start() + 1 : kept.end()] = b"\1" * (len(kept[0]) - 1)
    for _, one in sorted(ranked, key=lambda two: (two[0], two[1].start - two[1].end)):
        cuts = inside[one.start] or inside[one.end]
        if not cuts and taken.find(1, one.start, one.end) < 0:
            taken[one.start : one.end] = b"\1" * (one.end - one.start)
            found.append(one)
    return sorted(found)


def _encoded(
    text: str, *, people: bool, depth: int, broken: View | None = None
) -> Iterator[Ranked]:
    """Rows without anchors, and base64 that holds secrets; if `broken`, only over a line end."""
    runs = long_runs(text)
    for run in runs:
        start = run.start()
        if text[start - 1 : start] == "\\" and text[start] in "nrt":
            start += 1  # the letter of an escaped line break
        one = _unanchored().match(text, start)
        if one is not None and (broken is None or broken.first_join(*one.span())):
            yield 1, Found(*one.span(), str(one.lastgroup))
    for start, end, readable in find_base64(runs) if depth < _DEEPEST else ():
        is_new = broken is None or broken.first_join(start, end)
        if is_new and _find(readable, people=people, depth=depth + 1):
            yield 1, Found(start, end, "encoded")


def _find_broken(view: View, *, people: bool, depth: int) -> Iterator[Ranked]:
    """What was broken by a line end: the same rows, where a match goes over one."""
    text = view.text
    hits = _hits(text)
    for rank, one in _rows(text, hits, broken=view):
        join = view.first_join(one.start, one.end)
        is_list = join and text[one.start : one.end].isalpha() and view.first_join(join, one.end)
        if join and not is_list:
            yield rank, one
    for one in find_assigned(text, _lower(text), hits.names):
        join = view.first_join(one.start, one.end)
        left, right = text[one.start : join], text[join : one.end]
        if join and place_of(left) is None and _is_broken(left, right):
            yield 2, one
    yield from _encoded(text, people=people, depth=depth, broken=view)


def _is_broken(left: str, right: str) -> bool:
    """Whether what stands before and behind a line end looks like two halves of one value."""
    right = right.split(maxsplit=1)[0].rstrip(";,")
    if looks_random(right):
        return len(left) >= 4
    return len(right) >= 4 and looks_generated(left + right) and looks_random(left)


def _rows(text: str, hits: Hits, *, broken: View | None = None) -> Iterator[Ranked]:
    families = table().family
    for number in sorted(one for one in hits.rows if one < len(families)):
        row, rank = families[number], 2 if families[number].check else 1
        for found in _matches(row, text, hits.rows[number]):
            group = found.lastindex or 0
            value = found[group]
            if row.check and (refers(value) or not _CHECKS[row.check](value)):
                continue
            if "<" in value and PLACEHOLDER.search(value):
                continue
            join = broken.first_join(*found.span(group)) if broken is not None else 0
            if join and row.length and join - found.start() >= row.length:
                continue  # it was whole before the line end
            yield rank, Found(*found.span(group), row.id)


def _owners(text: str, hits: Hits) -> Iterator[Found]:
    """The names of users in paths of home folders and in places that hold only such names."""
    first = len(table().family)
    for number, places in hits.rows.items():
        if number < first:
            continue
        row = table().owner[number - first]
        for found in _matches(row, text, places):
            group = found.lastindex or 0
            if is_home(found) if row.id.startswith("home") else is_personal(found[group]):
                yield Found(*found.span(group), "user", value=found[group])


def _matches(row: Family, text: str, places: list[int]) -> Iterator[re.Match[str]]:
    pattern = compiled(row)
    done = 0
    for before, at in zip((0, *places), places, strict=False):
        if at < done:
            continue
        if row.reach > _FAR:
            done = max(done, before)
        if row.line:
            begins = max(text.rfind(sign, max(0, at - row.reach), at) for sign in '\n"') + 1
            found = pattern.match(text, begins) if begins or at <= row.reach else None
        elif row.reach:
            found = pattern.search(text, max(done, at - row.reach), at + row.ahead)
        else:
            found = pattern.match(text, at)
        if found is not None:
            done = found.end()
            yield found


def _is_basic(value: str) -> bool:
    """Whether a value is base64 of two readable words with a colon between them."""
    clean = value.rstrip("=")
    clean = clean[: len(clean) // 4 * 4] or clean
    try:
        raw = base64.b64decode(clean)
    except (binascii.Error, ValueError):
        return False
    return b":" in raw and all(32 <= byte < 127 for byte in raw)


_CHECKS = CHECKS | {"meant": lambda _value: True, "basic": _is_basic}


def _lower(text: str) -> str:
    """The text in small letters, as long as the text, and with nothing that no encoding has."""
    lower = text.replace("\u0130", "\u0131").lower()  # the only letter that gets longer
    return lower if lower.isascii() else lower.encode("utf-8", "replace").decode()


def _hits(text: str) -> Hits:
    automaton, targets = _automaton()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # what no encoding has, it does not take
    rows: defaultdict[int, list[int]] = defaultdict(list)
    names: list[tuple[int, int]] = []
    for word, start, end in automaton.find_matches_as_indexes(text, overlapping=True):
        for target in targets[word]:
            if target == _NAME:
                names.append((start, end))
            else:
                rows[target].append(start)
    return Hits(rows, names)


@cache
def _automaton() -> tuple[AhoCorasick, list[tuple[int, ...]]]:
    """The automaton over all words, in the cases that people write, and the rows that need each."""
    needed: defaultdict[str, list[int]] = defaultdict(list)

    def add(word: str, target: int, *, any_case: bool = True) -> None:
        cases = (word.lower(), word.upper(), word.capitalize(), word.title()) if any_case else ()
        for case in dict.fromkeys((word, *cases)):  # in the same order in every process
            needed[case].append(target)

    for number, row in enumerate((*table().family, *table().owner)):
        for anchor in row.anchors:
            add(anchor, number, any_case="(?i" in row.pattern or not row.source)
    for part in table().names.parts:
        add(part, _NAME)
    automaton = AhoCorasick(list(needed), implementation=Implementation.DFA)
    return automaton, [tuple(targets) for targets in needed.values()]


@cache
def _unanchored() -> re.Pattern[str]:
    """The rows that have no words of their own, as one pattern; the groups have their ids."""
    rows = (row for row in table().family if not row.anchors)
    return re.compile("|".join(f"(?P<{row.id}>{row.pattern})" for row in rows))
