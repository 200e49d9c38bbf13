"""What templates and tags may be called. A name is typed by hand, stands in tables and may become
a file's name, so that it holds only what can be seen and what every file system takes.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from journeyman.records.errors import BadTemplate
from journeyman.text.invisible import UNSEEN

LONGEST_NAME = 80
LONGEST_TAG = 40
_LONGEST_MADE_NAME = 40
_LAST_RESORT = "template"

_ALLOWED = (
    f"A name has 1 to {LONGEST_NAME} letters, digits, spaces, '-', '_' or '.', and begins with a "
    "letter or a digit."
)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9])\Z", re.IGNORECASE)
_VERSION = re.compile(r"[1-9][0-9]{0,8}\Z")

_UNSEEN = re.compile(f"[{UNSEEN}]")


class NameRule(NamedTuple):
    """Something a name must not be. `says` goes on after "because"."""

    id: str
    broken: Callable[[str], bool]
    example: str
    says: str


def _kind(letter: str) -> str:
    """L, M and Nd are letters, the marks on them and digits."""
    kind = unicodedata.category(letter)
    return kind if kind == "Nd" else kind[0]


def _stands_in_words(letter: str) -> bool:
    return _kind(letter) in ("L", "M", "Nd") and not _UNSEEN.match(letter)


def _is_unseen(letter: str) -> bool:
    return _UNSEEN.match(letter) is not None


RULES: tuple[NameRule, ...] = (
    NameRule("empty", lambda name: not name, "", "it is empty"),
    NameRule(
        "long",
        lambda name: len(name) > LONGEST_NAME,
        "x" * (LONGEST_NAME + 1),
        f"it is longer than {LONGEST_NAME} characters",
    ),
    NameRule("version", lambda name: "@" in name, "web@3", "'@' is kept for versions, as in web@3"),
    NameRule(
        "path",
        lambda name: "/" in name or "\\" in name,
        "../web",
        "it holds a path separator",
    ),
    NameRule(
        "control",
        lambda name: any(unicodedata.category(letter) == "Cc" for letter in name),
        "web\x00",
        "it holds a control character",
    ),
    NameRule(
        "unseen",
        lambda name: any(_is_unseen(letter) for letter in name),
        "web\u202efdp",
        "it holds a character that cannot be seen",
    ),
    NameRule(
        "character",
        lambda name: any(not _stands_in_words(one) and one not in " -_." for one in name),
        "web:search",
        "it holds a character that is none of these",
    ),
    NameRule(
        "beginning",
        lambda name: _kind(name[0]) not in ("L", "Nd"),
        "-web",
        "it does not begin with a letter or a digit",
    ),
    NameRule("end", lambda name: name[-1] in " .", "web.", "it ends with a space or a dot"),
    NameRule("dots", lambda name: ".." in name, "web..search", "it holds two dots in a row"),
    NameRule(
        "device",
        lambda name: _DEVICE.match(name.partition(".")[0].strip()) is not None,
        "Con.txt",
        "some systems keep it for a device",
    ),
)


def checked_name(name: str) -> str:
    """The name, with letters and their accents composed, so that what looks the same is the same.
    Raises BadTemplate.
    """
    if not isinstance(name, str):
        raise BadTemplate(f"A template cannot be called {name!r}, which is no text. {_ALLOWED}")
    name = unicodedata.normalize("NFC", name)
    for rule in RULES:
        if rule.broken(name):
            raise BadTemplate(
                f"A template cannot be called {_shown(name)}, because {rule.says}. {_ALLOWED}"
            )
    return name


def named(reference: str) -> tuple[str, int | None]:
    """A name and the version that is meant: "web@3" is version 3 of web, "web" the newest. Raises
    BadTemplate.
    """
    name, at, version = reference.rpartition("@")
    if not at:
        return checked_name(reference), None
    if not _VERSION.match(version):
        raise BadTemplate(
            f"{_shown(reference)} names no version of a template: after '@' comes a whole number "
            "from 1 on, as in web@3."
        )
    return checked_name(name), int(version)


def name_for(title: str, fallback: str) -> str:
    """A short name made of a session's title, or else of the fallback: words in lower case, joined
    by '-'.
    """
    for text in (title, fallback):
        name = _joined_words(text)
        if name and not any(rule.broken(name) for rule in RULES):
            return name
    return _LAST_RESORT


def checked_tag(tag: str) -> str:
    """The tag without spaces around it. Raises BadTemplate."""
    trimmed = unicodedata.normalize("NFC", tag).strip()
    if not trimmed:
        says = "it is empty"
    elif len(trimmed) > LONGEST_TAG:
        says = f"it is longer than {LONGEST_TAG} characters"
    elif "," in trimmed:
        says = "tags are listed with commas between them"
    elif not trimmed.isprintable() or _UNSEEN.search(trimmed):
        says = "it holds a character that cannot be seen"
    else:
        return trimmed
    raise BadTemplate(
        f"{_shown(tag)} cannot be a tag, because {says}. A tag has 1 to {LONGEST_TAG} characters "
        "and no comma."
    )


def _joined_words(text: str) -> str:
    plain = unicodedata.normalize("NFC", text.lower()).replace("'", "").replace("’", "")
    spaced = "".join(one if _stands_in_words(one) else " " for one in plain[:1000])
    joined = ""
    for word in spaced.split():
        longer = f"{joined}-{word}" if joined else word[:_LONGEST_MADE_NAME]
        if len(longer) > _LONGEST_MADE_NAME:
            break
        joined = longer
    return joined


def _shown(text: str) -> str:
    """The text in quotes, with what cannot be seen spelled out."""
    return repr(text if len(text) <= 2 * LONGEST_NAME else text[:LONGEST_NAME] + "…")
