"""Templates as files: written in one format, read in that format and in three older ones, which
differ only in the names of their fields. Files are not trusted: ids and the library's own counts
are neither written nor read (older formats keep their uses and the sessions that they came from),
and only successes teach, by the file's own flag or else by the judge.
The library redacts what is read, and searches it for instructions.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from journeyman.experience.names import checked_tags, checked_template_name
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
from journeyman.records.errors import BadTemplate
from journeyman.text.strict_json import InvalidJson, canonical_json, read_json

FORMAT = "journeyman-template"
FORMAT_VERSION = 1
LARGEST_FILE = 20 * 1024 * 1024

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


class _OlderEntry(Struct, frozen=True, kw_only=True):
    """A call in an older format. `before` is the text or the messages before it."""

    tool: Annotated[str, Meta(min_length=1)]
    arguments: Any = "{}"
    result: Any = None
    success: bool | None = None
    hint: str = ""
    before: str | list[dict[str, Any]] = ""
    times: Annotated[int, Meta(lt=2**31)] = 1
    at: Any = None


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
    if len(data) > LARGEST_FILE:
        raise _not_a_template(f"it has {len(data):,} bytes, and the limit is {LARGEST_FILE:,}")
    try:
        document = read_json(data)
    except InvalidJson as error:
        raise _not_a_template(str(error)) from error
    if _KNOWN_FIELDS.isdisjoint(only_object(document)):
        raise _not_a_template("it is not an object with patterns or examples")
    is_own = document.get("format") == FORMAT
    if is_own and document.get("format_version") != FORMAT_VERSION:
        raise BadTemplate(
            f"The file has format version {document.get('format_version')!r}, and this program "
            f"reads version {FORMAT_VERSION}. Read it with a newer Journeyman."
        )
    skipped: list[str] = []
    try:
        template = _from_own(document) if is_own else _from_older(document, skipped)
    except (msgspec.ValidationError, OverflowError) as error:
        raise _not_a_template(f"it does not have the expected shape ({error})") from error
    name = template.name if name is None else name
    if not name:
        raise BadTemplate("The file does not name the template. Pass a name with --as.")
    tags = checked_tags(template.tags)
    template = replace(template, name=checked_template_name(name), tags=tags)
    return ImportedTemplate(template=template, skipped=tuple(skipped))


def _without_own_facts(template: Template) -> Template:
    """Return the template without what concerns only the library that it is in."""
    patterns = (replace(one, id=PatternId(""), tokens=0, sessions=()) for one in template.patterns)
    return replace(template, origin="imported", used=0, last_used_at=None, patterns=tuple(patterns))


def _from_own(document: Mapping[str, Any]) -> Template:
    template = _without_own_facts(msgspec.convert({"name": "", **document}, Template))
    patterns = []
    for pattern in template.patterns:
        steps = (replace(step, arguments=_arguments(step.arguments)) for step in pattern.steps)
        patterns.append(replace(pattern, steps=tuple(steps)))
    return replace(template, patterns=tuple(patterns))


def _from_older(document: Mapping[str, Any], skipped: list[str]) -> Template:
    """Return a template in an older format, and add to `skipped` why an entry was left out."""
    fields = _renamed(document)
    sessions = _session_ids(fields)
    patterns = []
    for key in ("examples", "patterns"):
        for number, entry in enumerate(msgspec.convert(fields.get(key, []), list[Any]), start=1):
            try:
                patterns.append(_older_pattern(entry, sessions))
            except msgspec.ValidationError as error:
                skipped.append(f"{key.removesuffix('s')} {number}: {error}")
    kind = only_text(fields.get("task_type")).strip().lower()
    ours = {
        "name": only_text(fields.get("name")).strip(),
        "origin": "imported",
        "task_type": kind if kind in get_args(PatternType) else "mixed",
        "tags": fields.get("tags", []),
        "description": only_text(fields.get("description")).strip(),
        "addendum": only_text(fields.get("addendum")).strip(),
        "created_at": seconds(fields.get("at")),
        "scanned": len(sessions),
        "qualified": len(sessions),
        "used": min(max(0, whole_number(fields.get("used")) or 0), 2**31 - 1),
        "last_used_at": seconds(fields.get("last_used_at")),
        "patterns": patterns,
    }
    return msgspec.convert(ours, Template)


def _renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of an older format with our names, and without what is null in it."""
    given = {name: value for name, value in fields.items() if value is not None}
    return given | {
        field: given[name]
        for field, names in _OLDER_NAMES.items()
        for name in reversed(names)
        if name in given
    }


def _older_pattern(entry: object, sessions: Sequence[SessionId]) -> Pattern:
    """Return an entry as a pattern from its own sessions or else from these. Raises ValidationError
    unless it is a call that succeeded.
    """
    fields = _renamed(msgspec.convert(entry, dict[str, Any]))
    call = msgspec.convert(fields, _OlderEntry, strict=False)
    arguments, result = _arguments(call.arguments or "{}"), call.result
    result = result if isinstance(result, str | None) else canonical_json(result)
    succeeded = call.success
    if succeeded is None:
        made = Call(id="", tool=call.tool, arguments=arguments, result=result)
        succeeded = judge(made).status == "ok"
    if not succeeded:
        raise msgspec.ValidationError("it did not succeed, or its success is unknown")
    shown = NO_RESULT if result is None or is_stub(result) else result
    own = _session_ids(fields) or tuple(sessions)
    return Pattern(
        intent=_older_intent(call) or f"Use {call.tool}.",
        steps=(Step(tool=call.tool, arguments=arguments, result=shown),),
        times=max(1, call.times),
        session_count=len(own) or 1,
        sessions=own,
        at=seconds(call.at),
    )


def _older_intent(call: _OlderEntry) -> str:
    """Return the text before a call, or what the user said last before it, and the hint."""
    before, hint = call.before, call.hint.strip()
    if isinstance(before, list):
        asked = [only_text(one.get("content")) for one in before if one.get("role") == "user"]
        before = asked[-1] if asked else ""
    before = before.strip()
    return joined_intent(before, "" if hint == before else hint)


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


def _not_a_template(reason: str) -> BadTemplate:
    advice = "Choose a file that `journeyman templates export` wrote."
    return BadTemplate(f"The file is not a template: {reason}. {advice}")
