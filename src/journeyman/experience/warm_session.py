"""The tool `warm_session`, for any agent that can call functions: build, list, load and delete
templates, and report how reliable sessions were.
"""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.records import LateChange, Template
from journeyman.records.defaults import MAX_SESSIONS, MIN_MESSAGES
from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.text.display import replace_surrogates
from journeyman.text.strict_json import InvalidJson, canonical_json, read_json
from journeyman.text.truncation import truncate

if TYPE_CHECKING:  # these load numpy and scipy, which an agent that starts must not wait for
    from journeyman.experience.opening import Opening
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.profile import Profile

MOST_STEPS = 10
MOST_TEMPLATES = 50
MOST_TOOLS = 15
_LONGEST_FAULT = 200
_OPENING_FIELDS = ("system", "template", "tokens", "reasons", "note")

_LONGEST = {"name": 80, "tool": 80, "after_label": 80, "description": 200}

_NAMES = {
    "LearningEffect.stratified": "late_minus_early",
    "WarmUp.calls": "calls_to_first_success",
    "WarmUp.seconds": "seconds_to_first_success",
    "WarmUp.without_success": "sessions_without_success",
    "Comparison.difference": "warm_minus_cold",
    "CompressionReport.state": "verdict",
    "CompressionStep.state": "verdict",
}
"""Fields that models know by a name that says more than the field's own."""

Answer = dict[str, Any]
Schema = Mapping[str, Any]
Arguments = dict[str, Any]


def warm_session(journeyman: Any, arguments: Mapping[str, Any] | str) -> str:
    """Run the action that the arguments name; return JSON with `success` and perhaps `error`. The
    templates and sessions are those of `journeyman`, a `Journeyman`.
    """
    try:
        answer = {"success": True, **_run_action(journeyman, arguments)}
    except JourneymanError as error:
        answer = {"success": False, "error": str(error)}
    return msgspec.json.encode(answer).decode()


def _run_action(journeyman: Any, arguments: object) -> Answer:
    values = validated_arguments(SCHEMA["name"], arguments, SCHEMA["parameters"])
    name = values.pop("action")
    accepted = _accepted(ACTIONS[name])
    required = [one.name for one in accepted if one.default is one.empty]
    validated_arguments(
        f"The action {name}", values, {**SCHEMA["parameters"], "required": required}
    )
    used = {one.name: values.pop(one.name) for one in accepted if one.name in values}
    answer = ACTIONS[name](journeyman, **used)
    # Models pass more than is needed; they should know that it changed nothing.
    return {**answer, "ignored": [*values]} if values else answer


def _accepted(action: Callable[..., Answer]) -> list[Parameter]:
    return [*signature(action).parameters.values()][1:]


def _build(
    journeyman: Any,
    *,
    name: str,
    description: str | None = None,
    min_messages: int = MIN_MESSAGES,
    max_sessions: int = MAX_SESSIONS,
    source_filter: str | None = None,
    platform: str | None = None,
    tags: Sequence[str] | None = None,
) -> Answer:
    """Make a template, or a new version of it, from long recorded sessions that went well."""
    from journeyman.reliability import learning_curve  # noqa: PLC0415 - loads numpy

    template = journeyman.templates.build(
        name,
        min_messages=min_messages,
        max_sessions=max_sessions,
        origin=source_filter,
        platform=platform,
        tags=tags,
        description=description,
    )
    change = template.late_minus_early or LateChange()
    reading = learning_curve.late_change_text(change)
    return {**_row(template), "late_minus_early": reduced(change), "reading": reading}


def _list(journeyman: Any, *, tags: Sequence[str] = (), all_tags: bool = False) -> Answer:
    """See which templates there are, before you load, build or delete one."""
    templates = journeyman.templates.list(tags=tags, all_tags=all_tags)
    return {
        "count": len(templates),
        "templates": [*map(_row, templates[:MOST_TEMPLATES])],
        "more_templates": max(0, len(templates) - MOST_TEMPLATES),
    }


def _row(template: Template) -> Answer:
    row = reduced(template, "origin", "addendum", "source", "late_minus_early", "patterns")
    return {**row, "pattern_count": len(template.patterns)}


def _load(journeyman: Any, *, name: str) -> Answer:
    """Get the messages of a template, to start a session warm."""
    opening: Opening = journeyman.opening(template=name)
    messages = opening.messages()
    return {
        "message_count": len(messages),
        "messages": messages,
        "pattern_count": len(opening.patterns),
        **{name: getattr(opening, name) for name in _OPENING_FIELDS},
    }


def _delete(journeyman: Any, *, name: str) -> Answer:
    """Remove all versions of a template, or one as name@version; this cannot be undone."""
    return {"template": name, "deleted": journeyman.templates.delete(name)}


def _profile(
    journeyman: Any,
    *,
    session_id: str | None = None,
    source_filter: str | None = None,
    platform: str | None = None,
    include_trivial: bool = False,
) -> Answer:
    """Report error rates of tool calls by tool and by length of session, in one session or in all,
    and whether the agent gets better within a session.
    """
    filters = {"origin": source_filter, "platform": platform}
    given = {name: value for name, value in filters.items() if value is not None}
    return profile_answer(journeyman.profile(session_id, include_trivial=include_trivial, **given))


def _compress_check(journeyman: Any, *, session_id: str, include_trivial: bool = False) -> Answer:
    """Report whether a session kept its proficiency when its context was compressed."""
    found: CompressionReport = journeyman.compression(session_id, include_trivial=include_trivial)
    last = replace(found, steps=found.steps[-MOST_STEPS:])
    return {
        **reduced(last, "before_label", "before", "after", "worse_tools"),
        "verdict": found.state or "never compressed",
        "compressions": len(found.steps),
        "proficiency_preserved": found.is_within_tolerance,
    }


def _compare(
    journeyman: Any, *, session_id: str, compare_with: str, include_trivial: bool = False
) -> Answer:
    """Report whether the warm session session_id made fewer errors than the cold compare_with."""
    found: Comparison = journeyman.compare(
        session_id, compare_with, include_trivial=include_trivial
    )
    warmer = found.difference.estimate
    return {
        **reduced(found),
        "improvement": None if warmer is None else reduced(-warmer),
        "warm_better": None if warmer is None else warmer < 0,
    }


ACTIONS: dict[str, Callable[..., Answer]] = {
    action.__name__[1:].replace("_", "-"): action
    for action in (_build, _list, _load, _delete, _profile, _compress_check, _compare)
}
"""What the tool can do. The signature of a function says which parameters the action accepts and
requires, and its docstring is the description for models.
"""


def text(description: str, **more: Any) -> Schema:
    """Return the definition of a parameter that is a text."""
    return {"type": "string", "description": description, **more}


def number(low: int, high: int, default: int, description: str) -> Schema:
    """Return the definition of a parameter that is an integer within limits."""
    limits = {"minimum": low, "maximum": high, "default": default}
    return {"type": "integer", **limits, "description": description}


def switch(description: str) -> Schema:
    """Return the definition of a parameter that is true or, by default, false."""
    return {"type": "boolean", "default": False, "description": description}


_PARAMETERS: dict[str, Schema] = {
    "action": text(f"What to do: {', '.join(ACTIONS)}.", enum=[*ACTIONS]),
    "name": text("The template's name, such as web-research; name@2 for one version of it."),
    "description": text("What the template is for, in a sentence."),
    "min_messages": number(
        0, 1_000_000, MIN_MESSAGES, "Learn only from sessions with at least this many messages."
    ),
    "max_sessions": number(
        1, 10_000, MAX_SESSIONS, "Learn from up to this many sessions, the newest first."
    ),
    "source_filter": text(
        "Only sessions of this platform, such as cli, telegram or cron, or of this recorder, such "
        "as claude_code, codex or hermes."
    ),
    "platform": text("Only sessions from this platform, such as cli, telegram, discord or cron."),
    "include_trivial": switch("Also count housekeeping tools, such as memory and todo."),
    "tags": {
        **text("Tags to give to a template (build), or of which it must have one (list)."),
        "type": "array",
        "items": {"type": "string"},
    },
    "all_tags": switch("Whether a template must have all the tags."),
    "session_id": text("A recorded session, by its id or the beginning of it."),
    "compare_with": text("The cold session that session_id is compared with."),
}

SCHEMA: dict[str, Any] = {
    "name": "warm_session",
    "description": "Start sessions warm, with examples of tool calls that worked before, and "
    "measure how reliable sessions were. Actions:\n"
    + "".join(
        f"- {name}: {' '.join((action.__doc__ or '').split())} "
        f"It takes {', '.join(one.name for one in _accepted(action))}.\n"
        for name, action in ACTIONS.items()
    )
    + "The answer is JSON with `success`; if that is false, `error` says what to do instead.",
    "parameters": {
        "type": "object",
        "properties": _PARAMETERS,
        "required": ["action"],
        "additionalProperties": False,
    },
}
"""The function's definition, as OpenAI's and similar interfaces take it."""


def validated_arguments(tool: str, arguments: object, schema: Schema) -> Arguments:
    """Return the arguments, JSON text or an object, as the schema defines them, without empty ones.
    Raises WrongInput.
    """
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415 - loads slowly

    try:
        text = arguments if isinstance(arguments, str) else canonical_json(arguments)
        values = read_json(replace_surrogates(text))
    except InvalidJson as error:
        raise WrongInput(f"{tool} takes a JSON object as arguments, but {error}.") from None
    if not isinstance(values, dict):
        raise WrongInput(f"{tool} takes a JSON object as arguments, not {reprlib.repr(values)}.")
    parameters = schema["properties"]
    given = {
        name: _read(value, parameters.get(name, {}).get("type", "string"))
        for name, value in values.items()
        if value is not None and str(value).strip()
    }
    if missing := [name for name in schema["required"] if name not in given]:
        about = " ".join(f"{name}: {parameters[name]['description']}" for name in missing)
        raise WrongInput(f"{tool} needs {' and '.join(missing)}. {about}")
    for fault in Draft202012Validator(schema).iter_errors(given):
        at = f"{fault.path[0]}: " if fault.path else ""
        about = parameters[fault.path[0]]["description"] if fault.path else ", ".join(parameters)
        raise WrongInput(f"{at}{truncate(fault.message, _LONGEST_FAULT)}. {tool}: {about}")
    return given


def _read(value: Any, kind: str) -> Any:
    """Return a value as its kind: models sometimes write numbers, truth values or lists as text."""
    if isinstance(value, str) and kind != "string":
        with suppress(InvalidJson):
            value = read_json(value.lower() if kind == "boolean" else value)
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return parts if kind == "array" else value.strip()
    is_whole = isinstance(value, float) and value.is_integer()
    return int(value) if kind == "integer" and is_whole else value


def profile_answer(profile: "Profile") -> Answer:
    """Return a profile without its failures and examples. Differences are late minus early:
    negative is improvement, and the readings say it in words.
    """
    from journeyman.reliability.rates import shown_with_worst  # noqa: PLC0415 - loads numpy

    shown = replace(
        profile,
        tools=tuple(shown_with_worst(profile.tools, MOST_TOOLS, lambda tool: tool.rate)),
        left_out=dict([*profile.left_out.items()][:MOST_TOOLS]),
        lengths=tuple(group for group in profile.lengths if group.sessions),
    )
    failures = ("failures", "further_failures", "further_errors")
    return {
        **reduced(shown, *failures, "marathons"),
        "dominant_tool_type": profile.task_type,
        "more_tools": max(0, len(profile.tools) - MOST_TOOLS),
    }


def reduced(value: Any, *without: str) -> Any:
    """Return a value as a model reads it: records as objects, without these fields and empty texts,
    times in ISO 8601, numbers with four digits, and long names and descriptions truncated.
    """
    if isinstance(value, Struct):
        kind, fields = type(value).__name__, asdict(value).items()
        return {
            _NAMES.get(f"{kind}.{name}", name): reduced(_shown(name, item), *without)
            for name, item in fields
            if name not in without and item != ""
        }
    if isinstance(value, dict):
        return {truncate(key, _LONGEST["name"]): reduced(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [reduced(item, *without) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def _shown(name: str, value: Any) -> Any:
    if name in ("at", "created_at", "last_used_at") and value is not None:
        try:
            return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%SZ}"
        except (OverflowError, ValueError, OSError):  # a clock that was far off
            return None
    return truncate(value, _LONGEST[name]) if name in _LONGEST else value
