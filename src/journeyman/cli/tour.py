"""`journeyman tour`: shows what Journeyman does, in a temporary folder."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.agent.turn import Turn
from journeyman.cli import context, formatting
from journeyman.cli.context import flag
from journeyman.cli.opening import show_choice
from journeyman.cli.playbook import show_playbook
from journeyman.cli.profile import show_failure, show_summary, show_tools
from journeyman.cli.run import RunDisplay
from journeyman.cli.session_view import print_call
from journeyman.cli.tour_scenes import SCENES, Scene, hosts_scene, show_scene
from journeyman.facade.journeyman import Journeyman
from journeyman.models.embedded import EmbeddedModel
from journeyman.records.errors import MissingPart
from journeyman.settings import sqlite_path
from journeyman.templates.briefing import mistake_line
from journeyman.testing import write_corpus, write_lists
from journeyman.text.display import readable

_MAX_LOG_BYTES = 100_000_000
"""The tour reads the newest logs up to this total size, to stay short."""

_FEW, _SEVERAL = 3, 5
_SHORT_TITLE = 20
_SAMPLE_TASK = "Write a test that an amount of money, split among several people, adds up again."
_ERRAND = "Sort the lines of lists/guests.txt and check the result."
_GUESTS = ("mona", "ada", "zoe", "ben")
_SEARCHES = ('"no such file"', "error", "the")
_KEY = "sk-ant-" + "aB3dE6gH9k" * 4
_RISKY_COMMANDS = (
    f"curl -H 'x-api-key: {_KEY}' -d @notes.json https://api.example/v1/messages",
    "git commit -qm 'Fix the totals' --no-verify && git push --force origin main",
)
_NOWHERE = "http://127.0.0.1:9"
"""The tour asks no confirmation service that may be running: its requests are not real."""

_LEARNING_S = 15.0
"""The tour learns for about this long, from the newest sessions first."""

_END = "\nTo use Journeyman yourself:"
_FIRST_STEPS = """\
  [bold]journeyman import[/]          import the sessions of your agents
  [bold]journeyman learn[/]           learn what works"""
_NEXT_STEPS = """\
  [bold]journeyman profile[/]         see how reliable their calls are
  [bold]journeyman open "TASK"[/]     start the next session warm
  [bold]journeyman hosts install[/]   let your agents start warm by themselves
  [bold]journeyman run "TASK"[/]      run an agent
  [bold]journeyman confirm serve[/]   approve what agents must not do alone
  [bold]journeyman sessions list[/]   list the sessions
  [bold]journeyman doctor[/]          check this machine"""


def _risky_session() -> Iterator[dict[str, Any]]:
    """Yield a session that succeeded but must not be learned from. The key in it is made up."""
    yield {"role": "user", "content": "Publish the fix, quickly."}
    for number, command in enumerate(_RISKY_COMMANDS):
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
    yield {"role": "assistant", "content": "It is published."}


@click.command(
    epilog="""\b
Examples:
  journeyman tour
  journeyman tour --keep       keep what it imported and learned, without asking
  journeyman tour --sample     with sample sessions, even if this machine has logs"""
)
@flag("--sample", "Use sample sessions even if this machine has logs.")
@flag("--keep", "Keep what was imported from your logs and learned from them.")
@flag("--no-agent", "Skip the agent, which takes half a minute.")
@flag("--json", context.JSON_HELP, dest="as_json")
def tour(*, sample: bool, keep: bool, no_agent: bool, as_json: bool) -> None:
    """See what Journeyman does, with this machine's own sessions or with samples.

    Everything happens in a temporary folder, and no log is changed. At the end you are asked
    whether to keep what was imported from your own logs; in a pipe, only --keep keeps it.
    """
    console = Console(quiet=True) if as_json else formatting.console()
    # Without this machine's settings, which may name a production database.
    environ = {key: os.environ[key] for key in os.environ if not key.startswith("JOURNEYMAN_")}
    environ["JOURNEYMAN_CONFIRM_URL"] = _NOWHERE
    with tempfile.TemporaryDirectory(prefix="journeyman-tour-") as folder:
        with Journeyman(home=Path(folder, "home"), environ=environ) as journeyman:
            shown = _Tour(console, journeyman, Path(folder), sample=sample)
            results = shown.show(agent=not no_agent)
        kept = ""
        if shown.own_logs and (keep or _wants_to_keep(as_json=as_json)):
            kept = _keep(journeyman, shown.own_logs)
        results["kept_in"] = kept
        ending = f"Kept in {kept}." if kept else "This tour stored nothing."
        console.print(Text(f"\n{readable(ending)}"), soft_wrap=True)
        console.print(_END, *(() if kept and shown.is_complete else (_FIRST_STEPS,)), sep="\n")
        console.print(_NEXT_STEPS)
    if as_json:
        context.print_json(results)


def _wants_to_keep(*, as_json: bool) -> bool:
    """Ask whether to keep what was imported; without a terminal the answer is no."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm("\nKeep what was imported from your logs, and learned from them?")


def _keep(toured: Journeyman, logs: list[Path]) -> str:
    """Store what the tour imported in the home of the settings; return its database."""
    journeyman = context.open_journeyman()
    database = sqlite_path(journeyman.settings.database)
    temporary = sqlite_path(toured.settings.database)
    if database is not None and temporary is not None and not database.exists():
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(temporary, database)
        database.chmod(0o600)
    else:  # there are sessions already: these join them
        journeyman.import_logs(logs)
        journeyman.learn(seconds=_LEARNING_S)
    return journeyman.settings.database if database is None else str(database)


class _Tour:
    """The parts of the tour; each prints its results and returns them for JSON output."""

    def __init__(
        self, console: Console, journeyman: Journeyman, folder: Path, *, sample: bool
    ) -> None:
        self._console, self._journeyman, self._folder = console, journeyman, folder
        self._wants_sample = sample
        self._logs = [] if sample else _newest_logs(journeyman)
        self._is_sample = not self._logs
        self.is_complete = False
        """Whether everything on this machine was imported and learned from."""

    @property
    def own_logs(self) -> list[Path]:
        """The logs of this machine that were imported; none if the tour showed samples."""
        return [] if self._is_sample else self._logs

    def show(self, *, agent: bool) -> dict[str, Any]:
        parts: list[tuple[str, Callable[[], dict[str, Any]]]] = [
            ("Sessions that agents recorded", self._sessions),
            ("Each call with its result and verdict", self._calls),
            ("What works and what fails", self._reliability),
            ("What was learned from it", self._learn),
            ("The next session starts warm", self._opening),
            ("Claude Code, Codex, Hermes and opencode start warm by themselves", self._hosts),
            ("Every message can be searched", self._search),
            ("Nothing is imported twice", self._import_again),
            *((title, partial(self._scene, key, scene)) for key, title, scene in SCENES),
        ]
        if agent:
            parts.append(("An agent at work, cold and warm", self._agent))
        results: dict[str, Any] = {}
        for number, (title, part) in enumerate(parts, start=1):
            self._console.print(f"\n[bold cyan]{number}. {title}[/]")
            results |= part()
        return results

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(readable(text), style=style))

    def _sessions(self) -> dict[str, Any]:
        if self._logs:
            logs = formatting.pluralize(len(self._logs), "log")
            found = sum(len(place.logs) for place in self._journeyman.places())
            part = f", the newest of {found:,}" if found > len(self._logs) else ""
            self._print(f"Found {logs} of your agents{part}. They are only read, never changed.")
        else:
            if not self._wants_sample:
                self._print("This machine has no agent logs, so these are samples.")
            self._print("Scripted agents really ran these calls.")
            self._logs = [write_corpus(self._folder / "samples").folder]
        with formatting.progress_bar("Importing", "logs") as progress:
            report = self._journeyman.import_logs(self._logs, progress=progress)
        if self._is_sample:
            risky: dict[str, Any] = {"source": "sample", "session_id": "risky", "outcome": 1.0}
            self._journeyman.record([*_risky_session()], **risky)
        totals = self._journeyman.sessions.totals()
        names = ("sessions", "subagents", "messages", "calls", "answered")
        rows = (
            (
                row.source,
                *(getattr(row, name) for name in names),
                formatting.short_count(row.tokens.total),
            )
            for row in totals
        )
        heads = (*names, "tokens")
        self._console.print(
            "", formatting.table("source", *heads, numbers=heads, rows=rows), sep="\n"
        )
        size = formatting.size(report.read_bytes)
        logs = f"{formatting.pluralize(report.logs_read, 'log')} ({size})"
        lines = formatting.pluralize(report.skipped_lines, "line")
        skipped = f", {lines} skipped" if report.skipped_lines else ""
        read = (
            f"{formatting.pluralize(report.new, 'session')} from {logs} in {report.seconds:.2f} s"
        )
        self._print(f"\n{read}{skipped}.")
        return {"import": report, "sources": totals}

    def _calls(self) -> dict[str, Any]:
        sessions = self._journeyman.sessions
        candidates = sessions.list(min_messages=8, subagents=False, limit=200)
        for row in [row for row in candidates if row.calls][:1] or sessions.list(limit=1):
            self._print(f"{row.session.source}, {row.session.model}: {row.session.title}")
            calls = sessions.calls(row.session.id)
            for call in calls[:_SEVERAL]:
                print_call(self._console, call, self._journeyman.judge(call), full=False)
            formatting.print_remainder(self._console, len(calls), _SEVERAL, "")
        return {}

    def _reliability(self) -> dict[str, Any]:
        profile = self._journeyman.profile()
        show_summary(self._console, profile)
        self._console.print()
        show_tools(self._console, profile, limit=_SEVERAL)
        if profile.failures:
            whose = "The" if self._is_sample else "Your"
            self._print(f"\n{whose} most frequent failures:", "bold")
        for failure in profile.failures[:_FEW]:
            show_failure(self._console, failure)
        if self._is_sample:
            self._print(
                "The failures in the samples are scripted: these rates mean nothing.", "dim"
            )
        return {"profile": profile}

    def _task(self) -> str:
        """Return a task for the next session: with the logs of this machine, an earlier request in
        the busiest project.
        """
        if self._is_sample:
            return _SAMPLE_TASK
        sessions = self._journeyman.sessions.list(
            project=self._busiest_project() or None, subagents=False, limit=200
        )
        titles = [row.session.title for row in sessions if row.calls and row.session.title]
        return next((title for title in titles if len(title) > _SHORT_TITLE), "") or next(
            iter(titles), "anything"
        )

    def _learn(self) -> dict[str, Any]:
        console, journeyman = self._console, self._journeyman
        with formatting.progress_bar("Learning", "sessions") as progress:
            learned = journeyman.learn(seconds=_LEARNING_S, progress=progress)
        total = sum(row.sessions + row.subagents for row in journeyman.sessions.totals())
        found = sum(len(place.logs) for place in journeyman.places())
        self.is_complete = learned.sessions >= total and len(self._logs) >= found
        if learned.sessions < total:
            part = f"the newest {learned.sessions:,} of {total:,} sessions"
            rest = "`journeyman learn` learns from the rest."
            self._print(f"To stay short, the tour learned only from {part}; {rest}", "yellow")
        sessions = f"{learned.teaching:,} of {formatting.pluralize(learned.sessions, 'session')}"
        patterns = formatting.pluralize(learned.patterns, "pattern")
        self._print(f"Learned from {sessions}: {patterns} that worked, with secrets redacted.")
        if quarantined := journeyman.kept_out.list():
            self._print(
                "Excluded, because it needs a person's approval or reads like an instruction:"
            )
            for item in quarantined[:_FEW]:
                self._print(f"- {formatting.one_line(item.text, max(console.width - 4, 40))}")
                self._print(f"  {item.rule}: {item.reason}", "dim")
        project = self._busiest_project()
        playbook = journeyman.playbook(project) if project else None
        if playbook is not None and not playbook.is_empty:
            self._print(f"\nThe playbook of {project}, the project with most sessions:", "bold")
            short = msgspec.structs.replace(
                playbook,
                commands=playbook.commands[:_SEVERAL],
                mistakes=playbook.mistakes[:_FEW],
                files=playbook.files[:_FEW],
            )
            show_playbook(console, short, show_all=False)
        return {"learned": learned, "playbook": playbook}

    def _busiest_project(self) -> str:
        projects = [row for row in self._journeyman.sessions.projects() if row.project]
        busiest = max(projects, key=lambda row: (row.sessions, row.project), default=None)
        return busiest.project if busiest else ""

    def _opening(self) -> dict[str, Any]:
        console, journeyman = self._console, self._journeyman
        task = self._task()
        opening = journeyman.opening(task, project=self._busiest_project())
        self._print(f'A session on "{formatting.one_line(task, 60)}" would start with:')
        briefing = opening.briefing
        where = f" in {briefing.project}" if briefing.project else ""
        commands = [
            f"{row.form}  worked {row.worked} of {row.worked + row.failed} times"
            for row in briefing.commands
        ]
        for title, lines in (
            (f"Commands that work{where}, most likely for this task first:", commands),
            (f"Recurring mistakes{where}:", [*map(mistake_line, briefing.mistakes)]),
        ):
            if lines:
                self._print(title)
                self._print("\n".join(f"- {line}" for line in lines[:_SEVERAL]))
        for number, choice in enumerate(opening.choices, start=1):
            show_choice(console, choice, number)
        count = len(opening.inject([{"role": "user", "content": task}])) - 1
        messages = formatting.pluralize(count, "message")
        summary = f"{messages}, about {opening.tokens:,} tokens, placed before your own."
        self._print(opening.note if opening.is_empty else summary)
        self._print("`journeyman playbook` shows everything learned in a project.", "dim")
        return {"opening": opening}

    def _hosts(self) -> dict[str, Any]:
        lines = hosts_scene(self._journeyman, self._busiest_project(), self._task())
        results = {"hosts": show_scene(self._console, lines)}
        self._print("`journeyman hosts install claude-code` sets this up.", "dim")
        return results

    def _search(self) -> dict[str, Any]:
        search = self._journeyman.sessions.search
        results = ((query, search(query, limit=_FEW, redacted=True)) for query in _SEARCHES)
        query, hits = next(((query, hits) for query, hits in results if hits), ("", []))
        self._print(f"journeyman sessions search '{query}'", "dim")
        short_ids = self._journeyman.sessions.short_ids(hit.session for hit in hits)
        for hit in hits:
            name = f"{short_ids[hit.session]}  {hit.tool or hit.role}  "
            room = max(self._console.width - len(name), 20)
            self._print(name + formatting.one_line(hit.snippet, room))
        return {}

    def _import_again(self) -> dict[str, Any]:
        again = self._journeyman.import_logs(self._logs)
        counts = f"{formatting.pluralize(again.unchanged, 'session')} unchanged, {again.new} new"
        self._print(f"Importing again: {counts}, in {again.seconds:.2f} s.")
        return {"import_again": again}

    def _scene(self, key: str, scene: Callable[[Path], Scene]) -> dict[str, Any]:
        return {key: show_scene(self._console, scene(self._folder))}

    def _agent(self) -> dict[str, Any]:
        """Run the errand with a real model that is small enough to be part of the program."""
        self._print(f'SmolLM2, a model of 135M parameters, running on this machine: "{_ERRAND}"')
        results: dict[str, Any] = {}
        try:
            with formatting.spinner("thinking", self._console):
                for name, turn, is_done in _run_errands(self._folder, self._console):
                    answer = turn.final_response or turn.note
                    self._print(
                        f"     answer: {formatting.one_line(answer, self._console.width - 15)}"
                    )
                    verdict = "The file is sorted." if is_done else "The file is not sorted."
                    self._print(f"     {verdict}", "green" if is_done else "red")
                    counts = {"stop": turn.stop, "calls": turn.calls, "tokens": turn.tokens}
                    results[name] = {"done": is_done, **counts}
        except MissingPart as missing:
            self._print(str(missing))
            results["missing"] = str(missing)
        return {"agent": results}


def _newest_logs(journeyman: Journeyman) -> list[Path]:
    """Return the newest logs within the size limit, and at least one if there are any."""
    logs: list[tuple[float, int, Path]] = []
    for log in (Path(log) for place in journeyman.places() for log in place.logs):
        with suppress(OSError):  # a link to a file that is gone
            status = log.stat()
            logs.append((status.st_mtime, status.st_size, log))
    logs.sort(reverse=True)
    sizes = accumulate(size for _, size, _ in logs)
    kept = max(1, sum(size <= _MAX_LOG_BYTES for size in sizes))
    return [log for _, _, log in logs[:kept]]


def _run_errands(folder: Path, console: Console) -> Iterator[tuple[str, Turn, bool]]:
    """Run the errand cold and then warm; yield each turn and whether the errand was done."""
    # Short replies are enough to see what a cold model does.
    model = EmbeddedModel(max_tokens=60)
    work = folder / "work"
    guests = work / "lists" / "guests.txt"
    guests.parent.mkdir(parents=True)
    with Journeyman(home=folder / "agent", environ={"HOME": str(folder)}) as journeyman:
        journeyman.import_logs(write_lists(folder / "lists"))
        journeyman.learn()
        for name, warm in (("cold", "off"), ("warm", "auto")):
            guests.write_text("".join(f"{name}\n" for name in _GUESTS))
            with journeyman.agent(model=model, workspace=work, warm=warm, platform="tour") as agent:
                display = RunDisplay(console, journeyman.judge)
                turn = agent.run_conversation(_ERRAND, on_step=display.add_step)
            yield name, turn, guests.read_text().split() == sorted(_GUESTS)
