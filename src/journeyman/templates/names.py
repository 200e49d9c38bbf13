"""What templates, tags and types may be called, and the words a person may write about a template.
A name is typed by hand, stands in tables and may become a file's name, so that it holds only what
can be seen and what every file system takes.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import get_args

from msgspec.structs import replace

from journeyman.records import PatternType, Template
from journeyman.records.errors import BadTemplate, WrongInput
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.text.invisible import UNSEEN

LONGEST_NAME = 80
LONGEST_TAG = 40
_LONGEST_MADE_NAME = 40
_LAST_RESORT = "template"

_DEVICE = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9])\s*(?:\.|\Z)", re.IGNORECASE)
_VERSION = re.compile(r"[1-9][0-9]{0,8}\Z")
_UNSEEN = re.compile(f"[{UNSEEN}]")


def checked_name(name: str) -> str:
    """The name with accents composed: what looks the same is the same. Raises BadTemplate."""
    composed = unicodedata.normalize("NFC", name)
    if not _is_name(composed):
        raise BadTemplate(
            f"A template cannot be called {_shown(composed)}. A name has 1 to {LONGEST_NAME} "
            "letters, digits, spaces, '-', '_' or single dots, begins with a letter or a digit, "
            "ends with neither a space nor a dot, and is no device such as NUL."
        )
    return composed


def named(reference: str) -> tuple[str, int | None]:
    """A name and a version: "web@3" is version 3 of web, "web" the newest. Raises BadTemplate."""
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
    """A short name made of a session's title, or else of the fallback."""
    return next(filter(_is_name, map(_joined_words, (title, fallback))), _LAST_RESORT)


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags, each once and without spaces around it. Raises BadTemplate."""
    given = (tags,) if isinstance(tags, str) else tags
    return tuple(dict.fromkeys(map(checked_tag, given)))


def checked_tag(tag: str) -> str:
    """The tag without spaces around it. Raises BadTemplate."""
    trimmed = unicodedata.normalize("NFC", tag).strip()
    is_seen = trimmed.isprintable() and not _UNSEEN.search(trimmed)
    if not 0 < len(trimmed) <= LONGEST_TAG or "," in trimmed or not is_seen:
        raise BadTemplate(
            f"{_shown(tag)} cannot be a tag. A tag has 1 to {LONGEST_TAG} characters that can be "
            "seen, and no comma."
        )
    return trimmed


def checked_type(name: str | None) -> PatternType | None:
    """The type of this name, if one is named. Raises WrongInput."""
    known: tuple[PatternType, ...] = get_args(PatternType)
    if name is not None and name not in known:
        raise WrongInput(f"There is no task type {name!r}. The types are: {', '.join(known)}.")
    return next((one for one in known if one == name), None)


def sound(template: Template, *others: str) -> Template:
    """The template with its own texts redacted. Raises BadTemplate if one would fool its reader."""
    suspicion = find_suspicion((template.description, template.addendum, *others))
    redactor = Redactor()
    if suspicion is not None:
        raise BadTemplate(
            f"The template's own text looks like an instruction that fools its reader "
            f"({suspicion.rule}: {redactor.text(suspicion.evidence)}). Nothing was kept; reword it."
        )
    description = redactor.text(template.description)
    return replace(template, description=description, addendum=redactor.text(template.addendum))


def _is_name(name: str) -> bool:
    return (
        0 < len(name) <= LONGEST_NAME
        and name[0].isalnum()
        and all(_stands_in_words(one) or one in " -_." for one in name)
        and not name.endswith((" ", "."))
        and ".." not in name
        and not _DEVICE.match(name)
    )


def _stands_in_words(letter: str) -> bool:
    is_letter = letter.isalnum() or unicodedata.category(letter).startswith("M")
    return is_letter and not _UNSEEN.match(letter)


def _joined_words(text: str) -> str:
    plain = unicodedata.normalize("NFC", text.lower()).replace("'", "").replace("’", "")
    words = "".join(one if _stands_in_words(one) else " " for one in plain[:1000]).split()
    while len("-".join(words)) > _LONGEST_MADE_NAME:
        words = words[:-1] or [words[0][:_LONGEST_MADE_NAME]]
    return "-".join(words)


def _shown(text: str) -> str:
    """The text in quotes, with what cannot be seen spelled out."""
    return repr(text if len(text) <= 2 * LONGEST_NAME else text[:LONGEST_NAME] + "…")
