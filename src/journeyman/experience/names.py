"""Valid names of templates, tags and types, and checks on what a person writes about a template.
Names are typed by hand, appear in tables and may become file names, so they contain only visible
characters that every file system accepts.
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
from journeyman.text.invisible import INVISIBLE_CHARACTERS
from journeyman.text.truncation import truncate

LONGEST_NAME = 80
LONGEST_TAG = 40

_NAME = re.compile(rf"(?!.*\.\.)[^\W_][\w .-]{{0,{LONGEST_NAME - 1}}}(?<![ .])")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")
_UNSEEN = re.compile(f"[{INVISIBLE_CHARACTERS}]")


def checked_template_name(name: str) -> str:
    """Return the name with composed accents, so that what looks equal is equal. Raises
    BadTemplate.
    """
    composed = unicodedata.normalize("NFC", name)
    # Accents and vowel signs are marks, which \w does not match.
    marked = ("_" if unicodedata.category(one)[0] == "M" else one for one in composed)
    if not _NAME.fullmatch("".join(marked)) or not _is_visible(composed):
        raise BadTemplate(
            f"A template cannot be called {truncate(composed, LONGEST_NAME)!r}. A name has 1 to "
            f"{LONGEST_NAME} letters, digits, spaces, '-', '_' or single dots, begins with a "
            "letter or a digit and ends with neither a space nor a dot."
        )
    return composed


def parse_reference(reference: str) -> tuple[str, int | None]:
    """Return the name and version: "web@3" is version 3 of web, "web" the newest. Raises
    BadTemplate.
    """
    name, at, version = reference.rpartition("@")
    if not at:
        return checked_template_name(reference), None
    if not _VERSION.fullmatch(version):
        raise BadTemplate(
            f"{truncate(reference, LONGEST_NAME)!r} is not a version of a template. After '@' use "
            "a whole number, 1 or greater, as in web@3."
        )
    return checked_template_name(name), int(version)


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags without surrounding spaces and duplicates; one text may name several tags,
    separated by commas. Raises BadTemplate.
    """
    listed = tags.split(",") if isinstance(tags, str) else tags
    return tuple(dict.fromkeys(map(checked_tag, listed)))


def checked_tag(tag: str) -> str:
    """Return the tag without surrounding spaces. Raises BadTemplate."""
    trimmed = unicodedata.normalize("NFC", tag).strip()
    if not 0 < len(trimmed) <= LONGEST_TAG or "," in trimmed or not _is_visible(trimmed):
        raise BadTemplate(
            f"{truncate(tag, LONGEST_NAME)!r} cannot be a tag. Use 1 to {LONGEST_TAG} visible "
            "characters without a comma."
        )
    return trimmed


def checked_type(name: str | None) -> PatternType | None:
    """Return the type with this name, or None without a name. Raises WrongInput."""
    types: tuple[PatternType, ...] = get_args(PatternType)
    if name is not None and name not in types:
        raise WrongInput(f"Unknown task type {name!r}. The types are: {', '.join(types)}.")
    return next((type_ for type_ in types if type_ == name), None)


def checked_template(template: Template, *others: str) -> Template:
    """Return the template with its own texts redacted. Raises BadTemplate if one of them, or of the
    `others`, reads like an instruction to the model.
    """
    suspicion = find_suspicion((template.description, template.addendum, *others))
    redactor = Redactor()
    if suspicion is not None:
        raise BadTemplate(
            "The template's own text looks like an instruction to its reader "
            f"({suspicion.rule}: {redactor.text(suspicion.evidence)}). Nothing was stored. "
            "Reword it."
        )
    description = redactor.text(template.description)
    return replace(template, description=description, addendum=redactor.text(template.addendum))


def _is_visible(text: str) -> bool:
    return text.isprintable() and not _UNSEEN.search(text)
