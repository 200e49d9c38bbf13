"""`journeyman tour`: shows in five scenes what Journeyman does, in a temporary folder."""

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.context import flag
from journeyman.cli.profile import show_tools
from journeyman.cli.session_view import print_call
from journeyman.confirm.client import ConfirmClient
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.pages import PAGES
from journeyman.models.embedded import EmbeddedModel
from journeyman.plugin.engines import installed_hosts
from journeyman.records.errors import ConfirmationRefused, MissingPart
from journeyman.testing import write_corpus, write_lists
from journeyman.text.display import readable

_MAX_LOG_BYTES = 100_000_000
"""The tour reads the newest logs up to this total size, to stay short."""

_LEARNING_S = 15.0
"""The tour learns for about this long, from the newest sessions first."""

_NOWHERE = "http://127.0.0.1:9"
"""The tour asks no confirmation service that may be running: its requests are not real."""

_ERRAND = "Sort the lines of lists/guests.txt and check the result."
_GUESTS = ("mona", "ada", "zoe", "ben")
_SAMPLE_TASK = "Write a test that an amount of money, split among several people, adds up again."
_SHORT_TITLE = 20
_FEW, _SEVERAL = 3, 4

_CALLS = (
    ("deploy", "shop 2.1", '{"success": true, "error": "no space left on device"}'),
    ("Bash", "npm test || true", "Tests: 2 failed, 10 passed, 12 total"),
    ("Bash", "grep -r TODO src", "Exit code 1"),
    ("Edit", "prices.py", "The user doesn't want to proceed with this tool use."),
)
"""Calls whose results are easily misjudged: tool, arguments, result."""

_ACTION = "transfer_funds"
_DETAILS = {"to": "ACME", "amount": 4200}
_CHANGED = {**_DETAILS, "amount": 9000}

_NEXT_STEPS = """
To use it yourself:
  [bold]journeyman import[/]          import the sessions of your agents
  [bold]journeyman learn[/]           learn what works in your projects
  [bold]journeyman hosts list[/]      let your agents start warm by themselves
  [bold]journeyman run "TASK"[/]      have an agent do a task, started warm
  [bold]journeyman doctor[/]          check this machine"""


@click.command(
    epilog="""\b
Examples:
  journeyman tour
  journeyman tour --sample     with sample sessions, even if this machine has logs"""
)
@flag("--sample", "Use sample sessions even if this machine has logs.")
@flag("--no-agent", "Skip the first scene, in which a model works.")
def tour(*, sample: bool, no_agent: bool) -> None:
    """See what Journeyman does, with this machine's own sessions or with samples.

    Everything happens in a temporary folder: nothing is stored, and no log is changed.
    """
    # Without this machine's settings, which may name a production database.
    environ = {key: os.environ[key] for key in os.environ if not key.startswith("JOURNEYMAN_")}
    environ["JOURNEYMAN_CONFIRM_URL"] = _NOWHERE
    with (
        tempfile.TemporaryDirectory(prefix="journeyman-tour-") as folder,
        Journeyman(home=Path(folder, "home"), environ=environ) as journeyman,
    ):
        _Tour(formatting.console(), journeyman, Path(folder), sample=sample).show(
            agent=not no_agent
        )


class _Tour:
    """The scenes. Each begins with the question that the one before it raises."""

    def __init__(
        self, console: Console, journeyman: Journeyman, folder: Path, *, sample: bool
    ) -> None:
        self._console, self._journeyman, self._folder = console, journeyman, folder
        self._logs = [] if sample else _newest_logs(journeyman)
        self._is_sample = not self._logs

    def show(self, *, agent: bool) -> None:
        scenes: tuple[tuple[str, Callable[[], None]], ...] = (
            *((("A small model fails cold and succeeds warm", self._agent),) if agent else ()),
            ("Success is judged, not believed", self._judge),
            ("What worked becomes the start of the next session", self._learn),
            ("What an agent must not do alone waits for a person", self._confirm),
            ("What it costs, and what to do next", self._usage),
        )
        for number, (title, scene) in enumerate(scenes, start=1):
            self._console.print(f"\n[bold cyan]{number}. {title}[/]")
            try:
                scene()
            except MissingPart as missing:
                self._print(str(missing), "yellow")
        self._console.print(_NEXT_STEPS)

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(readable(text), style=style))

    def _line(self, text: str) -> None:
        """Print recorded text on one line, truncated to fit."""
        self._print(f"  {formatting.one_line(text, max(self._console.width, 40) - 2)}")

    def _agent(self) -> None:
        """Run an errand with a real model that is small enough to be part of the program."""
        model = EmbeddedModel(max_tokens=60)  # enough to see what a cold model does
        self._print(f'SmolLM2, 135M parameters, runs on this machine. Its task: "{_ERRAND}"')
        guests = self._folder / "work" / "lists" / "guests.txt"
        guests.parent.mkdir(parents=True)
        environ = {"HOME": str(self._folder)}
        with Journeyman(home=self._folder / "agent", environ=environ) as journeyman:
            journeyman.import_logs(write_lists(self._folder / "lists"))
            journeyman.learn()
            for warm in ("off", "auto"):
                guests.write_text("".join(f"{name}\n" for name in _GUESTS))
                with (
                    formatting.spinner("The model is thinking"),
                    journeyman.agent(
                        model=model, workspace=guests.parents[1], warm=warm, platform="tour"
                    ) as agent,
                ):
                    turn = agent.run_conversation(_ERRAND)
                if turn.status == "interrupted":
                    raise KeyboardInterrupt
                is_warm = warm == "auto"
                title = "Warm, with three examples from earlier sessions" if is_warm else "Cold"
                self._print(f"\n{title}:", "bold")
                calls = journeyman.sessions.calls(turn.session)
                for number, call in enumerate(calls[len(calls) - turn.calls :]):  # not the examples
                    own = msgspec.structs.replace(call, index=number)
                    print_call(self._console, own, journeyman.judge(call), full=False)
                self._line(f'"{" ".join((turn.text or turn.reason).split())}"')
                is_done = guests.read_text().split() == sorted(_GUESTS)
                result = "✓ The file is sorted." if is_done else "✗ The file is not sorted."
                self._print(f"     {result}", "green" if is_done else "red")
        self._print("\nThe same model, the same task. The examples came from sessions that worked.")

    def _judge(self) -> None:
        self._print("To learn from what worked, one must know what did. Results can mislead:")
        for tool, command, result in _CALLS:
            call = {"tool": tool, "arguments": {"command": command}, "result_text": result}
            verdict = self._journeyman.judge(call)
            self._line(f"{tool} {command} → {result}")
            style = "red" if verdict.is_error else "green" if verdict.counts else "yellow"
            self._print(f"    {verdict.status}: {verdict.kind.replace('_', ' ')}", style)
        if self._is_sample:
            self._logs = [write_corpus(self._folder / "samples").folder]
        with formatting.progress_bar("Importing logs") as progress:
            self._journeyman.import_logs(self._logs, progress=progress)
        profile = self._journeyman.profile()
        whose = "sample" if self._is_sample else "of your newest"
        counts = f"{profile.calls:,} calls of {profile.sessions:,} {whose} sessions"
        self._print(f"\nJudged the same way, {counts} (`journeyman profile`):")
        show_tools(self._console, profile, limit=_SEVERAL)

    def _learn(self) -> None:
        with formatting.progress_bar("Learning") as progress:
            learned = self._journeyman.learn(seconds=_LEARNING_S, progress=progress)
        examples = formatting.pluralize(learned.examples, "request")
        self._print(f"Learned from {examples} that ended well, with secrets redacted.")
        project, task = self._project_and_task()
        opening = self._journeyman.opening(task, project=project)
        where = f" in {project}" if project else ""
        self._print(f"\nA session{where} on this task would be told:")
        self._line(f'"{" ".join(task.split())}"')
        for fact in islice(opening.facts, _SEVERAL):
            seen = f" ({len(fact.sessions)} sessions)" if fact.sessions else ""
            self._print(f"- {fact.text}{seen}")
        for choice in islice(opening.choices, _FEW):
            tools = ", ".join(step.tool for step in choice.pattern.steps)
            self._line(f"- {choice.pattern.intent} ({tools})")
        tokens = f"About {opening.tokens:,} tokens. `journeyman open` prints them."
        self._print(opening.note if opening.is_empty else tokens, "dim")

    def _project_and_task(self) -> tuple[str, str]:
        """Return the busiest project, and a task for it: with the logs of this machine, an earlier
        request.
        """
        projects = [row for row in self._journeyman.sessions.projects() if row.project]
        busiest = max(projects, key=lambda row: (row.sessions, row.project), default=None)
        project = busiest.project if busiest else ""
        if self._is_sample:
            return project, _SAMPLE_TASK
        rows = self._journeyman.sessions.list(project=project or None, subagents=False, limit=200)
        titles = [row.session.title for row in rows if row.calls and row.session.title]
        titles.sort(key=lambda title: len(title) <= _SHORT_TITLE)
        return project, next(iter(titles), "anything")

    def _confirm(self) -> None:
        """Hold an action in a real service, and decide on it with a real client."""
        environ = {"HOME": str(self._folder)}
        environ |= dict.fromkeys(("JOURNEYMAN_CONFIRM_PORT", "JOURNEYMAN_CONFIRM_PAGE_PORT"), "0")
        with Journeyman(home=self._folder / "confirm", environ=environ) as journeyman:
            desk = journeyman.confirmations
            _, token = desk.add_agent("bookkeeper")
            _, key = desk.add_approver("ana")
            with desk.served(terminal=io.StringIO()) as started:
                environ["JOURNEYMAN_CONFIRM_URL"] = started.agents_url
                with (
                    Journeyman(home=self._folder / "confirm", environ=environ) as served,
                    served.confirm_client(token) as agent,
                    served.confirm_client(key) as ana,
                ):
                    rows = [*_confirmation(agent, ana)]
            audit = desk.verify_audit()
        state = "the chain is intact" if audit.ok else audit.problem
        rows.append(("audit", f"{audit.entries} linked entries: {state}"))
        table = Table.grid(padding=(0, 2))
        for who, what in rows:
            table.add_row(who, Text(readable(what), style="red" if "refused" in what else ""))
        self._console.print(table)

    def _usage(self) -> None:
        report = self._journeyman.accounting.report("model")
        for line in sorted(report.rows, key=lambda row: -(row.total or 0))[:_SEVERAL]:
            tokens = f"{formatting.short_count(line.total):>6} tokens"
            cost = formatting.short_cost(line)
            self._print(f"{line.key or 'unknown model':24s} {tokens}  {cost}")
        self._print("~ estimated from list prices. `journeyman usage` shows more.", "dim")
        if agents := [PAGES[host].title for host in installed_hosts()]:
            found = formatting.join_names(agents, len(agents))
            self._print(
                f"\n`journeyman run` has {found} do a task here, with your own subscription or "
                "key: started warm, risky calls held, and what it changed can be undone."
            )
        else:
            self._print(
                "\n`journeyman run` has Claude Code, Codex, Hermes or opencode do a task with your "
                "own subscription or key. None of them is installed here."
            )
        self._print("\nThis tour stored nothing.")


def _confirmation(agent: ConfirmClient, ana: ConfirmClient) -> Iterator[tuple[str, str]]:
    """Yield who does what."""
    card: Any = agent.request(_ACTION, "Pay the invoice for March.", _DETAILS)
    yield "agent", f"asks to transfer {_DETAILS['amount']} to {_DETAILS['to']}: {card.status}"
    yield "agent", f"approves it itself: {_refusal(agent.approve, card.id, card.digest)}"
    card = ana.approve(card.id, card.digest, reason="the invoice is correct")
    yield "ana", "approves exactly that"
    yield (
        "agent",
        f"transfers {_CHANGED['amount']} instead: {_refusal(agent.redeem, card, _CHANGED)}",
    )
    agent.redeem(card, _DETAILS)
    yield "agent", f"transfers {_DETAILS['amount']}: granted, once"
    yield "agent", f"transfers it again: {_refusal(agent.redeem, card, _DETAILS)}"


def _refusal(attempt: Callable[..., object], *arguments: object) -> str:
    try:
        attempt(*arguments)
    except ConfirmationRefused as refusal:
        return f"refused. {str(refusal).split('. ')[0].rstrip('.')}."
    return "granted"


def _newest_logs(journeyman: Journeyman) -> list[Path]:
    """Return the newest logs within the size limit, and at least one if there are any."""
    logs = [Path(log) for place in journeyman.places() for log in place.logs]
    logs = sorted(filter(Path.exists, logs), key=lambda log: log.stat().st_mtime, reverse=True)
    sizes = accumulate(log.stat().st_size for log in logs)
    return logs[: max(1, sum(size <= _MAX_LOG_BYTES for size in sizes))]
