"""Searches a text for secrets and personal data. One pass of an automaton finds the anchors of all
rows; only rows with an anchor in the text are tried, and only at their anchors.
"""

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

# As fast as RE2 sets, which report no positions, and Hyperscan, which needs certain processors.
from ahocorasick_rs import AhoCorasick, Implementation

from journeyman.redaction.assignments import find_kubernetes_secrets, find_named_secrets
from journeyman.redaction.families import Family, compiled_pattern, load_families
from journeyman.redaction.normalizer import (
    MappedText,
    decodings,
    find_base64,
    join_broken_tokens,
    long_runs,
    mapped_decoding,
)
from journeyman.redaction.personal_data import find_personal_data, is_home_of_person, is_personal
from journeyman.redaction.secret_values import (
    CHECKS,
    PLACEHOLDER,
    Span,
    field_kind,
    is_reference,
    looks_generated,
    looks_random,
)

_MIN_LENGTH = 5
_MAX_CACHED_LENGTH = 4_096
_LONG_REACH = 1000
_MAX_BASE64_DEPTH = 3
"""How many levels of base64 in base64 are searched."""

_NAME_WORD = -1
_KUBERNETES = "kind: Secret"

RankedSpan = tuple[int, Span]
"""A span with its rank: 1 by form or base64, 2 by name or context, 3 personal data, 4 user names.
Where spans overlap, the lowest rank wins, then the longest."""


class AnchorMatches(NamedTuple):
    """Where anchors occur: the offsets for each row number, and the ranges of words of names."""

    rows: dict[int, list[int]]
    names: list[tuple[int, int]]


def find_secrets(text: str, *, people: bool = True) -> tuple[Span, ...]:
    """Return all secrets of a text, and with `people` personal data and user names too, in order
    and without overlaps. Learning reads a text several times, so results for texts of the length
    that it keeps are cached.
    """
    if len(text) < _MIN_LENGTH:
        return ()
    return (_find_cached if len(text) <= _MAX_CACHED_LENGTH else _find)(text, people=people)


def _find(text: str, *, people: bool, depth: int = 0) -> tuple[Span, ...]:
    ranked: list[RankedSpan] = []
    known_values: set[str] = set()
    level, decoded, secret_starts = 0, text, set[int]()
    for level, (decoded, may_differ) in enumerate(decodings(text)):
        anchors = _anchor_matches(decoded)
        spans = [*_family_spans(decoded, anchors)] if anchors.rows else []
        if anchors.names:
            spans += ((2, span) for span in find_named_secrets(decoded, anchors.names))
        if _KUBERNETES in decoded:
            spans += ((2, span) for span in find_kubernetes_secrets(decoded))
        if people:
            spans += ((4, span) for span in _user_names(decoded, anchors)) if anchors.rows else ()
            spans += ((3, span) for span in find_personal_data(decoded)) if may_differ else ()
        if may_differ:
            spans += _find_unanchored(decoded, people=people, depth=depth)
        secret_starts = {span.start for rank, span in spans if rank == 1}
        # A value found in the text itself need not be found again in a decoding.
        spans = [
            (rank, span)
            for rank, span in spans
            if span.start < span.end
            and (not level or _span_value(decoded, span) not in known_values)
        ]
        if spans:
            mapped = mapped_decoding(text, level)
            ranked += (_mapped_back(mapped, span) for span in spans)
            known_values.update(_span_value(decoded, span) for _, span in spans)
    joined = join_broken_tokens(text, level, decoded, secret_starts)
    if joined is not None:
        ranked += (
            _mapped_back(joined, span) for span in _find_broken(joined, people=people, depth=depth)
        )
    return tuple(_without_overlaps(text, ranked)) if ranked else ()


_find_cached = lru_cache(maxsize=1_024)(_find)


def _span_value(text: str, span: Span) -> str:
    return span.value or text[span.start : span.end]


def _mapped_back(mapped: MappedText, ranked: RankedSpan) -> RankedSpan:
    rank, span = ranked
    start, end = mapped.starts[span.start], mapped.ends[span.end - 1]
    return rank, Span(start, end, span.family, _span_value(mapped.text, span))


def _without_overlaps(text: str, ranked: list[RankedSpan]) -> list[Span]:
    spans: list[Span] = []
    taken, inside = bytearray(len(text)), bytearray(len(text) + 1)  # inside placeholders
    for placeholder in PLACEHOLDER.finditer(text) if "<" in text else ():
        inside[placeholder.start() + 1 : placeholder.end()] = b"\1" * (len(placeholder[0]) - 1)
    for _, span in sorted(ranked, key=lambda item: (item[0], item[1].start - item[1].end)):
        cuts_placeholder = inside[span.start] or inside[span.end]
        if not cuts_placeholder and taken.find(1, span.start, span.end) < 0:
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
            spans.append(span)
    return sorted(spans)


def _find_unanchored(
    text: str, *, people: bool, depth: int, joined: MappedText | None = None
) -> Iterator[RankedSpan]:
    """Yield matches of rows without anchors, and base64 that contains secrets. With `joined`, yield
    only those that span a line break.
    """
    runs = long_runs(text)
    for run in runs:
        start = run.start()
        if text[start - 1 : start] == "\\" and text[start] in "nrt":
            start += 1  # the letter of an escape such as \n
        match = _unanchored_pattern().match(text, start)
        if match is not None and (joined is None or joined.first_join(*match.span())):
            yield 1, Span(*match.span(), str(match.lastgroup))
    for start, end, readable in find_base64(runs) if depth < _MAX_BASE64_DEPTH else ():
        is_new = joined is None or joined.first_join(start, end)
        if is_new and _find(readable, people=people, depth=depth + 1):
            yield 1, Span(start, end, "encoded")


def _find_broken(joined: MappedText, *, people: bool, depth: int) -> Iterator[RankedSpan]:
    """Yield secrets that a line break splits: the same search, limited to matches across one."""
    text = joined.text
    anchors = _anchor_matches(text)
    for rank, span in _family_spans(text, anchors, joined=joined):
        join = joined.first_join(span.start, span.end)
        is_list = (
            join and text[span.start : span.end].isalpha() and joined.first_join(join, span.end)
        )
        if join and not is_list:
            yield rank, span
    for span in find_named_secrets(text, anchors.names):
        join = joined.first_join(span.start, span.end)
        left, right = text[span.start : join], text[join : span.end]
        if join and field_kind(left) is None and _are_halves(left, right):
            yield 2, span
    yield from _find_unanchored(text, people=people, depth=depth, joined=joined)


def _are_halves(left: str, right: str) -> bool:
    """Whether the text before and after a line break looks like two halves of one value."""
    right = right.split(maxsplit=1)[0].rstrip(";,")
    if looks_random(right):
        return len(left) >= 4
    return len(right) >= 4 and looks_generated(left + right) and looks_random(left)


def _family_spans(
    text: str, anchors: AnchorMatches, *, joined: MappedText | None = None
) -> Iterator[RankedSpan]:
    families = load_families().family
    for number in sorted(number for number in anchors.rows if number < len(families)):
        row, rank = families[number], 2 if families[number].check else 1
        for match in _row_matches(row, text, anchors.rows[number]):
            group = match.lastindex or 0
            value = match[group]
            if row.check and (is_reference(value) or not _CHECKS[row.check](value)):
                continue
            if "<" in value and PLACEHOLDER.search(value):
                continue
            join = joined.first_join(*match.span(group)) if joined is not None else 0
            if join and row.length and join - match.start() >= row.length:
                continue  # it was complete before the line break
            yield rank, Span(*match.span(group), row.id)


def _user_names(text: str, anchors: AnchorMatches) -> Iterator[Span]:
    """Yield user names in home folder paths and in contexts that only contain user names."""
    first = len(load_families().family)
    for number, starts in anchors.rows.items():
        if number < first:
            continue
        row = load_families().owner[number - first]
        for match in _row_matches(row, text, starts):
            group = match.lastindex or 0
            if is_home_of_person(match) if row.id.startswith("home") else is_personal(match[group]):
                yield Span(*match.span(group), "user", match[group])


def _row_matches(row: Family, text: str, starts: list[int]) -> Iterator[re.Match[str]]:
    pattern = compiled_pattern(row)
    searched_to = 0
    for previous, start in zip((0, *starts), starts, strict=False):
        if start < searched_to:
            continue
        if row.reach > _LONG_REACH:
            searched_to = max(searched_to, previous)
        if row.line:
            earliest = max(0, start - row.reach)
            line_start = max(text.rfind(sign, earliest, start) for sign in '\n"') + 1
            match = pattern.match(text, line_start) if line_start or start <= row.reach else None
        elif row.reach:
            match = pattern.search(text, max(searched_to, start - row.reach), start + row.ahead)
        else:
            match = pattern.match(text, start)
        if match is not None:
            searched_to = match.end()
            yield match


def _is_basic_auth(value: str) -> bool:
    """Whether a value is base64 of `user:password` in readable characters."""
    clean = value.rstrip("=")
    clean = clean[: len(clean) // 4 * 4] or clean
    try:
        raw = base64.b64decode(clean)
    except (binascii.Error, ValueError):
        return False
    return b":" in raw and all(32 <= byte < 127 for byte in raw)


_CHECKS = CHECKS | {"meant": lambda _value: True, "basic": _is_basic_auth}


def _anchor_matches(text: str) -> AnchorMatches:
    automaton, targets = _automaton()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # it rejects lone surrogates
    rows: defaultdict[int, list[int]] = defaultdict(list)
    names: list[tuple[int, int]] = []
    for word, start, end in automaton.find_matches_as_indexes(text, overlapping=True):
        for target in targets[word]:
            if target == _NAME_WORD:
                names.append((start, end))
            else:
                rows[target].append(start)
    return AnchorMatches(rows, names)


@cache
def _automaton() -> tuple[AhoCorasick, list[tuple[int, ...]]]:
    """Return the automaton over all anchors in their usual cases, and the rows of each anchor."""
    targets_by_word: defaultdict[str, list[int]] = defaultdict(list)

    def add(word: str, target: int, *, any_case: bool = True) -> None:
        cases = (word.lower(), word.upper(), word.capitalize(), word.title()) if any_case else ()
        for case in dict.fromkeys((word, *cases)):  # a deterministic order
            targets_by_word[case].append(target)

    for number, row in enumerate((*load_families().family, *load_families().owner)):
        for anchor in row.anchors:
            add(anchor, number, any_case="(?i" in row.pattern or not row.source)
    for part in load_families().names.parts:
        add(part, _NAME_WORD)
    automaton = AhoCorasick(list(targets_by_word), implementation=Implementation.DFA)
    return automaton, [tuple(targets) for targets in targets_by_word.values()]


@cache
def _unanchored_pattern() -> re.Pattern[str]:
    """Return the rows without anchors as one pattern; the groups are named by their ids."""
    rows = (row for row in load_families().family if not row.anchors)
    return re.compile("|".join(f"(?P<{row.id}>{row.pattern})" for row in rows))
