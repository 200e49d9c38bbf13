"""Text that tries to instruct the agent that reads it, by the rules of `instructions.toml`."""

import codecs
import re
import string
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import msgspec
from ahocorasick_rs import AhoCorasick, Implementation
from msgspec import Struct

from journeyman.redaction.normaliser import find_base64, long_runs, opened, spellings
from journeyman.text.invisible import UNSEEN, find_invisible

_DEEPEST_JSON = 4

_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,80}(?:\x07|\x1b\\)|[()][0-9A-B])"
)
_UNSEEN = re.compile(f"[{UNSEEN}]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_LOOK_ALIKE = str.maketrans(
    "асеіјорԛѕԝхуԁһӏѵАВЕКМНОРСТХІЈЅУαοινρτυκεΑΒΕΖΗΙΚΜΝΟΡΤΥΧᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢıłđøŁĐØ’",
    "aceijopqswxydhlvABEKMHOPCTXIJSYaoivptukeABEZHIKMNOPTYXabcdefghijklmnoprtuvwyzildoLDO'",
)

_SHORTEST_RUN = 24
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){16,}")

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,100}>|<!--")
_LONE_MARKS = frozenset(("//", "/", ";", ";;", "%"))
_MARKS = '*_`~#|>"()[]{}<\\+=-'
# Translation is fast only where the table knows every letter.
_PLAIN = {code: code for code in range(128)} | str.maketrans(
    string.ascii_uppercase + _MARKS, string.ascii_lowercase + " " * len(_MARKS)
)
_DIGITS_AS_LETTERS = _PLAIN | str.maketrans("013457", "oieast")
_SPELLED = re.compile(r"\b\w[ ._-]\w[ ._-](?:\w[ ._-]){0,38}\w\b(?!')")

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


def _strings(text: str) -> str:
    """The strings of JSON, also of JSON in JSON, one to a line; any other text as it is."""
    value = opened(text)
    if value is None:
        return text
    found: list[str] = []
    rest: list[tuple[object, int]] = [(value, _DEEPEST_JSON)]
    while rest:
        one, left = rest.pop()
        if isinstance(one, dict):
            rest += reversed([(part, left) for pair in one.items() for part in pair])
        elif isinstance(one, list):
            rest += [(part, left) for part in reversed(one)]
        elif isinstance(one, str):
            inner = opened(one) if left else None
            if inner is None:
                found.append(one)
            else:
                rest.append((inner, left - 1))
    return "\n".join(found)


def _shown(text: str) -> str:
    """The text with escapes spelled out, and without what is not seen."""
    *_, (text, _) = spellings(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
        text = text.encode("utf-8", "replace").decode()  # half characters are no text
    return text


def _words(shown: str, *, leet: bool = False) -> list[str]:
    """The words in plain lower case; with `leet`, digits count as letters they look like."""
    if not shown.isascii():
        shown = _BEYOND_ASCII.sub(lambda found: _as_ascii(found[0]), shown)
    if "<" in shown:
        shown = _TAG.sub(" ", shown)
    words = shown.translate(_DIGITS_AS_LETTERS if leet else _PLAIN).split()
    if not _LONE_MARKS.isdisjoint(words):
        words = [word for word in words if word not in _LONE_MARKS]
    return words


@lru_cache(maxsize=4_096)
def _as_ascii(run: str) -> str:
    """Letters beyond ASCII as those that they look like, and spaces for all others."""
    latin = unicodedata.normalize("NFD", run.translate(_LOOK_ALIKE))
    return _BEYOND_ASCII.sub(" ", _ACCENTS.sub("", latin))


def _decoded(text: str) -> Iterator[str]:
    """What is coded in base64 or as hexadecimal digits in a text."""
    runs = long_runs(text)
    yield from (readable for _, _, readable in find_base64(runs))
    for run in runs:
        if _HEX.fullmatch(run[0]) and (raw := bytes.fromhex(run[0])).isascii():
            yield raw.decode()


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
    strings = _strings(text)
    has_unseen = not strings.isascii() and _UNSEEN.search(strings) is not None
    if has_unseen and (hidden := find_invisible(strings)):
        kind, at = hidden
        reason = f"This text holds hidden characters: {kind.reason}."
        return Suspicion(rule=kind.id, reason=reason, evidence=_excerpt(strings, at))
    in_sentences, in_raw = _tables()
    shown = _shown(strings)
    words = _words(shown, leet=True)
    sentences = " ".join(words)
    held, is_disguised = in_sentences.held(sentences)
    if held:
        plain = " ".join(_words(shown))
        for reading in dict.fromkeys((sentences, plain)):
            if suspicion := _first(held, reading, shown, asked=asked):
                return suspicion
    # Roles show in the objects of JSON only, not in the strings that these hold.
    has_roles = strings is not text and "role" in text
    for reading in (shown, _shown(text)) if has_roles else (shown,):
        held, _ = in_raw.held(reading.lower())
        if suspicion := _first(held, reading, reading, asked=asked):
            return suspicion
    if depth:
        may_be_coded = max(map(len, words), default=0) >= _SHORTEST_RUN
        inner = [*_decoded(strings)] if may_be_coded else []
        if is_disguised:  # letters that are spelled apart are joined, then all of them turned back
            joined = _SPELLED.sub(lambda found: found[0][::2], shown)
            inner.append(f"{joined}\n\n{shown[::-1]}\n\n{codecs.encode(shown, 'rot13')}")
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
    """Rules that read the same form of a text; one pass looks for the anchors of all of them."""

    def __init__(self, rules: Iterable[Rule], disguised: Iterable[str] = ()) -> None:
        self._rules = tuple(rules)
        by_anchor: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for anchor in rule.anchors:
                by_anchor.setdefault(anchor, []).append(number)
        for word in disguised:  # spelled apart, reversed, or moved by 13
            written = (" ".join(word), ".".join(word), word[::-1], codecs.encode(word, "rot13"))
            by_anchor.update((one, [-1]) for one in written)
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


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, with their patterns whole."""

    def whole(pattern: str) -> str:
        joined = _LINE_BREAK.sub("", f"\n{pattern}")
        return _WORDS.sub(lambda found: f"(?:{whole(_file()['words'][found[1]])})", joined)

    read = msgspec.convert(_file()["rule"], tuple[Rule, ...])
    return tuple(msgspec.structs.replace(one, pattern=whole(one.pattern)) for one in read)


@cache
def _tables() -> tuple[_Table, _Table]:
    """The rules for sentences, and those for text as it is written."""
    sentences = _Table((one for one in rules() if not one.raw), _file()["disguised"])
    return sentences, _Table(one for one in rules() if one.raw)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("instructions.toml").read_text("utf-8"))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
