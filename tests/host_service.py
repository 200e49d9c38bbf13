"""The operations for hosts without a host, for tests: a home with experience of two projects, and
requests to the service as hosts send them.

    with opened(experience, tmp_path) as desk:
        answer = desk.ask("opening", host="hermes", session="s1", task=TASK, cwd=desk.project)
"""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LONGEST_S, deadline

from journeyman import Journeyman
from journeyman.plugin.imports import ImportSpool
from journeyman.plugin.service import Exchange, HostService

TASK = "Check whether notes/july.md is in the index of the notes"
OTHER_TASK = "Publish notes/june.md to the staging site"
"""Requests that name files which earlier sessions did not find."""

GONE = {TASK: "notes/july.md", OTHER_TASK: "notes/june.md"}
TOLD = {task: f"`{path}` does not exist" for task, path in GONE.items()}
"""What is known for these requests. The start of a session has no room for it."""

START = "Commands of this project"
"""What every session in the first project is told at its start."""

STALE = "error: the index of notes.txt is stale"
REMEDY = "./check-index notes.txt"
"""What works in the place of `notelint`, which every session is told at its start."""

MOVED, FOUND = "notes/march.md", "archive/march.md"
"""A file that is gone, and where it is now. A session is told when it looks for it."""

_MISSING = [
    f"notes/{month}.md"
    for month in ("april", "august", "december", "february", "january", "july", "june", "march")
]
"""More than a start has room for: it tells the first five."""

_INDEXING = (
    ("notelint -q notes.txt", "Exit code 127\nbash: line 1: notelint: command not found"),
    ("./check-index notes.txt", f"Exit code 3\n{STALE}"),
    ("./build-index notes.txt", "2 entries"),
    ("./check-index notes.txt", "index ok"),
    ("make count", "2"),
)
_LOOKING = (
    (
        f"cat {' '.join(_MISSING)}",
        "\n".join(
            ("Exit code 1", *(f"cat: {path}: No such file or directory" for path in _MISSING))
        ),
    ),
    (f"cat {FOUND}", "It rained."),
)

NOTES = (
    ("Look whether the index of the notes is up to date", _INDEXING),
    ("Is the notes index stale again? Repair it", (*_INDEXING, *_LOOKING)),
    ("Rebuild the index of the notes, please", (*_INDEXING, *_LOOKING)),
    ("How many notes are in the index now?", (*_INDEXING, *_LOOKING)),
)
"""Earlier sessions on the notes: the request, and the commands with their results."""

_PUBLISHING = (
    ("./site build --strict docs/", "41 pages"),
    ("./site links docs/", "all links are good"),
    ("./site publish --to staging", "published"),
)
_SITE = tuple(
    (request, _PUBLISHING)
    for request in (
        "Publish the documentation site to staging",
        "Deploy the documentation so that reviewers can see the staging site",
        "Build the documentation pages and publish them",
        "The staging documentation is old: publish it again",
    )
)
_BREAD = (("Bake the bread for the guests", (("./oven bake bread", "baked"),)),) * 3


class Experience(NamedTuple):
    """A home whose database has learned, and the two projects that it knows. Copy it."""

    home: Path
    project: Path
    other: Path


def write_experience(folder: Path) -> Experience:
    """Record and learn sessions in two projects; the first has two kinds of work."""
    places = Experience(folder / "home", folder / "garden", folder / "kitchen")
    for project in (places.project, places.other):
        (project / ".git").mkdir(parents=True)
        (project / ".git/description").touch()
    for name in ("check-index", "build-index", "site", FOUND):
        write_file(places.project / name)
    write_file(places.project / "Makefile", "count:\n\twc -l notes.txt\n")
    write_file(places.other / "oven")
    with Journeyman(home=places.home, environ={"HOME": str(folder)}) as journeyman:
        for kind, project, work in (
            ("notes", places.project, NOTES),
            ("site", places.project, _SITE),
            ("bread", places.other, _BREAD),
        ):
            for number, (request, commands) in enumerate(work):
                journeyman.record(
                    conversation(request, commands),
                    source="claude_code",
                    session_id=f"{kind}-{number}",
                    cwd=project,
                )
        journeyman.learn()
    return places


def write_file(path: Path, text: str = "") -> None:
    """Write a file that a fact rests on, with its folder."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def conversation(request: str, commands: Any, shell: str = "Bash") -> list[dict[str, Any]]:
    """A request that these commands served, each with its result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
    for at, (line, result) in enumerate(commands):
        function = {"name": shell, "arguments": json.dumps({"command": line})}
        call = {"id": f"call_{at}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{at}", "content": result},
        ]
    return [*messages, {"role": "assistant", "content": "Done."}]


def refuse(journeyman: Journeyman, log: Path, cwd: str, command: str, words: str) -> None:
    """Write, import and learn a log of Claude Code in which a person refused a command, and said
    why: nothing but the log tells a refusal from an output that looks like one.
    """
    session = log.stem
    said = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
        "was a file edit, the new_string was NOT written to the file). To tell you how to proceed, "
        f"the user said:\n{words}"
    )
    answer = {"role": "assistant", "model": "claude-opus-4-5", "usage": {"input_tokens": 1}}
    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": said}
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": "Pull the changes"}},
        {"type": "assistant", "message": {**answer, "id": "m1", "content": [use]}},
        {
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": "User rejected tool use",
        },
        {"type": "assistant", "message": {**answer, "id": "m2", "content": "As you like."}},
    ]
    for number, line in enumerate(lines):
        before = f"{session}-{number - 1}" if number else None
        line |= {"uuid": f"{session}-{number}", "parentUuid": before, "sessionId": session}
        line |= {"cwd": cwd, "timestamp": f"2026-03-01T00:00:0{number}Z"}
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    journeyman.import_logs(log)
    journeyman.learn()


class Desk:
    """A service in a home of its own, and the requests of hosts to it."""

    def __init__(self, journeyman: Journeyman, service: HostService, places: Experience) -> None:
        self.journeyman = journeyman
        self.service = service
        self.project = str(places.project)
        self.other = str(places.other)

    def ask(
        self,
        operation: str,
        host: str = "hermes",
        *,
        within_s: float = LONGEST_S,
        is_received: bool = True,
        **body: Any,
    ) -> Any:
        """Send one request, and return the answer; None if it is empty."""
        exchange = Exchange(host=host, ends=deadline(within_s))
        try:
            answer = self.service.handle(operation, json.dumps(body).encode(), exchange)
        finally:
            exchange.finish(is_received=is_received)
        return json.loads(answer) if answer else None

    def open(self, session: str, host: str = "hermes", **asked: Any) -> Any:
        """The opening of a session on TASK in the first project, unless told otherwise."""
        return self.ask(
            "opening", host, **{"session": session, "task": TASK, "cwd": self.project, **asked}
        )

    def hook(self, event: str, session: str = "s1", host: str = "claude-code", **more: Any) -> Any:
        """What a hook of Claude Code or Codex prints."""
        options = {name: more.pop(name) for name in ("within_s", "is_received") if name in more}
        given = {"hook_event_name": event, "session_id": session, "cwd": self.project, **more}
        return self.ask("hook", host, **options, **given)

    def context(
        self, event: str, session: str = "s1", host: str = "claude-code", **more: Any
    ) -> str:
        """The text that a hook adds to the conversation."""
        answer = self.hook(event, session, host, **more)
        if answer is None:
            return ""
        output = answer["hookSpecificOutput"]
        assert output["hookEventName"] == event
        added: str = output["additionalContext"]
        return added

    @property
    def events(self) -> list[tuple[str, str, str, str]]:
        """What was noted for the report: host, session, kind and outcome."""
        events = self.journeyman.host_sessions.events()
        return [(one.host, one.session_id, one.kind, one.outcome) for one in events]


@contextmanager
def opened(
    places: Experience,
    folder: Path,
    *,
    settings: str = "",
    **options: Any,
) -> Iterator[Desk]:
    """Open a copy of the home with experience, with these settings as its config.toml."""
    home = folder / "home"
    if not home.exists():
        home.mkdir(mode=0o700, parents=True)
        shutil.copyfile(places.home / "journeyman.db", home / "journeyman.db")
    if settings:
        (home / "config.toml").write_text(settings)
    environ = {"HOME": str(folder)}
    with Journeyman(home=home, environ=environ, **options) as journeyman:
        # Nothing works off what is reported.
        imports = ImportSpool(home, "", program=(sys.executable, "-c", ""))
        service = HostService(journeyman, imports=imports)
        yield Desk(journeyman, service, places)
