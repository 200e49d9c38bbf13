"""The tool `warm_session`, for any agent that can call functions: build, list, load and delete
templates, and look at how reliable sessions were.
"""

import math
import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from journeyman.records import Template
from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.templates.defaults import MAX_SESSIONS, MIN_MESSAGES
from journeyman.warm_session import answers
from journeyman.warm_session.answers import Answer

if TYPE_CHECKING:
    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.profile import Profile
    from journeyman.templates.library import Library
    from journeyman.templates.shown.opening import Opening

Schema = Mapping[str, Any]
Given = dict[str, Any]

_NAME = "warm_session"
_NO_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)


class Experience(Protocol):
    """Templates, openings and reports, as `Journeyman` offers them."""

    @property
    def templates(self) -> "Library": ...
    @property
    def build_template(self) -> Callable[..., Template]: ...
    @property
    def opening(self) -> "Callable[..., Opening]": ...
    @property
    def profile(self) -> "Callable[..., Profile]": ...
    @property
    def compression(self) -> "Callable[..., CompressionReport]": ...
    @property
    def compare(self) -> "Callable[..., Comparison]": ...


class Action(NamedTuple):
    """What the tool can do: parameters it takes and needs, and what a model is told of it."""

    run: Callable[[Experience, Given], Answer]
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    about: str


def warm_session(journeyman: Experience, arguments: Mapping[str, Any] | str) -> str:
    """Do what the arguments ask for; the answer is JSON with `success` and perhaps `error`."""
    try:
        answer = {"success": True, **_done(journeyman, arguments)}
    except JourneymanError as error:
        answer = {"success": False, "error": str(error)}
    return msgspec.json.encode(answer).decode()


def _done(journeyman: Experience, arguments: object) -> Answer:
    given = read_arguments(_NAME, arguments, SCHEMA["parameters"])
    name = given.pop("action")
    action = ACTIONS[name]
    for needed in action.needs:
        if needed not in given:
            about = _PARAMETERS[needed]["description"]
            raise WrongInput(f"The action {name} needs {needed}, which was not given. {about}")
    ignored = [other for other in given if other not in action.takes]
    answer = action.run(journeyman, given)
    # Models fill in more than is asked for; they should know that it changed nothing.
    return {**answer, "ignored": ignored} if ignored else answer


def _build(journeyman: Experience, given: Given) -> Answer:
    template = journeyman.build_template(
        given["name"],
        min_messages=given.get("min_messages", MIN_MESSAGES),
        max_sessions=given.get("max_sessions", MAX_SESSIONS),
        source=given.get("source_filter"),
        tags=given.get("tags"),
        description=given.get("description"),
    )
    return answers.built_answer(template)


def _profile(journeyman: Experience, given: Given) -> Answer:
    chosen = {"source": given["source_filter"]} if "source_filter" in given else {}
    return answers.profile_answer(journeyman.profile(given.get("session_id"), **chosen))


ACTIONS = {
    "build": Action(
        run=_build,
        takes=("name", "description", "min_messages", "max_sessions", "source_filter", "tags"),
        needs=("name",),
        about="make a template from long recorded sessions that went well; building the same name "
        "again makes a new version",
    ),
    "list": Action(
        run=lambda journeyman, given: answers.templates_answer(
            journeyman.templates.list(tags=given.get("tags", ()))
        ),
        takes=("tags",),
        needs=(),
        about="see which templates there are, before you load, build or delete one",
    ),
    "load": Action(
        run=lambda journeyman, given: answers.opening_answer(
            journeyman.opening(template=given["name"])
        ),
        takes=("name",),
        needs=("name",),
        about="get the messages of a template, to start a session warm",
    ),
    "delete": Action(
        run=lambda journeyman, given: {
            "template": given["name"],
            "deleted": journeyman.templates.delete(given["name"]),
        },
        takes=("name",),
        needs=("name",),
        about="remove a template with all its versions, or one version as name@version; this "
        "cannot be undone",
    ),
    "profile": Action(
        run=_profile,
        takes=("session_id", "source_filter"),
        needs=(),
        about="error rates of tool calls by tool and by length of session, in one session or in "
        "all, and whether the agent gets better within a session",
    ),
    "compress-check": Action(
        run=lambda journeyman, given: answers.compression_answer(
            journeyman.compression(given["session_id"])
        ),
        takes=("session_id",),
        needs=("session_id",),
        about="whether a session kept its proficiency when its context was compressed",
    ),
    "compare": Action(
        run=lambda journeyman, given: answers.comparison_answer(
            journeyman.compare(given["session_id"], given["compare_with"])
        ),
        takes=("session_id", "compare_with"),
        needs=("session_id", "compare_with"),
        about="whether a warm session (session_id) made fewer errors than a cold one "
        "(compare_with)",
    ),
}


def _a_text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_PARAMETERS: dict[str, dict[str, Any]] = {
    "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
    "name": _a_text(
        "The template's name, such as web-research; name@2 for one version of it. For build, load "
        "and delete."
    ),
    "description": _a_text("What the template is for, in a sentence. For build."),
    "min_messages": {
        "type": "integer",
        "minimum": 0,
        "maximum": 1_000_000,
        "default": MIN_MESSAGES,
        "description": "Learn only from sessions with at least so many messages. For build.",
    },
    "max_sessions": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10_000,
        "default": MAX_SESSIONS,
        "description": "Learn from at most so many sessions, the newest first. For build.",
    },
    "source_filter": _a_text(
        "Only sessions of this recorder, such as claude_code, codex or hermes. For build and "
        "profile."
    ),
    "tags": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Tags to give to a template (build), or that a template must have (list).",
    },
    "session_id": _a_text(
        "A recorded session, by its id or the beginning of it. For profile, compress-check and "
        "compare."
    ),
    "compare_with": _a_text("The cold session that session_id is compared with. For compare."),
}

SCHEMA: dict[str, Any] = {
    "name": _NAME,
    "description": "Start sessions warm, with examples of tool calls that worked before, and "
    "measure how reliable sessions were. Actions:\n"
    + "\n".join(f"- {name}: {action.about}." for name, action in ACTIONS.items())
    + "\nThe answer is JSON with `success`; if that is false, `error` says what to do instead.",
    "parameters": {
        "type": "object",
        "properties": _PARAMETERS,
        "required": ["action"],
        "additionalProperties": False,
    },
}
"""The function's definition, as OpenAI's and similar interfaces take it."""


_KINDS: dict[str, tuple[Any, str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "array of string": (list[str], "a list of texts"),
    "object": (dict[str, Any], "a JSON object"),
    "array of object": (list[dict[str, Any]], "a list of objects"),
}


def read_arguments(tool: str, arguments: object, schema: Schema) -> Given:
    """The arguments, as the schema has them; empty ones are left out. Raises WrongInput."""
    given = arguments
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except _NO_JSON:
            raise WrongInput(
                f"The arguments of {tool} are a text that is no JSON. Give a JSON object."
            ) from None
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise WrongInput(
            f"The arguments of {tool} are {_shown(given)}. Give a JSON object instead."
        )
    known: Mapping[str, Schema] = schema["properties"]
    if unknown := [name for name in given if name not in known]:
        raise WrongInput(
            f"{tool} has no parameter {_shown(unknown[0])}. It takes: {', '.join(known)}."
        )
    read = {
        name: _value(name, given[name], wanted)
        for name, wanted in known.items()
        if not _is_left_out(given.get(name))
    }
    for name in schema.get("required", ()):
        if name not in read:
            raise WrongInput(f"{tool} needs {name}, which was not given. {_said(known[name])}")
    return read


def _is_left_out(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _value(name: str, value: object, wanted: Schema) -> object:
    if wanted.get("enum") and value not in wanted["enum"]:
        raise WrongInput(f"There is no {name} {_shown(value)}. {_said(wanted)}")
    kind = wanted["type"]
    if kind == "array":
        kind = f"array of {wanted['items']['type']}"
    if kind == "object" or kind.startswith("array"):
        value = _listed(value, kind) if isinstance(value, str) else value
    type_, called = _KINDS[kind]
    low, high = wanted.get("minimum", -math.inf), wanted.get("maximum", math.inf)
    try:
        # Models do write numbers as texts.
        read = msgspec.convert(value, type_, strict=kind != "integer")
    except msgspec.ValidationError:
        read = None
    if read is None or (kind == "integer" and not low <= read <= high):
        between = f" from {low} to {high}" if kind == "integer" else ""
        raise WrongInput(f"{name} is {_shown(value)}, and must be {called}{between}.")
    if isinstance(read, list):
        return [_sendable(one) for one in read if not _is_left_out(one)]
    return _sendable(read)


def _listed(text: str, kind: str) -> object:
    """A list or an object that was written as a text: as JSON, or texts between commas."""
    decoded: object = None
    with suppress(*_NO_JSON):
        decoded = msgspec.json.decode(text)
    if isinstance(decoded, list) or kind != "array of string":
        return text if decoded is None else decoded
    return [one.strip() for one in text.split(",")]


def _sendable(value: Any) -> Any:
    """A text without lone surrogates, which no database and no file takes; others as they are."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _said(wanted: Schema) -> str:
    choices = wanted.get("enum")
    return f"Choose one of: {', '.join(choices)}." if choices else wanted["description"]


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits cannot be written
        return f"a {type(value).__name__} that cannot be shown"
