"""Recorded sessions as a replay meets them: prompts and calls in their order, and the checkout as
far as the sessions before show it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from journeyman.experience.checkout import INSTRUCTIONS, Checkout
from journeyman.learning.agent_tools import file_path, find_call, operation_of, shell_command
from journeyman.learning.commands import commands_of, subject_of
from journeyman.learning.requests import requests
from journeyman.learning.session_judge import VERDICT_RULES
from journeyman.learning.slots import Location, path_inside, used_files
from journeyman.records import Call, Message, Session, Verdict, join_calls
from journeyman.store.store import Store
from journeyman.text.shell import pipelines

_LOOKS = frozenset(("search_text", "find_files", "list_files"))
_LOOKING = frozenset(["grep", "rg", "ag", "find", "fd", "ls", "tree", "egrep", "fgrep"])
_REMOVING = frozenset(("rm", "git rm", "git mv", "mv"))
_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)


class Event(NamedTuple):
    """A prompt of the person, or a call with its verdict, the folder it ran in and its files."""

    number: int
    prompt: str = ""
    call: Call | None = None
    verdict: Verdict | None = None
    folder: str | None = ""
    files: tuple[str, ...] = ()


class RecordedSession(NamedTuple):
    """A session, its top folder, and its events in order, whose `number` counts the requests."""

    session: Session
    root: str
    events: tuple[Event, ...]


def read_session(store: Store, session: Session) -> RecordedSession:
    """Return a stored session with its prompts and calls."""
    messages: list[Message] = sorted(
        store.sessions.messages(session.id), key=lambda message: message.position
    )
    known = store.verdicts.known(VERDICT_RULES, [session.id]).get(session.id, ())
    verdicts = {call.index: call.verdict for call in known}
    calls: dict[str, list[Call]] = {}
    for call in join_calls(messages):
        calls.setdefault(call.asked_key, []).append(call)
    events, location = [], Location(session.cwd, session.project)
    number, before = 0, 0
    for message, under in zip(messages, requests(messages), strict=True):
        if message.role == "user" and message.kind == "plain" and message.text.strip():
            number += under.number != before or number == 0
            before = under.number
            events.append(Event(number, prompt=message.text))
        for call in calls.get(message.key, ()):
            if verdict := verdicts.get(call.index):
                folder = location.of(call, worked=verdict.status == "ok")
                files = tuple(used_files(call, location.root, folder))
                events.append(Event(number, "", call, verdict, folder, files))
    return RecordedSession(session, location.root, tuple(events))


class RecordedCheckout(Checkout):
    """What the sessions so far show of a project's folder. A file that was used exists until a call
    does not find it; an instructions file is taken to have been there before it was first read.
    """

    def __init__(self, instructions: dict[str, str]) -> None:
        self._instructions = instructions
        self._seen: dict[str, bool] = {}

    @property
    def instructions(self) -> dict[str, str]:
        return self._instructions

    def exists(self, path: str) -> bool:
        known = self._seen.get(path.rstrip("/"))
        if known is None:
            known = any(there and one.startswith(f"{path}/") for one, there in self._seen.items())
        return known

    def note(self, recorded: RecordedSession) -> None:
        """Note what a session shows."""
        for event in recorded.events:
            if event.call is None or event.verdict is None:
                continue
            root, folder = recorded.root, event.folder
            failed = event.verdict.is_error
            if not failed:
                self._seen |= dict.fromkeys(event.files, True)
            line = shell_command(event.call.tool, event.call.arguments)
            names = [command.name for command in commands_of(line)]
            if event.verdict.kind != "not_found":
                scripts = (path_inside(subject_of(name), root, folder) for name in names)
                self._seen |= {script: True for script in scripts if "/" in script}
            for words in pipelines(line) if _REMOVING.intersection(names) and not failed else ():
                if words[0] == "mv" or words[:2] == ["git", "mv"]:
                    words.pop()  # where to
                if words[0] in _REMOVING or " ".join(words[:2]) in _REMOVING:
                    gone = (path_inside(word.strip("'\""), root, folder) for word in words[1:])
                    self._seen |= dict.fromkeys(filter(None, gone), False)
            if failed and (path := missing_path(event.call, root)):
                self._seen[path] = False


def missing_path(call: Call, root: str) -> str:
    """Return the path that a file tool did not find; empty if it found it."""
    found = find_call(call.tool, call.arguments)
    if found is None or found.operation == "run":
        return ""
    is_missing = re.search(r"does not exist|no such file", (call.result or "")[:300], re.IGNORECASE)
    return path_inside(found.fields.get("path", ""), root) if is_missing else ""


def is_search(call: Call) -> bool:
    """Whether a call only looks for something."""
    operation = operation_of(call.tool, call.arguments)
    if operation in _LOOKS:
        return True
    line = shell_command(call.tool, call.arguments) if operation == "run" else ""
    names = {command.name for command in commands_of(line)}
    return bool(names) and names <= _LOOKING


def instructions_in(sessions: Sequence[RecordedSession]) -> dict[str, str]:
    """Return the instructions files of a project: all that sessions read of them or wrote."""
    found: dict[str, str] = {}
    for recorded in sessions:
        for event in recorded.events:
            if event.call is None or event.verdict is None or event.verdict.status != "ok":
                continue
            operation = operation_of(event.call.tool, event.call.arguments)
            path = path_inside(file_path(event.call.tool, event.call.arguments), recorded.root)
            fields = find_call(event.call.tool, event.call.arguments)
            if path not in INSTRUCTIONS or fields is None:
                continue
            written = fields.fields.get("content" if operation == "write" else "old", "")
            text = _LINE_NUMBER.sub("", event.call.result or "") if operation == "read" else written
            if text not in found.get(path, ""):
                found[path] = f"{found.get(path, '')}\n{text}"
    return found
