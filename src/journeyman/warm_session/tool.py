"""The function that an agent calls, its actions and its schema. Each action reads its arguments,
calls one method of the facade and tells the result; what a template or a profile is, others know.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from journeyman.records.errors import JourneymanError, WrongInput
from journeyman.templates.defaults import MAX_SESSIONS, MIN_MESSAGES
from journeyman.warm_session import compact
from journeyman.warm_session.arguments import Given, read_arguments
from journeyman.warm_session.compact import Answer
from journeyman.warm_session.experience import Experience

_NAME = "warm_session"


class Action(NamedTuple):
    """One thing the tool can do: the parameters it takes, those it cannot do without, and what a
    model is told of it.
    """

    run: Callable[[Experience, Given], Answer]
    takes: tuple[str, ...]
    needs: tuple[str, ...]
    about: str


def warm_session(journeyman: Experience, arguments: Mapping[str, Any] | str) -> str:
    """Do what the arguments ask for. The answer is JSON: `{"success":true,…}`, or for every wrong
    use `{"success":false,"error":…}`.
    """
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
    return compact.built_answer(template)


def _list(journeyman: Experience, given: Given) -> Answer:
    return compact.templates_answer(journeyman.templates.list(tags=given.get("tags", ())))


def _load(journeyman: Experience, given: Given) -> Answer:
    return compact.opening_answer(journeyman.opening(template=given["name"]))


def _delete(journeyman: Experience, given: Given) -> Answer:
    return {"template": given["name"], "deleted": journeyman.templates.delete(given["name"])}


def _profile(journeyman: Experience, given: Given) -> Answer:
    chosen = {"source": given["source_filter"]} if "source_filter" in given else {}
    return compact.profile_answer(journeyman.profile(given.get("session_id"), **chosen))


def _compress_check(journeyman: Experience, given: Given) -> Answer:
    return compact.compression_answer(journeyman.compression(given["session_id"]))


def _compare(journeyman: Experience, given: Given) -> Answer:
    found = journeyman.compare(given["session_id"], given["compare_with"])
    return compact.comparison_answer(found)


ACTIONS = {
    "build": Action(
        run=_build,
        takes=("name", "description", "min_messages", "max_sessions", "source_filter", "tags"),
        needs=("name",),
        about="make a template from long recorded sessions that went well; building the same name "
        "again makes a new version",
    ),
    "list": Action(
        run=_list,
        takes=("tags",),
        needs=(),
        about="see which templates there are, before you load, build or delete one",
    ),
    "load": Action(
        run=_load,
        takes=("name",),
        needs=("name",),
        about="get the messages of a template, to start a session warm",
    ),
    "delete": Action(
        run=_delete,
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
        run=_compress_check,
        takes=("session_id",),
        needs=("session_id",),
        about="whether a session kept its proficiency when its context was compressed",
    ),
    "compare": Action(
        run=_compare,
        takes=("session_id", "compare_with"),
        needs=("session_id", "compare_with"),
        about="whether a warm session (session_id) made fewer errors than a cold one "
        "(compare_with)",
    ),
}

_PARAMETERS: dict[str, dict[str, Any]] = {
    "action": {
        "type": "string",
        "enum": list(ACTIONS),
        "description": "What to do.",
    },
    "name": {
        "type": "string",
        "description": "The template's name, such as web-research; name@2 for one version of it. "
        "For build, load and delete.",
    },
    "description": {
        "type": "string",
        "description": "What the template is for, in a sentence. For build.",
    },
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
    "source_filter": {
        "type": "string",
        "description": "Only sessions of this recorder, such as claude_code, codex or hermes. For "
        "build and profile.",
    },
    "tags": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Tags to give to a template (build), or that a template must have (list).",
    },
    "session_id": {
        "type": "string",
        "description": "A recorded session, by its id or the beginning of it. For profile, "
        "compress-check and compare.",
    },
    "compare_with": {
        "type": "string",
        "description": "The cold session that session_id is compared with. For compare.",
    },
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
