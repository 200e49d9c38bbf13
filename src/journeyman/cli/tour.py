"""`journeyman tour`: the whole story on this machine, in a folder that is gone afterwards."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.agent.turn import Turn
from journeyman.cli import asked, shown
from journeyman.cli.asked import flag
from journeyman.cli.opening import show_choice
from journeyman.cli.profile import show_failure, show_summary, show_tools
from journeyman.cli.run import Watching
from journeyman.cli.sessions import show_call
from journeyman.cli.tour_scenes import SCENES, Scene, show_scene
from journeyman.journeyman import Journeyman
from journeyman.models.embedded import EmbeddedModel
from journeyman.records.errors import MissingPart
from journeyman.templates.shown.briefing import mistake_line
from journeyman.testing import write_corpus, write_lists

_MOST_BYTES = 200_000_000
"""A tour reads the newest logs up to this size, so that it stays a tour."""

_FEW, _SEVERAL = 3, 5
_SAMPLE_TASK = "Write a test that an amount of money, split among several people, adds up again."
_ERRAND = "Sort the lines of lists/guests.txt and check the result."
_GUESTS = ("mona", "ada", "zoe", "ben")
_SEARCHES = ('"no such file"', "error", "the")
_KEY = "sk-ant-" + "aB3dE6gH9k" * 4
_RISKY_COMMANDS = (
    f"curl -H 'x-api-key: {_KEY}' -d @notes.json https://api.example/v1/messages",
    "git commit -qm 'Fix the totals' --no-verify && git push --force origin main",
)
_END = """
This tour kept nothing. To begin for real:
  [bold]journeyman import[/]          bring in the sessions of your agents
  [bold]journeyman profile[/]         how reliable their calls are
  [bold]journeyman learn[/]           learn what works
  [bold]journeyman open "TASK"[/]     start the next session warm
  [bold]journeyman run "TASK"[/]      have an agent do it
  [bold]journeyman confirm serve[/]   decide on what agents must not do alone
  [bold]journeyman sessions list[/]   look at them
  [bold]journeyman doctor[/]          see what is found and what works"""


def _risky_session() -> Iterator[dict[str, Any]]:
    """A session whose calls worked, and that must not teach: the key in it is made up."""
    yield {"role": "user", "content": "Publish the fix, quickly."}
    for number, command in enumerate(_RISKY_COMMANDS):
        called = {"name": "Bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"call-{number}", "type": "function", "function": called}
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
    yield {"role": "assistant", "content": "It is published."}


@click.command(
    epilog="""\b
Examples:
  journeyman tour
  journeyman tour --sample     with the sample sessions, whatever is on this machine"""
)
@flag("--sample", "Use the sample sessions even where there are logs.")
@flag("--no-agent", "Without the agent, which takes half a minute.")
@flag("--json", "Print JSON for programs.", to="as_json")
def tour(*, sample: bool, no_agent: bool, as_json: bool) -> None:
    """See what Journeyman does, on this machine's own sessions or on samples.

    Everything happens in a temporary folder: nothing is kept, and no log is changed.
    """
    console = Console(quiet=True) if as_json else shown.console()
    # Without the settings of this machine, which may name a database that is used in earnest.
    environ = {key: os.environ[key] for key in os.environ if not key.startswith("JOURNEYMAN_")}
    with (
        tempfile.TemporaryDirectory(prefix="journeyman-tour-") as folder,
        Journeyman(home=Path(folder, "home"), environ=environ) as journeyman,
    ):
        told = _Tour(console, journeyman, Path(folder), sample=sample).show(agent=not no_agent)
    if as_json:
        asked.print_json(told)


class _Tour:
    """Every part of the tour; each returns what it found, for programs."""

    def __init__(
        self, console: Console, journeyman: Journeyman, folder: Path, *, sample: bool
    ) -> None:
        self._console, self._journeyman, self._folder = console, journeyman, folder
        self._wants_sample = sample
        self._logs = [] if sample else _newest_logs(journeyman)
        self._is_sample = not self._logs

    def show(self, *, agent: bool) -> dict[str, Any]:
        parts: list[tuple[str, Callable[[], dict[str, Any]]]] = [
            ("Sessions that agents have recorded", self._sessions),
            ("Each call joined with its result, and judged", self._calls),
            ("What works and what fails", self._reliability),
            ("The next session starts warm", self._opening),
            ("Everything that was said can be found", self._search),
            ("Nothing is read twice", self._again),
            *((title, partial(self._scene, key, scene)) for key, title, scene in SCENES),
        ]
        if agent:
            parts.append(("An agent at work, cold and warm", self._agent))
        told: dict[str, Any] = {}
        for number, (title, part) in enumerate(parts, start=1):
            self._console.print(f"\n[bold cyan]{number}. {title}[/]")
            told |= part()
        self._console.print(_END)
        return told

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(shown.plain(text), style=style))

    def _sessions(self) -> dict[str, Any]:
        if self._logs:
            found = shown.many(len(self._logs), "log")
            self._say(f"Found {found} of your agents; reading them, changing none.")
        else:
            if not self._wants_sample:
                self._say("No agent's logs are on this machine, so these are samples.")
            self._say("Scripted agents really ran these calls a moment ago.")
            self._logs = [write_corpus(self._folder / "samples").folder]
        with shown.progress_bar("Importing", "logs") as progress:
            report = self._journeyman.import_logs(self._logs, progress=progress)
        if self._is_sample:
            risky: dict[str, Any] = {"source": "sample", "session_id": "risky", "outcome": 1.0}
            self._journeyman.record([*_risky_session()], **risky)
        totals = self._journeyman.sessions.totals()
        names = ("sessions", "subagents", "messages", "calls", "answered")
        rows = (
            (
                one.source,
                *(getattr(one, name) for name in names),
                shown.short_count(one.tokens.total),
            )
            for one in totals
        )
        heads = (*names, "tokens")
        self._console.print("", shown.table("source", *heads, numbers=heads, rows=rows), sep="\n")
        logs = f"{shown.many(report.logs_read, 'log')} ({shown.size(report.read_bytes)})"
        skipped = f", {report.skipped_lines:,} lines skipped" if report.skipped_lines else ""
        read = f"{shown.many(report.new, 'session')} from {logs} in {report.seconds:.2f} s"
        self._say(f"\n{read}{skipped}.")
        return {"import": report, "sources": totals}

    def _calls(self) -> dict[str, Any]:
        sessions = self._journeyman.sessions
        found = sessions.list(min_messages=8, subagents=False, limit=200)
        for one in [one for one in found if one.calls][:1] or sessions.list(limit=1):
            self._say(f"{one.session.source}, {one.session.model}: {one.session.title}")
            calls = sessions.calls(one.session.id)
            for call in calls[:_SEVERAL]:
                show_call(self._console, call, self._journeyman.judge(call), full=False)
            shown.more(self._console, len(calls), _SEVERAL, "")
        return {}

    def _reliability(self) -> dict[str, Any]:
        found = self._journeyman.profile()
        show_summary(self._console, found)
        self._console.print()
        show_tools(self._console, found, most=_SEVERAL)
        for failure in found.failures[:_FEW]:
            show_failure(self._console, failure)
        if self._is_sample:
            self._say("The samples fail by script: these rates are no finding.", "dim")
        return {"profile": found}

    def _task(self) -> str:
        """Something that the next session could be about: what somebody asked for before and with
        success.
        """
        patterns = list(self._journeyman.patterns.list(limit=200))
        long = (one for one in patterns if one.kind == "sequence" and len(one.intent) > 20)
        found = next(long, patterns[0] if patterns else None)
        return _SAMPLE_TASK if self._is_sample else found.intent if found else "anything"

    def _opening(self) -> dict[str, Any]:
        console, journeyman = self._console, self._journeyman
        with shown.progress_bar("Learning", "sessions") as progress:
            learned = journeyman.learn(progress=progress)
        teaching = f"{shown.many(learned.teaching, 'session')} of {learned.sessions:,} may teach"
        patterns = shown.many(learned.patterns, "pattern")
        self._say(f"{teaching}: {patterns} that worked, secrets taken out.")
        if kept_out := journeyman.kept_out.list():
            self._say("Kept out, because a person would have to confirm it or a text gives orders:")
            for one in kept_out[:_FEW]:
                self._say(f"- {shown.one_line(one.text, max(console.width - 4, 40))}")
                self._say(f"  {one.rule}: {one.reason}", "dim")
        task = self._task()
        projects = [one for one in journeyman.sessions.projects() if one.project]
        busiest = max(projects, key=lambda one: (one.sessions, one.project), default=None)
        opening = journeyman.opening(task, project=busiest.project if busiest else "")
        self._say(f'A session on "{shown.one_line(task, 60)}" would start with:')
        briefing = opening.briefing
        where = f" in {briefing.project}" if briefing.project else ""
        commands = [
            f"{one.form}  worked {one.worked} of {one.worked + one.failed} times"
            for one in briefing.commands
        ]
        for title, lines in (
            (f"Commands that work{where}, likeliest for this task first:", commands),
            (f"Mistakes that recur{where}:", [*map(mistake_line, briefing.mistakes)]),
        ):
            if lines:
                self._say(title)
                self._say("\n".join(f"- {line}" for line in lines[:_SEVERAL]))
        for number, choice in enumerate(opening.choices, start=1):
            show_choice(console, choice, number)
        count = len(opening.inject([{"role": "user", "content": task}])) - 1
        told = f"{count} messages, about {opening.tokens:,} tokens, put before your own."
        self._say(opening.note if opening.is_empty else told)
        self._say("`journeyman playbook` shows all that holds in a project.", "dim")
        return {"learned": learned, "opening": opening}

    def _search(self) -> dict[str, Any]:
        found = ((one, self._journeyman.sessions.search(one, limit=_FEW)) for one in _SEARCHES)
        query, hits = next(((query, hits) for query, hits in found if hits), ("", []))
        self._say(f"journeyman sessions search '{query}'", "dim")
        for hit in hits:
            name = f"{shown.short_id(hit.session)}  {hit.role}  "
            room = max(self._console.width - len(name), 20)
            self._say(name + shown.one_line(hit.snippet, room))
        return {}

    def _again(self) -> dict[str, Any]:
        again = self._journeyman.import_logs(self._logs)
        counts = f"{again.unchanged:,} sessions unchanged, {again.new} new"
        self._say(f"Importing again: {counts}, in {again.seconds:.2f} s.")
        return {"import_again": again}

    def _scene(self, key: str, scene: Callable[[Path], Scene]) -> dict[str, Any]:
        return {key: show_scene(self._console, scene(self._folder))}

    def _agent(self) -> dict[str, Any]:
        """A real model, small enough to be part of the program, does a real errand."""
        self._say(f'SmolLM2, a model of 135M parameters that runs here: "{_ERRAND}"')
        told: dict[str, Any] = {}
        try:
            with shown.waiting("thinking"):
                for name, turn, is_done in _errands(self._folder, self._console):
                    answer = turn.final_response or turn.note
                    self._say(f"     it says: {shown.one_line(answer, self._console.width - 15)}")
                    verdict = "The file is sorted." if is_done else "The file is not sorted."
                    self._say(f"     {verdict}", "green" if is_done else "red")
                    counts = {"stop": turn.stop, "calls": turn.calls, "tokens": turn.tokens}
                    told[name] = {"done": is_done, **counts}
        except MissingPart as missing:
            self._say(str(missing))
            told["missing"] = str(missing)
        return {"agent": told}


def _newest_logs(journeyman: Journeyman) -> list[Path]:
    found = [Path(log) for place in journeyman.places() for log in place.logs]
    found.sort(key=os.path.getmtime, reverse=True)
    sizes = accumulate(log.stat().st_size for log in found)
    # At least one, however large it is.
    return found[: max(1, sum(size <= _MOST_BYTES for size in sizes))]


def _errands(folder: Path, console: Console) -> Iterator[tuple[str, Turn, bool]]:
    """The errand, done cold and then warm: how the turn ended, and whether it was done."""
    # Short replies: what a cold model has to say is soon clear.
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
                see = Watching(console, journeyman.judge).see
                turn = agent.run_conversation(_ERRAND, on_step=see)
            yield name, turn, guests.read_text().split() == sorted(_GUESTS)
