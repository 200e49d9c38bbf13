"""Detects text that tries to instruct the agent reading it, by the rules of `instructions.toml`."""

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

from journeyman.redaction.normalizer import decodings, find_base64, long_runs, parse_json
from journeyman.text.invisible import INVISIBLE_CHARACTERS, find_hidden_text

_MAX_JSON_DEPTH = 4

_ANSI = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\][^\x07\x1b]{0,80}(?:\x07|\x1b\\)|[()][0-9A-B])"
)
_INVISIBLE = re.compile(f"[{INVISIBLE_CHARACTERS}]")
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_HOMOGLYPHS = str.maketrans(
    "асеіјорԛѕԝхуԁһӏѵАВЕКМНОРСТХІЈЅУαοινρτυκεΑΒΕΖΗΙΚΜΝΟΡΤΥΧᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢıłđøŁĐØ’",
    "aceijopqswxydhlvABEKMHOPCTXIJSYaoivptukeABEZHIKMNOPTYXabcdefghijklmnoprtuvwyzildoLDO'",
)

_MIN_CODED_RUN = 24
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){16,}")

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,100}>|<!--")
_COMMENT_MARKS = frozenset(("//", "/", ";", ";;", "%"))
_MARKUP = '*_`~#|>"()[]{}<\\+=-'
# str.translate is fast only if the table contains every character.
_LOWER_CASE = {code: code for code in range(128)} | str.maketrans(
    string.ascii_uppercase + _MARKUP, string.ascii_lowercase + " " * len(_MARKUP)
)
_LOWER_CASE_LEET = _LOWER_CASE | str.maketrans("013457", "oieast")
_SPACED_LETTERS = re.compile(r"\b\w[ ._-]\w[ ._-](?:\w[ ._-]){0,38}\w\b(?!')")

_EVIDENCE_BEFORE = 20
_EVIDENCE_LENGTH = 120
_REACH = 400
"""How far from its anchors the match of a rule may extend."""

_MAX_DISGUISES = 2
"""How many nested disguises are undone."""

_WORD_REFERENCE = re.compile(r"\(\?&(\w+)\)")
_PATTERN_LINE_BREAK = re.compile(r"\n\s*")


def _json_strings(text: str) -> str:
    """Return the strings of JSON, including JSON in JSON, one per line; other text unchanged."""
    value = parse_json(text)
    if value is None:
        return text
    strings: list[str] = []
    pending: list[tuple[object, int]] = [(value, _MAX_JSON_DEPTH)]
    while pending:
        item, depth_left = pending.pop()
        if isinstance(item, dict):
            pending += reversed([(part, depth_left) for pair in item.items() for part in pair])
        elif isinstance(item, list):
            pending += [(part, depth_left) for part in reversed(item)]
        elif isinstance(item, str):
            inner = parse_json(item) if depth_left else None
            if inner is None:
                strings.append(item)
            else:
                pending.append((inner, depth_left - 1))
    return "\n".join(strings)


def _visible_text(text: str) -> str:
    """Return the text with escapes decoded, and without invisible characters."""
    *_, (text, _) = decodings(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
        text = text.encode("utf-8", "replace").decode()  # no lone surrogates
    return text


def _words(visible: str, *, leet: bool = False) -> list[str]:
    """Return the words in plain lower case; with `leet`, digits become similar letters."""
    if not visible.isascii():
        visible = _NON_ASCII.sub(lambda match: _to_ascii(match[0]), visible)
    if "<" in visible:
        visible = _TAG.sub(" ", visible)
    words = visible.translate(_LOWER_CASE_LEET if leet else _LOWER_CASE).split()
    if not _COMMENT_MARKS.isdisjoint(words):
        words = [word for word in words if word not in _COMMENT_MARKS]
    return words


@lru_cache(maxsize=4_096)
def _to_ascii(run: str) -> str:
    """Replace non-ASCII letters with the ASCII letters they resemble, all others with spaces."""
    latin = unicodedata.normalize("NFD", run.translate(_HOMOGLYPHS))
    return _NON_ASCII.sub(" ", _ACCENTS.sub("", latin))


def _decoded_runs(text: str) -> Iterator[str]:
    """Yield what the text contains in base64 or hexadecimal, decoded."""
    runs = long_runs(text)
    yield from (readable for _, _, readable in find_base64(runs))
    for run in runs:
        if _HEX.fullmatch(run[0]) and (raw := bytes.fromhex(run[0])).isascii():
            yield raw.decode()


class Suspicion(Struct, frozen=True, kw_only=True):
    """The rule that a text matched, what such a text does, and the words that matched."""

    rule: str
    reason: str
    evidence: str


class InstructionRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of `instructions.toml`, which documents the fields."""

    id: str
    about: str
    anchors: tuple[str, ...]
    pattern: str
    example: str
    requests: bool = True
    raw: bool = False


AnchoredRule = tuple[InstructionRule, int, int]
"""A rule with an anchor in a text, and the range from its first anchor to its last."""


def find_suspicion(texts: Iterable[str], *, requests: Iterable[str] = ()) -> Suspicion | None:
    """Return the first rule that matches one of the texts, or None. JSON is read as its strings.
    What people requested from their agent goes into `requests`: they may give it orders.
    """
    for group, is_request in ((requests, True), (texts, False)):
        for text in group:
            if suspicion := _find_in_text(text, _MAX_DISGUISES, is_request=is_request):
                return suspicion
    return None


def _find_in_text(text: str, depth: int, *, is_request: bool) -> Suspicion | None:
    strings = _json_strings(text)
    has_invisible = not strings.isascii() and _INVISIBLE.search(strings) is not None
    if has_invisible and (hidden := find_hidden_text(strings)):
        kind, at = hidden
        reason = f"This text contains hidden characters: {kind.reason}."
        return Suspicion(rule=kind.id, reason=reason, evidence=_excerpt(strings, at))
    sentence_rules, raw_rules = _rule_sets()
    visible = _visible_text(strings)
    words = _words(visible, leet=True)
    sentences = " ".join(words)
    candidates, is_disguised = sentence_rules.candidates(sentences)
    if candidates:
        plain = " ".join(_words(visible))
        for reading in dict.fromkeys((plain, sentences)):
            if suspicion := _first_match(candidates, reading, is_request=is_request):
                return suspicion
    # Roles are visible only in the JSON objects, not in their strings.
    has_roles = strings is not text and "role" in text
    for reading in (visible, _visible_text(text)) if has_roles else (visible,):
        candidates, _ = raw_rules.candidates(reading.lower())
        if suspicion := _first_match(candidates, reading, is_request=is_request):
            return suspicion
    if depth:
        may_be_encoded = max(map(len, words), default=0) >= _MIN_CODED_RUN
        inner = [*_decoded_runs(strings)] if may_be_encoded else []
        if is_disguised:  # undo spaced letters, reversal and rot13
            joined = _SPACED_LETTERS.sub(lambda match: match[0][::2], visible)
            inner.append(f"{joined}\n\n{visible[::-1]}\n\n{codecs.encode(visible, 'rot13')}")
        if inner:
            return _find_in_text("\n".join(inner), depth - 1, is_request=is_request)
    return None


def _first_match(
    candidates: Sequence[AnchoredRule], text: str, *, is_request: bool
) -> Suspicion | None:
    for rule, first, last in candidates:
        if is_request and not rule.requests:
            continue
        # Near its anchors, not at them: words left out of one reading shift those of another.
        match = _compiled_pattern(rule.pattern).search(text, max(0, first - _REACH), last + _REACH)
        if match is not None:
            evidence = _excerpt(text, match.start())
            return Suspicion(rule=rule.id, reason=f"This text {rule.about}.", evidence=evidence)
    return None


def _excerpt(text: str, at: int) -> str:
    """Return the match and a little text before it, with unprintable characters escaped."""
    start = max(0, at - _EVIDENCE_BEFORE)
    piece = text[start : start + _EVIDENCE_LENGTH]
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in piece
    )[:_EVIDENCE_LENGTH]


class _RuleSet:
    """Rules that read the same form of a text; one pass finds the anchors of all of them."""

    def __init__(self, rules: Iterable[InstructionRule], disguised: Iterable[str] = ()) -> None:
        self._rules = tuple(rules)
        by_anchor: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            for anchor in rule.anchors:
                by_anchor.setdefault(anchor, []).append(number)
        for word in disguised:  # spaced, reversed or in rot13
            variants = (" ".join(word), ".".join(word), word[::-1], codecs.encode(word, "rot13"))
            by_anchor.update((variant, [-1]) for variant in variants)
        self._numbers = list(by_anchor.values())
        self._anchors = AhoCorasick(list(by_anchor), implementation=Implementation.DFA)

    def candidates(self, text: str) -> tuple[list[AnchoredRule], bool]:
        """Return the rules with an anchor in the text, and whether it has a disguised word."""
        spans: dict[int, tuple[int, int]] = {}
        for word, start, end in self._anchors.find_matches_as_indexes(text, overlapping=True):
            for number in self._numbers[word]:
                spans[number] = (spans[number][0] if number in spans else start, end)
        is_disguised = spans.pop(-1, None) is not None
        return [(self._rules[number], *spans[number]) for number in sorted(spans)], is_disguised


@cache
def instruction_rules() -> tuple[InstructionRule, ...]:
    """Return all rules, with the named parts of their patterns expanded."""
    words = _rule_file()["words"]

    def expand(pattern: str) -> str:
        joined = _PATTERN_LINE_BREAK.sub("", f"\n{pattern}")
        return _WORD_REFERENCE.sub(lambda match: f"(?:{expand(words[match[1]])})", joined)

    read = msgspec.convert(_rule_file()["rule"], tuple[InstructionRule, ...])
    return tuple(msgspec.structs.replace(rule, pattern=expand(rule.pattern)) for rule in read)


@cache
def _rule_sets() -> tuple[_RuleSet, _RuleSet]:
    """Return the rules for sentences, and those for raw text."""
    sentences = _RuleSet(
        (rule for rule in instruction_rules() if not rule.raw), _rule_file()["disguised"]
    )
    return sentences, _RuleSet(rule for rule in instruction_rules() if rule.raw)


@cache
def _rule_file() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("instructions.toml").read_text("utf-8"))


@cache
def _compiled_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
