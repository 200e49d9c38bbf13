"""The search of a text for everything that must not be learned. One pass of an automaton over the
text finds the literal words that rows need; only the rows whose words are there are tried, and only
where they are.

Of the multi-pattern matchers, `ahocorasick_rs` was chosen: on 500 characters of recorded calls it
takes 4 µs, as do the sets of RE2 and Hyperscan (looking for each word by itself takes 200 µs). It
gives the places, which sets of RE2 do not, and runs on every processor, which Hyperscan does not.
"""

import base64
import binascii
import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from journeyman.redaction.assignments import find_assigned, find_in_secrets
from journeyman.redaction.families import Family, compiled, table
from journeyman.redaction.key_names import PLACEHOLDER, place_of
from journeyman.redaction.normaliser import (
    View,
    find_base64,
    joined,
    long_runs,
    spellings,
    view_of,
)
from journeyman.redaction.people import find_people, is_home, is_personal
from journeyman.redaction.values import Found, looks_generated, looks_random, refers

_SHORTEST = 5
_REMEMBERED = 4_096
_FAR = 1000
_DEEPEST = 3
"""How often base64 may hold base64."""

_NAME, _SECRETS = -1, -2
_KUBERNETES = "kind: Secret"

Ranked = tuple[int, Found]
"""What was found, with its rank: where findings overlap, the lowest rank counts, then the longest.
Secrets known by their form and base64 that holds some; values known by their place; details of
people; names of users."""


class Hits(NamedTuple):
    """Where the words of rows stand: for each row its places, for names the stretches of their
    words; and whether a Secret of Kubernetes may be there.
    """

    rows: dict[int, list[int]]
    names: list[tuple[int, int]]
    secrets: bool


def find_secrets(text: str, *, people: bool = True) -> tuple[Found, ...]:
    """All secrets of a text, and with `people` their details and names, in order and without
    overlaps. What cuts through a placeholder is none. Learning reads a text several times, as part
    of several patterns, and texts of the length that it keeps are remembered.
    """
    if len(text) < _SHORTEST:
        return ()
    if len(text) <= _REMEMBERED:
        return _find_cached(text, people=people)
    return _find(text, people=people)


@lru_cache(maxsize=1_024)
def _find_cached(text: str, *, people: bool) -> tuple[Found, ...]:
    return _find(text, people=people)


def _find(text: str, *, people: bool, depth: int = 0) -> tuple[Found, ...]:
    ranked: list[Ranked] = []
    known: set[str] = set()
    level, spelling, starts = 0, text, set[int]()
    for level, (spelling, is_other) in enumerate(spellings(text)):
        hits = _hits(spelling)
        found = [*_rows(spelling, hits)] if hits.rows else []
        if hits.names or hits.secrets:
            found += ((2, one) for one in _named(spelling, hits))
        if people:
            found += ((4, one) for one in _owners(spelling, hits)) if hits.rows else ()
            found += ((3, one) for one in find_people(spelling)) if is_other else ()
        if is_other:
            found += _encoded(spelling, people=people, depth=depth)
        starts = {one.start for rank, one in found if rank == 1}
        # What stands in the text as it is written need not be found again in another spelling.
        found = [one for one in found if not level or _value(spelling, one[1]) not in known]
        if found:
            view = view_of(text, level)
            ranked += (_placed(view, one) for one in found)
            known.update(_value(spelling, one) for _, one in found)
    broken = joined(text, level, spelling, starts)
    if broken is not None:
        ranked += (_placed(broken, one) for one in _find_broken(broken, people=people, depth=depth))
    return tuple(_resolved(text, ranked)) if ranked else ()


def _value(text: str, found: Found) -> str:
    return found.value or text[found.start : found.end]


def _placed(view: View, one: Ranked) -> Ranked:
    rank, found = one
    start, end = view.origin(found.start, found.end)
    return rank, Found(start, end, found.family, found.wants_quotes, _value(view.text, found))


def _resolved(text: str, ranked: list[Ranked]) -> list[Found]:
    taken: list[Found] = []
    kept = [found.span() for found in PLACEHOLDER.finditer(text)] if "<" in text else []
    for _, one in sorted(ranked, key=lambda two: (two[0], two[1].start - two[1].end)):
        at = bisect_left(taken, (one.start, one.end))
        if at and taken[at - 1].end > one.start:
            continue
        if at < len(taken) and taken[at].start < one.end:
            continue
        near = kept[max(0, bisect_left(kept, (one.start, 0)) - 1) : bisect_left(kept, (one.end, 0))]
        if one.start < one.end and not any(_cuts(one, *span) for span in near):
            insort(taken, one)
    return taken


def _cuts(one: Found, start: int, end: int) -> bool:
    return one.start < end and start < one.end and not (one.start <= start and end <= one.end)


def _named(text: str, hits: Hits) -> Iterator[Found]:
    """What the name before it gives away."""
    yield from find_assigned(text, _lower(text), hits.names)
    if hits.secrets:
        yield from find_in_secrets(text)


def _encoded(text: str, *, people: bool, depth: int) -> Iterator[Ranked]:
    """Rows that have no words of their own, and base64 that holds secrets."""
    runs = long_runs(text)
    if not runs:
        return
    for run in runs:
        start = run.start()
        if text[start - 1 : start] == "\\" and text[start] in "nrt":
            start += 1  # the letter of an escaped line break
        if (one := _unanchored().match(text, start)) is not None:
            yield 1, Found(*one.span(), str(one.lastgroup))
    for coded in find_base64(runs) if depth < _DEEPEST else ():
        if _find(coded.text, people=people, depth=depth + 1):
            yield 1, Found(coded.start, coded.end, "encoded")


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
    runs = long_runs(text)
    for run in runs:
        found = _unanchored().match(text, run.start())
        if found is not None and view.first_join(*found.span()):
            yield 1, Found(*found.span(), str(found.lastgroup))
    for coded in find_base64(runs) if depth < _DEEPEST else ():
        if view.first_join(coded.start, coded.end) and _find(
            coded.text, people=people, depth=depth + 1
        ):
            yield 1, Found(coded.start, coded.end, "encoded")


def _is_broken(left: str, right: str) -> bool:
    """Whether what stands before and behind a line end looks like two halves of one value."""
    right = right.split(maxsplit=1)[0].rstrip(";,")
    if looks_random(right):
        return len(left) >= 4
    return len(right) >= 4 and looks_generated(left + right) and looks_random(left)


def _rows(text: str, hits: Hits, *, broken: View | None = None) -> Iterator[Ranked]:
    families = table().family
    for number, places in sorted(hits.rows.items()):
        if number >= len(families):
            break
        row = families[number]
        rank = 2 if row.check else 1
        for found in _matches(row, text, places):
            group = found.lastindex or 0
            value = found[group]
            if not _passes(row.check, value) or ("<" in value and PLACEHOLDER.search(value)):
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


def _passes(check: str, value: str) -> bool:
    if not check:
        return True
    if refers(value):
        return False
    if check == "basic":
        return _is_basic(value)
    if check == "generated":
        return looks_generated(value)
    return check == "meant" or looks_random(value)


def _is_basic(value: str) -> bool:
    """Whether a value is base64 of two readable words with a colon between them."""
    clean = value.rstrip("=")
    clean = clean[: len(clean) // 4 * 4] or clean
    try:
        raw = base64.b64decode(clean)
    except (binascii.Error, ValueError):
        return False
    return b":" in raw and all(32 <= byte < 127 for byte in raw)


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
    secrets = False
    for word, start, end in automaton.find_matches_as_indexes(text, overlapping=True):
        for target in targets[word]:
            if target >= 0:
                rows[target].append(start)
            elif target == _NAME:
                names.append((start, end))
            else:
                secrets = True
    return Hits(rows, names, secrets)


def _cases(word: str) -> dict[str, None]:
    """The cases in which people write a word, in an order that is the same in every process."""
    cases = (word, word.lower(), word.upper(), word.capitalize(), word.title())
    return dict.fromkeys(cases)


@cache
def _automaton() -> tuple[AhoCorasick, list[tuple[int, ...]]]:
    """The automaton over all words, and for each word the rows that need it. Where a row does not
    mind the case, its words are looked for in the cases in which people write.
    """
    needed: defaultdict[str, list[int]] = defaultdict(list)
    for number, row in enumerate((*table().family, *table().owner)):
        any_case = "(?i" in row.pattern or not row.source
        for anchor in row.anchors:
            for word in _cases(anchor) if any_case else (anchor,):
                needed[word].append(number)
    for part in table().names.parts:
        for word in _cases(part):
            needed[word].append(_NAME)
    needed[_KUBERNETES].append(_SECRETS)
    automaton = AhoCorasick(list(needed), implementation=Implementation.DFA)
    return automaton, [tuple(targets) for targets in needed.values()]


@cache
def _unanchored() -> re.Pattern[str]:
    """The rows that have no words of their own, as one pattern; the groups have their ids."""
    rows = (row for row in table().family if not row.anchors)
    return re.compile("|".join(f"(?P<{row.id}>{row.pattern})" for row in rows))
