"""The tool `warm_session`, for any agent that can call functions: build, list, load and delete
templates, and report how reliable sessions were.
"""

import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from journeyman.experience import warm_session_answers
from journeyman.experience.warm_session_answers import Answer
from journeyman.records.defaults import MAX_SESSIONS, MIN_MESSAGES
from journeyman.records.errors import JourneymanError, WrongInput

if TYPE_CHECKING:
    from journeyman.experience.library import Library
    from journeyman.experience.opening import Opening
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.profile import Profile

Schema = Mapping[str, Any]
Arguments = dict[str, Any]

_NAME = "warm_session"
_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)


class WarmSessionBackend(Protocol):
    """Templates, openings and reports, as `Journeyman` offers them."""

    @property
    def templates(self) -> "Library": ...
    @property
    def opening(self) -> "Callable[..., Opening]": ...
    @property
    def profile(self) -> "Callable[..., Profile]": ...
    @property
    def compression(self) -> "Callable[..., CompressionReport]": ...
    @property
    def compare(self) -> "Callable[..., Comparison]": ...
    @property
    def find_project(self) -> Callable[..., str]: ...


class Action(NamedTuple):
    """What the tool can do: its function, the parameters it accepts and requires, and its
    description for models.
    """

    run: Callable[[WarmSessionBackend, Arguments], Answer]
    accepts: tuple[str, ...]
    requires: tuple[str, ...]
    description: str


def warm_session(journeyman: WarmSessionBackend, arguments: Mapping[str, Any] | str) -> str:
    """Run the action that the arguments name; return JSON with `success` and perhaps `error`."""
    try:
        answer = {"success": True, **_run_action(journeyman, arguments)}
    except JourneymanError as error:
        answer = {"success": False, "error": str(error)}
    return msgspec.json.encode(answer).decode()


def _run_action(journeyman: WarmSessionBackend, arguments: object) -> Answer:
    values = validated_arguments(_NAME, arguments, SCHEMA["parameters"])
    name = values.pop("action")
    action = ACTIONS[name]
    _require(f"The action {name}", action.requires, values, _PARAMETERS)
    ignored = [parameter for parameter in values if parameter not in action.accepts]
    answer = action.run(journeyman, values)
    # Models pass more than is needed; they should know that it changed nothing.
    return {**answer, "ignored": ignored} if ignored else answer


def _build(journeyman: WarmSessionBackend, arguments: Arguments) -> Answer:
    template = journeyman.templates.build(
        arguments["name"],
        min_messages=arguments.get("min_messages", MIN_MESSAGES),
        max_sessions=arguments.get("max_sessions", MAX_SESSIONS),
        origin=arguments.get("source_filter"),
        platform=arguments.get("platform"),
        tags=arguments.get("tags"),
        description=arguments.get("description"),
    )
    return warm_session_answers.built_answer(template)


def _profile(journeyman: WarmSessionBackend, arguments: Arguments) -> Answer:
    filters = {
        name: arguments[parameter]
        for name, parameter in (("origin", "source_filter"), ("platform", "platform"))
        if parameter in arguments
    }
    session = arguments.get("session_id")
    profile = journeyman.profile(session, **_trivial(arguments), **filters)
    return warm_session_answers.profile_answer(profile)


def _trivial(arguments: Arguments) -> Arguments:
    return {"include_trivial": arguments.get("include_trivial", False)}


ACTIONS = {
    "build": Action(
        run=_build,
        accepts=(
            *("name", "description", "min_messages", "max_sessions", "source_filter", "platform"),
            "tags",
        ),
        requires=("name",),
        description="make a template from long recorded sessions that went well; building the same "
        "name again makes a new version",
    ),
    "list": Action(
        run=lambda journeyman, arguments: warm_session_answers.templates_answer(
            journeyman.templates.list(
                tags=arguments.get("tags", ()), all_tags=arguments.get("all_tags", False)
            )
        ),
        accepts=("tags", "all_tags"),
        requires=(),
        description="see which templates there are, before you load, build or delete one",
    ),
    "load": Action(
        run=lambda journeyman, arguments: warm_session_answers.opening_answer(
            journeyman.opening(template=arguments["name"])
        ),
        accepts=("name",),
        requires=("name",),
        description="get the messages of a template, to start a session warm",
    ),
    "delete": Action(
        run=lambda journeyman, arguments: {
            "template": arguments["name"],
            "deleted": journeyman.templates.delete(arguments["name"]),
        },
        accepts=("name",),
        requires=("name",),
        description="remove a template with all its versions, or one version as name@version; this "
        "cannot be undone",
    ),
    "profile": Action(
        run=_profile,
        accepts=("session_id", "source_filter", "platform", "include_trivial"),
        requires=(),
        description="error rates of tool calls by tool and by length of session, in one session or "
        "in all, and whether the agent gets better within a session",
    ),
    "compress-check": Action(
        run=lambda journeyman, arguments: warm_session_answers.compression_answer(
            journeyman.compression(arguments["session_id"], **_trivial(arguments))
        ),
        accepts=("session_id", "include_trivial"),
        requires=("session_id",),
        description="whether a session kept its proficiency when its context was compressed",
    ),
    "compare": Action(
        run=lambda journeyman, arguments: warm_session_answers.comparison_answer(
            journeyman.compare(
                arguments["session_id"],
                arguments["compare_with"],
                **_trivial(arguments),
            )
        ),
        accepts=("session_id", "compare_with", "include_trivial"),
        requires=("session_id", "compare_with"),
        description="whether a warm session (session_id) made fewer errors than a cold one "
        "(compare_with)",
    ),
}


def _text_parameter(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_PARAMETERS: dict[str, dict[str, Any]] = {
    "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
    "name": _text_parameter(
        "The template's name, such as web-research; name@2 for one version of it. For build, load "
        "and delete."
    ),
    "description": _text_parameter("What the template is for, in a sentence. For build."),
    "min_messages": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1_000_000,
        "default": MIN_MESSAGES,
        "description": "Learn only from sessions with at least this many messages. For build.",
    },
    "max_sessions": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000,
        "default": MAX_SESSIONS,
        "description": "Learn from up to this many sessions, the newest first. For build.",
    },
    "source_filter": _text_parameter(
        "Only sessions of this platform, such as cli, telegram or cron, or of this recorder, such "
        "as claude_code, codex or hermes. For build and profile."
    ),
    "platform": _text_parameter(
        "Only sessions from this platform, such as cli, telegram, discord or cron. For build and "
        "profile."
    ),
    "include_trivial": {
        "type": "boolean",
        "default": False,
        "description": "Also count housekeeping tools, such as memory and todo. "
        "For profile, compress-check and compare.",
    },
    "tags": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Tags to give to a template (build), or of which a template must have one "
        "(list).",
    },
    "all_tags": {
        "type": "boolean",
        "default": False,
        "description": "Whether a template must have all the tags. For list.",
    },
    "session_id": _text_parameter(
        "A recorded session, by its id or the beginning of it. For profile, compress-check and "
        "compare."
    ),
    "compare_with": _text_parameter(
        "The cold session that session_id is compared with. For compare."
    ),
}

SCHEMA: dict[str, Any] = {
    "name": _NAME,
    "description": "Start sessions warm, with examples of tool calls that worked before, and "
    "measure how reliable sessions were. Actions:\n"
    + "\n".join(f"- {name}: {action.description}." for name, action in ACTIONS.items())
    + "\nThe answer is JSON with `success`; if that is false, `error` says what to do instead.",
    "parameters": {
        "type": "object",
        "properties": _PARAMETERS,
        "required": ["action"],
        "additionalProperties": False,
    },
}
"""The function's definition, as OpenAI's and similar interfaces take it."""


def validated_arguments(tool: str, arguments: object, schema: Schema) -> Arguments:
    """Return the arguments as the schema defines them, without empty ones. Raises WrongInput."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415 - loads slowly

    values = arguments
    if isinstance(values, str):
        try:
            values = msgspec.json.decode(values)
        except _NO_JSON:
            raise WrongInput(
                f"The arguments of {tool} are text that is not JSON. Pass a JSON object."
            ) from None
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise WrongInput(
            f"The arguments of {tool} are {_shown(values)}. Pass a JSON object instead."
        )
    parameters: Mapping[str, Schema] = schema["properties"]
    required: Sequence[str] = schema.get("required", ())
    if unknown := [name for name in values if name not in parameters]:
        takes = ", ".join(f"{name} (required)" if name in required else name for name in parameters)
        raise WrongInput(f"{tool} has no parameter {_shown(unknown[0])}. It takes: {takes}.")
    given = {
        name: _read(values[name], parameter)
        for name, parameter in parameters.items()
        if name in values and not _is_left_out(values[name])
    }
    _require(tool, required, given, parameters)
    try:
        errors = list(Draft202012Validator(schema).iter_errors(given))
    except ValueError:  # a number with thousands of digits, which cannot be written
        raise WrongInput(f"The arguments of {tool} have a number that cannot be read.") from None
    for error in errors[:1]:
        name = str(error.path[0])
        value, hint = _shown(given[name]), _hint(parameters[name])
        if error.validator == "enum":
            raise WrongInput(f"There is no {name} {value}. {hint}")
        wanted = f"{error.validator}: {_shown(error.validator_value)}"
        raise WrongInput(f"{name} is {value}, which does not fit ({wanted}). {hint}")
    return given


def _require(
    what: str, required: Sequence[str], given: Collection[str], parameters: Mapping[str, Schema]
) -> None:
    """Raise WrongInput that names every required argument which is missing."""
    missing = [name for name in required if name not in given]
    if missing:
        about = " ".join(f"{name}: {_hint(parameters[name])}" for name in missing)
        raise WrongInput(f"{what} needs {' and '.join(missing)}. {about}")


def _is_left_out(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _read(value: Any, parameter: Schema) -> Any:
    """Return a value as the schema means it: models sometimes write numbers, truth values and lists
    as text. Lone surrogates are replaced, because no database and no file accepts them.
    """
    kind = parameter["type"]
    if isinstance(value, str) and kind != "string":
        with suppress(*_NO_JSON):
            value = msgspec.json.decode(value.lower() if kind == "boolean" else value)
        if isinstance(value, str) and kind == "array":
            value = value.split(",")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind == "array" and isinstance(value, list):
        return [_sendable(item) for item in value if not _is_left_out(item)]
    return _sendable(value)


def _sendable(value: Any) -> Any:
    return value.strip().encode(errors="replace").decode() if isinstance(value, str) else value


def _hint(parameter: Schema) -> str:
    choices = parameter.get("enum")
    return f"Choose one of: {', '.join(choices)}." if choices else parameter["description"]


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits cannot be written
        return f"a {type(value).__name__} that cannot be shown"
