"""Undoing disguises: a text as a model may read it. Wrappings are opened, escapes spelled out,
unseen characters removed, letters that look alike made one, so that rules need only one spelling.
"""

import codecs
import json
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from journeyman.redaction.normaliser import find_base64, long_runs, spellings
from journeyman.text.invisible import UNSEEN

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
_LEET = _PLAIN | str.maketrans("013457", "oieast")
_SPELLED = re.compile(r"\b\w[ ._-]\w[ ._-](?:\w[ ._-]){0,38}\w\b(?!')")


def strings_of(text: str) -> str:
    """The strings of a text that is JSON, one to a line, those of JSON inside of JSON too; any
    other text as it is.
    """
    value = _open(text)
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
            inner = _open(one) if left else None
            if inner is None:
                found.append(one)
            else:
                rest.append((inner, left - 1))
    return "\n".join(found)


def _open(text: str) -> object:
    if text[:64].lstrip()[:1] not in ("{", "[", '"') or text[-64:].rstrip()[-1:] not in '}]"':
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def has_unseen(text: str) -> bool:
    """Whether there are characters in a text that a person does not see."""
    return not text.isascii() and _UNSEEN.search(text) is not None


def as_shown(text: str) -> str:
    """The text with escapes spelled out, and without what is not seen."""
    *_, (text, _) = spellings(text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
        text = text.encode("utf-8", "replace").decode()  # half characters are no text
    return text


def words_of(shown: str, *, leet: bool = False) -> list[str]:
    """The words of a text in plain lower case, without the marks between them; with `leet`, digits
    count as the letters that they look like.
    """
    if not shown.isascii():
        shown = _BEYOND_ASCII.sub(lambda found: _as_ascii(found[0]), shown)
    if "<" in shown:
        shown = _TAG.sub(" ", shown)
    words = shown.translate(_LEET if leet else _PLAIN).split()
    if not _LONE_MARKS.isdisjoint(words):
        words = [word for word in words if word not in _LONE_MARKS]
    return words


@lru_cache(maxsize=4_096)
def _as_ascii(run: str) -> str:
    """Letters beyond ASCII as those that they look like, and spaces for all others."""
    latin = unicodedata.normalize("NFD", run.translate(_LOOK_ALIKE))
    return _BEYOND_ASCII.sub(" ", _ACCENTS.sub("", latin))


def may_be_coded(words: Iterable[str]) -> bool:
    """Whether a word is so long that `decoded` may find something in its text."""
    return max(map(len, words), default=0) >= _SHORTEST_RUN


def decoded(text: str) -> Iterator[str]:
    """What is coded in base64 or as hexadecimal digits in a text."""
    runs = long_runs(text)
    yield from (run.text for run in find_base64(runs))
    for run in runs:
        if _HEX.fullmatch(run[0]):
            raw = bytes.fromhex(run[0])
            if raw.isascii():
                yield raw.decode()


def disguises_of(word: str) -> Iterator[str]:
    """A word as it reads when its letters are spelled apart, reversed or moved by 13."""
    yield from (" ".join(word), ".".join(word), word[::-1], codecs.encode(word, "rot13"))


def undisguised(shown: str) -> str:
    """The text with letters that are spelled apart joined, then reversed, then moved by 13: for
    one in which a disguised word was found.
    """
    joined = _SPELLED.sub(lambda found: found[0][::2], shown)
    return f"{joined}\n\n{shown[::-1]}\n\n{codecs.encode(shown, 'rot13')}"
