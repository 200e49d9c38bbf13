"""The operations for hosts without a host, for tests: a home with experience of two projects, and
requests to the service as hosts send them.

    with opened(experience, tmp_path) as desk:
        answer = desk.ask("opening", host="hermes", session="s1", task=TASK, cwd=desk.project)
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LONGEST_S, deadline

from journeyman import Journeyman
from journeyman.hosts.imports import ImportQueue
from journeyman.hosts.service import Exchange, HostService

TASK = "Check whether the index of the notes is complete"
OTHER_TASK = "Publish the documentation to the staging site"
"""Requests that the experience fits, of two kinds."""

STALE = "error: the index of notes.txt is stale"
REMEDY = "./build-index notes.txt"

_WORK: dict[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = {
    "notes": (
        (
            "Look whether the index of the notes is up to date",
            "Is the notes index stale again? Repair it",
            "Rebuild the index of the notes, please",
            "How many notes are in the index now?",
        ),
        (
            ("./check-index notes.txt", f"Exit code 3\n{STALE}"),
            (REMEDY, "2 entries"),
            ("./check-index notes.txt", "index ok"),
            ("make count", "2"),
        ),
    ),
    "site": (
        (
            "Publish the documentation site to staging",
            "Deploy the documentation so that reviewers can see the staging site",
            "Build the documentation pages and publish them",
            "The staging documentation is old: publish it again",
        ),
        (
            ("./site build --strict docs/", "41 pages"),
            ("./site links docs/", "all links are good"),
            ("./site publish --to staging", "published"),
        ),
    ),
}


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
    with Journeyman(home=places.home, environ={"HOME": str(folder)}) as journeyman:
        for kind, (requests, commands) in _WORK.items():
            for number, request in enumerate(requests):
                journeyman.record(
                    conversation(request, commands),
                    source="claude_code",
                    session_id=f"{kind}-{number}",
                    cwd=places.project,
                )
        for number in range(3):
            journeyman.record(
                conversation("Bake the bread for the guests", [("./oven bake bread", "baked")]),
                source="claude_code",
                session_id=f"bread-{number}",
                cwd=places.other,
            )
        journeyman.learn()
    return places


def conversation(request: str, commands: Any) -> list[dict[str, Any]]:
    """A request that these commands served, each with its result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
    for at, (line, result) in enumerate(commands):
        function = {"name": "Bash", "arguments": json.dumps({"command": line})}
        call = {"id": f"call_{at}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{at}", "content": result},
        ]
    return [*messages, {"role": "assistant", "content": "Done."}]


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
        answer = self.service.handle(operation, json.dumps(body).encode(), exchange)
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
    imports: ImportQueue | None = None,
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
        service = HostService(journeyman, imports=imports)
        yield Desk(journeyman, service, places)
