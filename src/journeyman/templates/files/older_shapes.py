"""Template files of older programs, read into patterns. Three shapes are known, told apart by
nothing but the names of their fields, so that one table of names reads them all:

- `{"version": 1, "examples": [{tool_name, arguments, result_summary, result_success,
  context_hint}]}`
- `{"version": 2, "patterns": [{tool or tool_name, args, result, success, intent or context}],
  "metrics": {…}}`
- `{"task_type", "source_session_id", "usage_count", "examples": [{tool_name, arguments, result,
  success, turn_number}]}`

Only successes teach. The file's own flag decides; where there is none, the result is judged like
that of any recorded call, and without a result nothing is known and nothing is taken. How often a
template was used elsewhere is left behind, and so is the `version`, which is that of the shape.
Patterns get their ids where all files meet, in `exchange`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, get_args

from journeyman.logs.values import only_text, seconds
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Pattern, PatternId, PatternType, SessionId, Step, Template
from journeyman.records.errors import BadTemplate
from journeyman.templates.files.strict_json import BadJson, canonical, read_json
from journeyman.templates.names import checked_tag

LISTS = ("examples", "patterns")

_TOOL = ("tool_name", "tool")
_ARGUMENTS = ("arguments", "args")
_RESULT = ("result_summary", "result")
_SUCCESS = ("result_success", "success")
_INTENT = ("context_hint", "intent", "context")
_SESSION = ("session_id", "source_session_id")
_TIME = ("timestamp", "created_at")


class Draft(NamedTuple):
    """What a file holds: the template without patterns, the patterns without ids by where they
    stand ("example 3"), and a sentence for each entry that is left out.
    """

    template: Template
    patterns: dict[str, Pattern]
    skipped: list[str]


def is_older(document: Mapping[str, Any]) -> bool:
    """Whether a file has one of the older shapes."""
    return any(key in document for key in LISTS)


def read_older(document: Mapping[str, Any]) -> Draft:
    """The template in a file of an older shape. Raises BadTemplate when nothing can be learned
    from it.
    """
    task_type, tags = _task_type(document)
    patterns: dict[str, Pattern] = {}
    skipped: list[str] = []
    for label, entry in _entries(document):
        taken = _taken(entry, document, task_type)
        if isinstance(taken, Pattern):
            patterns[label] = taken
        else:
            skipped.append(f"{label}: {taken}")
    if not patterns:
        shown = "; ".join(skipped[:3]) + ("; …" if len(skipped) > 3 else "")
        raise BadTemplate(
            f"Nothing can be learned from this file: {shown or 'it has no examples'}. Give one "
            "with examples that succeeded."
        )
    kept_tags, bad_tags = _tags(document.get("tags"), tags)
    template = Template(
        name=only_text(document.get("name")).strip()
        or only_text(document.get("template_id")).strip(),
        task_type=task_type,
        tags=kept_tags,
        description=only_text(document.get("description")).strip(),
        created_at=seconds(document.get("created_at")),
    )
    return Draft(template, patterns, skipped + bad_tags)


def intent_for(hint: object, tool: str) -> str:
    """What a call was for: the hint, or that the tool was to be used."""
    return only_text(hint).strip() or f"Use {tool}."


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key in LISTS:
        entries = document.get(key)
        if entries is None:
            continue
        if not isinstance(entries, list):
            raise BadTemplate(
                f"The file is no template: its {key!r} is not a list. Give a file that "
                "`journeyman templates export` wrote."
            )
        for number, entry in enumerate(entries, start=1):
            yield f"{key.removesuffix('s')} {number}", entry


def _taken(entry: object, document: Mapping[str, Any], task_type: PatternType) -> Pattern | str:
    """The pattern in an entry, or why there is none."""
    if not isinstance(entry, dict):
        return "it is not an object"
    tool = only_text(_first(entry, _TOOL)).strip()
    if not tool:
        return "it names no tool"
    arguments = _arguments(_first(entry, _ARGUMENTS))
    if arguments is None:
        return "its arguments are not a JSON object"
    result = _text(_first(entry, _RESULT))
    doubt = _doubt(_first(entry, _SUCCESS), tool, arguments, result)
    if doubt:
        return doubt
    session = only_text(_first(entry, _SESSION) or _first(document, _SESSION))
    at = seconds(_first(entry, _TIME))
    return Pattern(
        id=PatternId(""),
        kind="first_try",
        intent=intent_for(_first(entry, _INTENT), tool),
        steps=(Step(tool=tool, arguments=arguments, result=result or ""),),
        task_type=task_type,
        sessions=(SessionId(session),) if session else (),
        first_seen=at,
        last_seen=at,
    )


def _first(record: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of these keys that has one."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _arguments(value: object) -> str | None:
    """Arguments in the form in which they are kept; None when they are no object."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "{}"
    try:
        given = read_json(value) if isinstance(value, str) else value
        return canonical(given) if isinstance(given, dict) else None
    except BadJson:
        return None


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else canonical(value)


def _doubt(flag: object, tool: str, arguments: str, result: str | None) -> str:
    """Why a call may not be taken for a success; nothing when it may."""
    if flag is None:
        call = Call(id="", tool=tool, arguments=arguments, result=result)
        status = judge(call).status
        if status == "unknown":
            return "it is not said whether it succeeded"
        return "" if status == "ok" else "its result shows that it did not succeed"
    if flag not in (True, False):  # 0 and 1 from a database are among them
        return "its flag of success is neither true nor false"
    return "" if flag else "it did not succeed"


def _task_type(document: Mapping[str, Any]) -> tuple[PatternType, tuple[str, ...]]:
    """The type of task; one that is not known here is kept as a tag."""
    given = only_text(document.get("task_type")).strip()
    for known in get_args(PatternType):
        if given.lower() == known:
            return known, ()
    return "mixed", (given,) if given else ()


def _tags(given: object, more: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    listed = given.split(",") if isinstance(given, str) else given
    kept: list[str] = []
    refused: list[str] = []
    for number, tag in enumerate([*(listed if isinstance(listed, list) else ()), *more], start=1):
        if not isinstance(tag, str):
            refused.append(f"tag {number}: it is not text")
            continue
        try:
            kept.append(checked_tag(tag))
        except BadTemplate as error:
            refused.append(f"tag {number}: {error}")
    return tuple(dict.fromkeys(kept)), refused
