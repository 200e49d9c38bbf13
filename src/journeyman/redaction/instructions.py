"""Text that tries to instruct the agent that reads it, and is kept out of all that is learned. The
rules are rows of `instructions.toml`; hidden characters are in `invisible`.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from ahocorasick_rs import AhoCorasick, Implementation
from msgspec import Struct

from journeyman.redaction.disguises import (
    as_shown,
    decoded,
    disguises_of,
    has_unseen,
    may_be_coded,
    strings_of,
    undisguised,
    words_of,
)
from journeyman.text.invisible import find_invisible

_BEFORE = 20
_EVIDENCE = 120
_REACH = 400
"""How far from its anchors the words of a rule may stand."""

_DEEPEST = 2
"""How often a disguise inside a disguise is undone."""

_WORDS = re.compile(r"\(\?&(\w+)\)")
_LINE_BREAK = re.compile(r"\n\s*")
_WORD = re.compile(r"[a-z0-9]+")
_FIRST_WORDS = 8
_LEET = {letter: f"[{letter}{digit}]" for letter, digit in zip("oieast", "013457", strict=True)}


class Suspicion(Struct, frozen=True, kw_only=True):
    """The rule that a text fell under, what such a text does, and the words that made it."""

    rule: str
    reason: str
    evidence: str


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `instructions.toml`, which says what the fields mean."""

    id: str
    about: str
    anchors: tuple[str, ...]
    pattern: str
    example: str
    requests: bool = True
    raw: bool = False


Held = tuple[Rule, int, int]
"""A rule of which an anchor is in a text, and the stretch from the first to the last."""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    disguised: tuple[str, ...]
    words: dict[str, str]
    rule: tuple[Rule, ...]


def find_suspicion(texts: Iterable[str], *, requests: Iterable[str] = ()) -> Suspicion | None:
    """The first rule that fits one of the texts. JSON is read as the strings it holds. What people
    asked of their agent goes into `requests`: they may speak to it.
    """
    for some, asked in ((requests, True), (texts, False)):
        for text in some:
            if suspicion := _find(text, _DEEPEST, asked=asked):
                return suspicion
    return None


def _find(text: str, depth: int, *, asked: bool) -> Suspicion | None:
    strings = strings_of(text)
    if has_unseen(strings) and (hidden := find_invisible(strings)):
        kind, at = hidden
        reason = f"This text holds hidden characters: {kind.reason}."
        return Suspicion(rule=kind.id, reason=reason, evidence=_excerpt(strings, at))
    tables = _tables()
    shown = as_shown(strings)
    words = words_of(shown, leet=True)
    sentences = " ".join(words)
    held, is_disguised = tables.sentences.held(sentences)
    if held:
        plain = " ".join(words_of(shown))
        if suspicion := _first(held, sentences, shown, asked=asked):
            return suspicion
        if plain != sentences and (suspicion := _first(held, plain, shown, asked=asked)):
            return suspicion
    # Roles show in the objects of JSON only, not in the strings that these hold.
    has_roles = strings is not text and "role" in text
    for reading in (shown, as_shown(text)) if has_roles else (shown,):
        held, _ = tables.raw.held(reading.lower())
        if suspicion := _first(held, reading, reading, asked=asked):
            return suspicion
    if depth:
        inner = [*decoded(strings)] if may_be_coded(words) else []
        if is_disguised:
            inner.append(undisguised(shown))
        if inner:
            return _find("\n".join(inner), depth - 1, asked=asked)
    return None


def _first(held: Sequence[Held], text: str, shown: str, *, asked: bool) -> Suspicion | None:
    for rule, first, last in held:
        if asked and not rule.requests:
            continue
        # Not far from its anchors: words that are left out of one reading move those of another.
        found = _compiled(rule.pattern).search(text, max(0, first - _REACH), last + _REACH)
        if found is not None:
            at = found.start() if text is shown else _place(found[0], shown)
            evidence = _excerpt(text, found.start()) if at is None else _excerpt(shown, at)
            return Suspicion(rule=rule.id, reason=f"This text {rule.about}.", evidence=evidence)
    return None


def _place(found: str, shown: str) -> int | None:
    """Where the first words of what was found stand in the text as it is shown."""
    words = [
        "".join(_LEET.get(letter, letter) for letter in word)
        for word in _WORD.findall(found)[:_FIRST_WORDS]
    ]
    place = re.search(r"[\W_]+".join(words), shown, re.IGNORECASE)
    return place.start() if place else None


def _excerpt(text: str, at: int) -> str:
    """What a rule saw and a little before it, with characters that are not shown as escapes."""
    start = max(0, at - _BEFORE)
    piece = text[start : start + _EVIDENCE]
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in piece
    )[:_EVIDENCE]


class _Table:
    """Rules that read the same form of a text. Most texts hold no anchor of any rule, so that one
    pass looks for all anchors before a pattern is tried.
    """

    def __init__(self, rules: Iterable[Rule], disguised: Iterable[str] = ()) -> None:
        self._rules = tuple(rules)
        by_anchor: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for anchor in rule.anchors:
                by_anchor.setdefault(anchor, []).append(number)
        for word in disguised:
            by_anchor.update((one, [-1]) for one in disguises_of(word))
        self._numbers = list(by_anchor.values())
        self._anchors = AhoCorasick(list(by_anchor), implementation=Implementation.DFA)

    def held(self, text: str) -> tuple[list[Held], bool]:
        """The rules of which an anchor is in the text, and whether a disguised word is."""
        spans: dict[int, tuple[int, int]] = {}
        for word, start, end in self._anchors.find_matches_as_indexes(text, overlapping=True):
            for number in self._numbers[word]:
                spans[number] = (spans[number][0] if number in spans else start, end)
        is_disguised = spans.pop(-1, None) is not None
        return [(self._rules[one], *spans[one]) for one in sorted(spans)], is_disguised


class _Tables(Struct, frozen=True):
    sentences: _Table
    raw: _Table


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, with their patterns whole."""
    read = _file()

    def whole(pattern: str) -> str:
        joined = _LINE_BREAK.sub("", f"\n{pattern}")
        return _WORDS.sub(lambda found: f"(?:{whole(read.words[found[1]])})", joined)

    return tuple(msgspec.structs.replace(one, pattern=whole(one.pattern)) for one in read.rule)


@cache
def _tables() -> _Tables:
    return _Tables(
        _Table((one for one in rules() if not one.raw), _file().disguised),
        _Table(one for one in rules() if one.raw),
    )


@cache
def _file() -> _File:
    text = files("journeyman.redaction").joinpath("instructions.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _File)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
