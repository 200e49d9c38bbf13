"""Templates as files, and what their names, tags and texts may be. Files are written in one format,
and read in that and in three older ones, which differ only in the names of their fields. They are
not trusted: ids and the library's own counts are neither written nor read (older formats keep their
uses and the sessions that they came from), and only successes teach, by the file's own flag or else
by the judge. The library redacts what is read, and searches it for instructions.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from journeyman.learning.opening_text import NO_RESULT
from journeyman.learning.requests import is_stub
from journeyman.learning.sanitizer import joined_intent
from journeyman.logs.fields import only_object, only_text, seconds, whole_number
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Call,
    ImportedTemplate,
    Pattern,
    PatternId,
    PatternType,
    SessionId,
    Step,
    Template,
)
from journeyman.records.errors import BadTemplate, WrongInput
from journeyman.redaction.instructions import find_suspicion
from journeyman.redaction.redactor import Redactor
from journeyman.text.strict_json import InvalidJson, canonical_json, read_json
from journeyman.text.truncation import truncate

FORMAT = "journeyman-template"
FORMAT_VERSION = 1
LARGEST_FILE = 20 * 1024 * 1024
LONGEST_NAME = 80
LONGEST_TAG = 40

_NAME = re.compile(r'[^\W_][^/\\:*?"<>|@,]*(?<![ .])')
_VERSION = re.compile(r"[1-9][0-9]{0,8}")
_LARGEST_COUNT = 2**31 - 1

_KNOWN_FIELDS = {"format", "examples", "patterns", "system_prompt_addendum"}
_OLDER_NAMES = {
    "name": ("name", "template_id"),
    "addendum": ("system_prompt_addendum",),
    "used": ("usage_count", "use_count", "times_used"),
    "last_used_at": ("last_used_at", "last_used"),
    "sessions": ("source_sessions", "source_session_ids", "source_session_id", "session_id"),
    "tool": ("tool_name", "tool"),
    "arguments": ("arguments", "args"),
    "result": ("result_summary", "result"),
    "success": ("result_success", "success"),
    "hint": ("context_hint", "intent", "context"),
    "before": ("preceding_context",),
    "times": ("success_count",),
    "at": ("timestamp", "created_at"),
}
"""The names of each field in the older formats."""


def encode(template: Template) -> bytes:
    """Return a template as a file: the same bytes for the same template."""
    fields = msgspec.to_builtins(_without_own_facts(template))
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **fields}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def decode(data: bytes, *, name: str | None = None) -> ImportedTemplate:
    """Return the template in a file, under its own name or under another; its patterns have no ids.
    Results are not cut: that must come after redaction, because half a secret is not recognised.
    Raises BadTemplate if the file is not a template.
    """
    advice = "Choose a file that `journeyman templates export` wrote."
    try:
        document = only_object(read_json(data))
        is_own = document.get("format") == FORMAT
        decoded = _from_own(document) if is_own else _from_older(document)
    except (InvalidJson, msgspec.ValidationError, OverflowError) as error:
        raise BadTemplate(f"The file is not a template: {error}. {advice}") from error
    if _KNOWN_FIELDS.isdisjoint(document):
        raise BadTemplate(f"The file is not a template: it has no patterns or examples. {advice}")
    name = decoded.template.name if name is None else name
    if not name:
        raise BadTemplate("The file does not name the template. Pass a name with --as.")
    tags = checked_tags(decoded.template.tags)
    named = replace(decoded.template, name=checked_template_name(name), tags=tags)
    return replace(decoded, template=named)


def _without_own_facts(template: Template) -> Template:
    """Return the template without what concerns only the library that it is in."""
    patterns = (replace(one, id=PatternId(""), tokens=0, sessions=()) for one in template.patterns)
    return replace(template, origin="imported", used=0, last_used_at=None, patterns=tuple(patterns))


def _from_own(document: Mapping[str, Any]) -> ImportedTemplate:
    if document.get("format_version") != FORMAT_VERSION:
        raise BadTemplate(
            f"The file has format version {document.get('format_version')!r}, and this program "
            f"reads version {FORMAT_VERSION}. Read it with a newer Journeyman."
        )
    template = _without_own_facts(msgspec.convert({"name": "", **document}, Template))
    patterns = []
    for pattern in template.patterns:
        steps = (replace(step, arguments=_arguments(step.arguments)) for step in pattern.steps)
        patterns.append(replace(pattern, steps=tuple(steps)))
    return ImportedTemplate(template=replace(template, patterns=tuple(patterns)))


def _from_older(document: Mapping[str, Any]) -> ImportedTemplate:
    """Return the template in an older format, and why entries are left out."""
    fields = _renamed(document)
    sessions = _session_ids(fields)
    patterns, skipped = [], []
    for key in ("examples", "patterns"):
        for number, entry in enumerate(_listed(fields.get(key)), start=1):
            if pattern := _older_pattern(_renamed(only_object(entry)), sessions):
                patterns.append(pattern)
            else:
                reason = "it is no call, did not succeed, or its success is unknown"
                skipped.append(f"{key.removesuffix('s')} {number}: {reason}")
    kind = only_text(fields.get("task_type")).strip().lower()
    types: tuple[PatternType, ...] = get_args(PatternType)
    template = Template(
        name=only_text(fields.get("name")).strip(),
        origin="imported",
        task_type=next((type_ for type_ in types if type_ == kind), "mixed"),
        tags=tuple(filter(None, map(only_text, _listed(fields.get("tags"))))),
        description=only_text(fields.get("description")).strip(),
        addendum=only_text(fields.get("addendum")).strip(),
        created_at=seconds(fields.get("at")),
        scanned=len(sessions),
        qualified=len(sessions),
        used=_count(fields.get("used")),
        last_used_at=seconds(fields.get("last_used_at")),
        patterns=tuple(patterns),
    )
    return ImportedTemplate(template=template, skipped=tuple(skipped))


def _renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of an older format with our names, and without what is null in it."""
    given = {name: value for name, value in fields.items() if value is not None}
    return given | {
        field: given[name]
        for field, names in _OLDER_NAMES.items()
        for name in reversed(names)
        if name in given
    }


def _older_pattern(fields: Mapping[str, Any], sessions: Sequence[SessionId]) -> Pattern | None:
    """Return an entry as a pattern from its own sessions or else from these; None unless it is a
    call that succeeded.
    """
    tool, result = only_text(fields.get("tool")), fields.get("result")
    arguments = _arguments(fields.get("arguments") or "{}")
    result = result if isinstance(result, str | None) else canonical_json(result)
    succeeded = fields.get("success")
    if succeeded is None:
        made = Call(id="", tool=tool, arguments=arguments, result=result)
        succeeded = judge(made).status == "ok"
    if not tool or succeeded not in (True, 1):
        return None
    shown = NO_RESULT if result is None or is_stub(result) else result
    own = _session_ids(fields) or tuple(sessions)
    return Pattern(
        intent=_older_intent(fields) or f"Use {tool}.",
        steps=(Step(tool=tool, arguments=arguments, result=shown),),
        times=max(1, _count(fields.get("times"))),
        session_count=len(own) or 1,
        sessions=own,
        at=seconds(fields.get("at")),
    )


def _older_intent(fields: Mapping[str, Any]) -> str:
    """Return the text before a call, or what the user said last before it, and the hint."""
    before, hint = fields.get("before"), only_text(fields.get("hint")).strip()
    if isinstance(before, list):
        said = [one for one in map(only_object, before) if one.get("role") == "user"]
        before = said[-1].get("content") if said else ""
    before = only_text(before).strip()
    return joined_intent(before, "" if hint == before else hint)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int:
    return min(max(0, whole_number(value) or 0), _LARGEST_COUNT)


def _session_ids(fields: Mapping[str, Any]) -> tuple[SessionId, ...]:
    value = fields.get("sessions")
    ids = map(only_text, value if isinstance(value, list) else [value])
    return tuple(dict.fromkeys(SessionId(one) for one in ids if one.strip()))


def _arguments(value: object) -> str:
    """Return arguments as they are stored: without escapes, which would hide a secret or an
    instruction. Those that are not a JSON object become empty, and no opening shows them.
    """
    try:
        decoded = read_json(value) if isinstance(value, str) else value
    except InvalidJson:
        return ""
    return canonical_json(decoded) if isinstance(decoded, dict) else ""


def checked_template_name(name: str) -> str:
    """Return a name that can be typed, shown in a table and be the name of a file, with composed
    accents, so that what looks equal is equal. Raises BadTemplate.
    """
    composed = unicodedata.normalize("NFC", name)
    is_short = len(composed) <= LONGEST_NAME
    if not (is_short and composed.isprintable() and _NAME.fullmatch(composed)):
        raise BadTemplate(
            f"A template cannot be called {truncate(composed, LONGEST_NAME)!r}. A name has 1 to "
            f"{LONGEST_NAME} characters that file names may have, begins with a letter or a digit, "
            "and ends with neither a space nor a dot."
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
    trimmed = [unicodedata.normalize("NFC", tag).strip() for tag in listed]
    for tag in trimmed:
        if not 0 < len(tag) <= LONGEST_TAG or "," in tag or not tag.isprintable():
            raise BadTemplate(
                f"{truncate(tag, LONGEST_NAME)!r} cannot be a tag. Use 1 to {LONGEST_TAG} visible "
                "characters without a comma."
            )
    return tuple(dict.fromkeys(trimmed))


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
