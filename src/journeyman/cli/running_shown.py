"""How a running agent looks: what it starts with, each call with its verdict, its answer."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console
from rich.status import Status
from rich.text import Text

from journeyman.agent.dispatch import Question
from journeyman.agent.limits import Stop
from journeyman.agent.steps import Begun, Called, Compressed, Replied, Step
from journeyman.agent.turn import Turn
from journeyman.cli import shown
from journeyman.cli.sessions import show_call
from journeyman.models.model import Model
from journeyman.records import Call, Verdict
from journeyman.templates.shown.opening import Opening

_TAIL = 60
_WAITED_S = 0.1
_TOLD: dict[Stop, str] = {
    "turns": "Stopped at a limit.",
    "tokens": "Stopped at a limit.",
    "cost": "Stopped at a limit.",
    "time": "Stopped at a limit.",
    "interrupted": "Interrupted.",
    "repeating": "Stopped: it goes round in circles.",
    "context_full": "Stopped: the conversation does not fit the model's window.",
    "model_failed": "Stopped: the model gave no answer.",
    "cut": "The answer is not whole.",
    "empty": "Stopped: the model had nothing to say.",
}


class Watching:
    """Shows the steps of a turn as they come. On a terminal a line moves while the model thinks;
    when `quiet`, only questions and stops are told, on standard error.
    """

    def __init__(
        self, console: Console, judge: Callable[[Call], Verdict], *, quiet: bool = False
    ) -> None:
        self._console, self._judge, self._quiet = console, judge, quiet
        self._status: Status | None = None
        self._heard = ""
        self._calls = 0
        self._refused = 0
        self._began = time.monotonic()

    def start(self, model: Model) -> None:
        """Say which model works, and begin to wait."""
        if self._quiet:
            return
        self._console.print(Text(f"{model.name} ({model.provider})", style="dim"))
        if sys.stderr.isatty():
            self._status = Console(stderr=True).status("thinking")
            self._status.start()

    def hear(self, text: str) -> None:
        """Text of the model as it comes."""
        if self._status is not None:
            self._heard = (self._heard + text)[-400:]
            self._status.update(Text(shown.one_line(self._heard[-_TAIL:], _TAIL), style="dim"))

    def see(self, step: Step) -> None:
        """One step."""
        self._heard = ""
        if not self._quiet:
            with self.paused():
                self._show(step)

    def _show(self, step: Step) -> None:
        if isinstance(step, Begun):
            self._console.print(Text(f"session {step.session}", style="dim"))
            self._show_opening(step.opening)
        elif isinstance(step, Replied) and step.reply.tool_calls and step.reply.text.strip():
            self._console.print(Text(shown.plain(step.reply.text.strip()), style="dim"))
        elif isinstance(step, Called):
            self._show_call(step)
        elif isinstance(step, Compressed):
            goes_on = f"The window is full: {step.messages} messages were summarised"
            self._console.print(Text(f"{goes_on}; it goes on as {step.child}.", style="yellow"))

    def end(self, turn: Turn) -> None:
        """The answer, and what the turn used."""
        self._stop()
        if turn.final_response:
            self._console.print()
            self._console.print(Text(shown.plain(turn.final_response)))
        if not turn.completed:
            note = f"{_TOLD.get(turn.stop, '')} {turn.note}".strip()
            self._console.print(Text(f"\n{shown.plain(note)}", style="yellow"))
            self._console.print(Text(f"Go on: journeyman run --resume {turn.session}"))
        refused = f" ({self._refused} refused)" if self._refused else ""
        used = [
            shown.many(turn.api_calls, "request"),
            shown.many(turn.calls, "call") + refused,
            "tokens unknown" if turn.tokens is None else f"{turn.tokens:,} tokens",
            *([f"about ${turn.cost_usd:.4f}"] if turn.cost_usd else []),
            f"{time.monotonic() - self._began:.1f} s",
        ]
        self._console.print(Text(f"\nsession {turn.session}: {', '.join(used)}", style="dim"))

    def reviewing(self, wait: Callable[[float | None], bool], skipped: Callable[[], bool]) -> None:
        """Wait for the review of the turn, for as long as the user does."""
        self._stop()
        if wait(0.0):
            return
        with shown.waiting("reviewing the turn; Ctrl-C skips it"):
            while not skipped() and not wait(_WAITED_S):
                pass

    def tell(self, line: str) -> None:
        """A line for the person, beside the answer."""
        with self.paused():
            click.echo(shown.plain(line), err=True)

    def show_question(self, question: Question) -> None:
        """What is to be decided: all of what would run, every line of it marked so that none can
        pass for ours, and then why it is asked.
        """
        click.echo(f"\nThe agent wants to use {shown.plain(question.tool)}:", err=True)
        for name, value in question.arguments.items():
            click.echo(f"  {shown.plain(name)}:", err=True)
            for line in str(value).split("\n"):
                click.echo(shown.plain(f"  │ {line}"), err=True)
        click.echo(shown.plain(f"Why you are asked: {question.reason} ({question.rule})"), err=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the moving line, for as long as something else is said."""
        if self._status is not None:
            self._status.stop()
        yield
        if self._status is not None:
            self._status.update("thinking")
            self._status.start()

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _show_opening(self, opening: Opening | None) -> None:
        if opening is None:
            return
        if opening.is_empty:
            why = opening.note or "as asked"
            self._console.print(Text(f"Starting cold: {shown.plain(why)}"))
            return
        examples = shown.many(len(opening.patterns) + len(opening.briefing.episodes), "example")
        if opening.briefing.commands:
            examples = f"{shown.many(len(opening.briefing.commands), 'command')}, {examples}"
        origin = f" of {opening.template}" if opening.template else ""
        about = f"Starting warm: {examples}{origin}, about {opening.tokens:,} tokens"
        self._console.print(Text(about, style="green"))
        for pattern, reason in zip(opening.patterns, opening.reasons, strict=True):
            intent = shown.one_line(pattern.intent, max(self._console.width - 4, 30))
            self._console.print(Text(f"  {intent}"))
            self._console.print(Text(f"    why: {shown.plain(reason)}", style="dim"))

    def _show_call(self, step: Called) -> None:
        call = msgspec.structs.replace(step.joined, index=self._calls)
        self._calls += 1
        verdict = self._judge(call)
        self._refused += verdict.status == "refused"
        show_call(self._console, call, verdict, full=False)
