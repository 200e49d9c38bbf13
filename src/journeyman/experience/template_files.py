"""Templates as files: written in one format, read in that format and in three older ones, which
differ only in the names of their fields. Files are not trusted: ids and the library's own counts
are neither written nor read (older formats keep their uses and the sessions that they came from),
and only successes teach, by the file's own flag or else by the judge.
The library redacts what is read, and searches it for instructions.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from journeyman.experience.names import checked_tag, checked_tags, checked_template_name
from journeyman.learning.opening_text import NO_RESULT
from journeyman.learning.requests import is_stub
from journeyman.learning.sanitizer import joined_intent
from journeyman.logs.fields import only_text, seconds
from journeyman.outcomes.judge import judge
from journeyman.records import (
    Call,
    ImportedTemplate,
    Pattern,
    PatternId,
    PatternType,
    Step,
    Template,
)
from journeyman.records.errors import BadTemplate
from journeyman.text.strict_json import InvalidJson, canonical_json, read_json

FORMAT = "journeyman-template"
FORMAT_VERSION = 1
LARGEST_FILE = 20 * 1024 * 1024

_NOT_IN_FILES = ("origin", "used", "last_used_at")
_NOT_IN_PATTERNS = ("id", "tokens", "sessions")

_OLDER_LISTS = ("examples", "patterns")
_OLDER_ADDENDUM = "system_prompt_addendum"
_OLDER_USES = ("usage_count", "use_count", "times_used")
_OLDER_SESSIONS = ("source_sessions", "source_session_ids", "source_session_id", "session_id")
_OLDER_FIELDS = {
    "tool": ("tool_name", "tool"),
    "arguments": ("arguments", "args"),
    "result": ("result_summary", "result"),
    "success": ("result_success", "success"),
    "intent": ("context_hint", "intent", "context"),
    "before": ("preceding_context",),
    "times": ("success_count",),
    "time": ("timestamp", "created_at"),
}
_PLACEHOLDER = re.compile(
    r"(?!.*\bno output\b)[\[(<{]+\s*(?:[\w.:-]+ +){0,6}?"
    r"(?:results?|outputs?|succe(?:ss|eded|ssful)|omitted|truncated|placeholder)\b"
    r"[^\n\])>}]{0,80}[\])>}]+"
    r"|(?:success|succeeded|n/?a|none|null|placeholder|…|\.\.\.)",
    re.IGNORECASE,
)
"""What older programs wrote in place of a result that they did not keep."""

Count = Annotated[int, Meta(ge=0, lt=2**53)]
Number = Annotated[int, Meta(ge=1, lt=2**31)]


class _StepForm(Step, frozen=True, kw_only=True):
    tool: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)  # type: ignore[assignment]


class _PatternForm(Pattern, frozen=True, kw_only=True):
    id: PatternId = PatternId("")
    steps: Annotated[tuple[_StepForm, ...], Meta(min_length=1)]
    times: Number = 1
    session_count: Number = 1


class _TemplateForm(Template, frozen=True, kw_only=True):
    name: str = ""
    version: Number = 1
    scanned: Count = 0
    qualified: Count = 0
    patterns: tuple[_PatternForm, ...] = ()


def encode(template: Template) -> bytes:
    """Return a template as a file: the same bytes for the same template."""
    form = _without(msgspec.to_builtins(template), _NOT_IN_FILES)
    form["patterns"] = [_without(pattern, _NOT_IN_PATTERNS) for pattern in form["patterns"]]
    for step in (step for pattern in form["patterns"] for step in pattern["steps"]):
        # As an object, which a person can read; as text if it is not an object.
        text = _arguments(step["arguments"]) if step["arguments"] else None
        step["arguments"] = step["arguments"] if text is None else json.loads(text)
    whole = {"format": FORMAT, "format_version": FORMAT_VERSION, **form}
    # The standard library's encoder, because arguments may hold numbers of any length.
    return json.dumps(whole, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


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
    known = {"format", *_OLDER_LISTS, _OLDER_ADDENDUM}
    if not isinstance(document, dict) or not known & document.keys():
        raise _not_a_template("it is not an object with patterns or examples")
    skipped: list[str] = []
    if is_older := document.get("format") != FORMAT:
        document, skipped = _from_older(document)
    elif document.get("format_version") != FORMAT_VERSION:
        raise BadTemplate(
            f"The file has format version {document.get('format_version')!r}, and this program "
            f"reads version {FORMAT_VERSION}. Read it with a newer Journeyman."
        )
    else:
        document = _without(document, _NOT_IN_FILES)
    try:
        form = msgspec.convert(document, _TemplateForm)
    except (msgspec.ValidationError, OverflowError) as error:
        raise _not_a_template(f"it does not have the expected shape ({error})") from error
    name = form.name if name is None else name
    if not name:
        raise BadTemplate("The file does not name the template. Pass a name with --as.")
    fields = msgspec.structs.asdict(form) | {
        "name": checked_template_name(name),
        "origin": "imported",
        "tags": checked_tags(form.tags),
        "patterns": tuple(
            _pattern(pattern if is_older else replace(pattern, sessions=()), number)
            for number, pattern in enumerate(form.patterns, start=1)
        ),
    }
    return ImportedTemplate(template=Template(**fields), skipped=tuple(skipped))


def _pattern(form: _PatternForm, number: int) -> Pattern:
    steps = []
    for step in form.steps:
        text = _arguments(step.arguments)
        if text is None:
            raise _not_a_template(f"the arguments of pattern {number} are not a JSON object")
        steps.append(Step(tool=step.tool, arguments=text, result=step.result))
    intent = form.intent.strip() or f"Use {steps[-1].tool}."
    replaced = {"id": PatternId(""), "intent": intent, "steps": tuple(steps), "tokens": 0}
    return Pattern(**{**msgspec.structs.asdict(form), **replaced})


def _from_older(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a template in an older format as our format, and a sentence for each entry or tag that
    was skipped.
    """
    kind = only_text(document.get("task_type")).strip()
    task_type = kind.lower() if kind.lower() in get_args(PatternType) else "mixed"
    sessions = _older_sessions(document)
    patterns, skipped = [], []
    for key in _OLDER_LISTS:
        entries = document.get(key) or []
        if not isinstance(entries, list):
            raise _not_a_template(f"its {key!r} is not a list")
        for number, entry in enumerate(entries, start=1):
            pattern = _older_pattern(entry)
            if isinstance(pattern, str):
                skipped.append(f"{key.removesuffix('s')} {number}: {pattern}")
            else:
                own = _older_sessions(entry) or sessions
                seen = {"sessions": own, "session_count": len(own) or 1}
                patterns.append({**pattern, **seen})
    value = document.get("tags")
    listed = value.split(",") if isinstance(value, str) else value
    unknown_type = [kind] if kind and kind.lower() != task_type else []
    tags = []
    for number, tag in enumerate([*(listed if isinstance(listed, list) else ()), *unknown_type], 1):
        try:
            tags.append(checked_tag(only_text(tag)))
        except BadTemplate as error:
            skipped.append(f"tag {number}: {error}")
    names = (only_text(document.get(key)).strip() for key in ("name", "template_id"))
    uses = (document[key] for key in _OLDER_USES if type(document.get(key)) is int)
    return {
        "name": next(filter(None, names), ""),
        "task_type": task_type,
        "tags": tags,
        "description": only_text(document.get("description")).strip(),
        "addendum": only_text(document.get(_OLDER_ADDENDUM)).strip(),
        "created_at": seconds(document.get("created_at")),
        "scanned": len(sessions),
        "qualified": len(sessions),
        "used": min(max(0, next(uses, 0)), 2**31 - 1),
        "last_used_at": seconds(document.get("last_used_at") or document.get("last_used")),
        "patterns": patterns,
    }, skipped


def _older_pattern(entry: object) -> dict[str, Any] | str:
    """Return the pattern in an entry, or why there is none."""
    if not isinstance(entry, dict):
        return "it is not an object"
    values = {
        field: next((entry[key] for key in keys if entry.get(key) is not None), None)
        for field, keys in _OLDER_FIELDS.items()
    }
    tool, arguments = only_text(values["tool"]).strip(), _arguments(values["arguments"])
    if not tool or arguments is None:
        return "it names no tool, or its arguments are not a JSON object"
    result, flag = values["result"], values["success"]
    result = result if result is None or isinstance(result, str) else canonical_json(result)
    call = Call(id="", tool=tool, arguments=arguments, result=result)
    if flag != 1 and not (flag is None and judge(call).status == "ok"):
        return "it did not succeed, or its success is unknown"
    times = values["times"]
    return {
        "intent": _older_intent(values["before"], only_text(values["intent"])),
        "steps": [{"tool": tool, "arguments": arguments, "result": _older_result(result)}],
        "times": times if type(times) is int and 1 <= times < 2**31 else 1,
        "at": seconds(values["time"]),
    }


def _older_sessions(fields: Mapping[str, Any]) -> list[str]:
    """Return the sessions that a template or an entry names as its source, each once."""
    value = next((fields[key] for key in _OLDER_SESSIONS if fields.get(key)), None)
    ids = value if isinstance(value, list) else [value]
    return list(dict.fromkeys(id_ for id_ in ids if isinstance(id_, str) and id_.strip()))


def _older_intent(before: object, hint: str) -> str:
    """Return the intent from the text before a call, or from the user's last message in a list of
    messages, and the hint about it.
    """
    if isinstance(before, list):
        messages = [message for message in before if isinstance(message, dict)]
        asked = [message for message in messages if message.get("role") == "user"]
        before = (asked or messages)[-1].get("content") if messages else ""
    context = only_text(before).strip()
    return joined_intent(context, "" if hint.strip() == context else hint)


def _older_result(result: str | None) -> str:
    """Return a result, or a sentence in place of one that the file does not contain."""
    if result is None:
        return NO_RESULT
    is_placeholder = _PLACEHOLDER.fullmatch(result.strip()) is not None
    return NO_RESULT if is_placeholder or is_stub(result) else result


def _arguments(value: object) -> str | None:
    """Return arguments as they are stored; None if they are not an object."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "{}"
    try:
        decoded = read_json(value) if isinstance(value, str) else value
        return canonical_json(decoded) if isinstance(decoded, dict) else None
    except InvalidJson:
        return None


def _not_a_template(reason: str) -> BadTemplate:
    advice = "Choose a file that `journeyman templates export` wrote."
    return BadTemplate(f"The file is not a template: {reason}. {advice}")


def _without(form: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key not in keys}
