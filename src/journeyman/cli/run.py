"""`journeyman run`: runs an agent on a task in this folder and shows each step as it happens."""

import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.agent.turn import Limits, ModelReplied, Step, ToolCalled, Turn, TurnBegun
from journeyman.cli import context, files, formatting
from journeyman.cli.context import flag, number, option
from journeyman.cli.model_choice import require_model
from journeyman.cli.opening import summarize_opening
from journeyman.cli.session_view import print_call
from journeyman.experience.opening import Opening
from journeyman.facade.journeyman import Journeyman
from journeyman.gate.decision import ApprovalRequest
from journeyman.models.model import Model
from journeyman.records import Call, Verdict
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent

_REVIEW_POLL_S = 0.1
_LIMITS = ("turns", "tokens", "cost_usd", "seconds")


@context.command()
@click.argument("task", nargs=-1, metavar="[TASK]")
@option(
    "--model NAME",
    "Model to use: embedded, a .gguf file, or one at the configured endpoint.",
    default="",
)
@option(
    "--warm auto|NAME|off",
    "Start with examples that fit the task, with those of a template, or with none.",
    default="auto",
)
@option(
    "--workspace FOLDER",
    "Folder to work in (default: the current one).",
    type=click.Path(path_type=Path),
    default=".",
)
@number("--turns", "Largest number of requests to the model.")
@number("--tokens", "Largest number of tokens.")
@option("--cost USD", "Highest cost, in dollars.", dest="cost_usd", type=context.POSITIVE_FLOAT)
@option("--seconds N", "Longest run time, in seconds.", type=context.POSITIVE_FLOAT)
@option(
    "--review/--no-review",
    "Review the turn afterwards (default: as in the settings).",
    default=None,
)
@flag("--network", "Allow the agent's commands to use the network.")
@option("--tag", "Tag for the session; repeatable.", dest="tags", multiple=True)
def run(journeyman: Journeyman, *, task: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Run an agent on TASK, with tools, in this folder.

    It starts warm: with the few examples from recorded sessions that fit the task, if there are
    any. Risky calls need your approval on a terminal and are refused elsewhere. A dash reads TASK
    from standard input.

    Examples:
      journeyman run "Sort the lines of lists/guests.txt and check the result."
      journeyman run "Fix the failing test" --workspace ~/code/shop --turns 20
      journeyman run "Summarise notes/" --model gpt-5-mini --cost 0.05
      journeyman run "Tidy up" --warm off
      journeyman run "Update the dependencies" --network
      cat task.txt | journeyman run - --json
    """
    text = files.task_text(task)
    if not text.strip():
        raise click.UsageError("Pass a task for the agent.")
    requested = {name: options.pop(name) for name in _LIMITS}
    configured = journeyman.settings.agent
    chosen = {name: value or getattr(configured, name) for name, value in requested.items()}
    limits = Limits(**chosen)
    require_model(journeyman, options["model"])
    display = RunDisplay(formatting.console(), journeyman.judge, quiet=as_json)
    agent = journeyman.agent(
        # A configured confirmation service decides instead of the person at the terminal.
        ask=None if journeyman.settings.confirm.token else display.ask,
        limits=limits,
        tell=display.notify,
        platform="cli",
        **options,
    )
    if limits.cost_usd is not None and not agent.knows_cost:
        display.notify(
            f"No price is known for {agent.model.name}, so the cost limit cannot be enforced. "
            "Use --tokens instead."
        )
    message = "Stopping; finished steps are stored. Press Ctrl-C again to stop immediately."
    with context.graceful_stop(message, notify=display.notify) as stopping, agent:
        display.start(agent.model)
        turn = agent.run_conversation(text, on_step=display.add_step, cancelled=stopping.is_set)
        if as_json:
            context.print_json(_turn_json(turn, display.steps, journeyman.judge))
        else:
            display.end(turn)
        _wait_for_review(agent, stopping)
    click.get_current_context().exit(0 if turn.completed else 1)


def _wait_for_review(agent: "Agent", stopping: threading.Event) -> None:
    if agent.wait_for_review(0.0):
        return
    with formatting.spinner("reviewing the turn; Ctrl-C skips it"):
        while not stopping.is_set() and not agent.wait_for_review(_REVIEW_POLL_S):
            pass


class RunDisplay:
    """Shows the steps of a turn as they happen. If `quiet`, shows only questions and stops, on
    standard error. `steps` holds all steps so far.
    """

    def __init__(
        self, console: Console, judge: Callable[[Call], Verdict], *, quiet: bool = False
    ) -> None:
        self._console, self._judge, self._quiet = console, judge, quiet
        self.steps: list[Step] = []
        self._calls = self._refused = 0
        self._began = time.monotonic()

    def start(self, model: Model) -> None:
        if not self._quiet:
            self._print(f"{model.name} ({model.provider})")

    def _print(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(readable(text), style=style))

    def add_step(self, step: Step) -> None:
        """Store a finished step and show it."""
        self.steps.append(step)
        if not self._quiet:
            self._show(step)

    def _show(self, step: Step) -> None:
        if isinstance(step, TurnBegun):
            self._print(f"session {step.session}")
            self._show_opening(step.opening)
        elif isinstance(step, ModelReplied) and step.reply.tool_calls and step.reply.text.strip():
            self._print(step.reply.text.strip())
        elif isinstance(step, ToolCalled):
            call = msgspec.structs.replace(step.joined, index=self._calls)
            self._calls += 1
            verdict = self._judge(call)
            self._refused += verdict.status == "refused"
            print_call(self._console, call, verdict, full=False)

    def end(self, turn: Turn) -> None:
        if turn.final_response:
            self._print(f"\n{turn.final_response}", "")
        if not turn.completed:
            self._print(f"\nStopped ({turn.stop.replace('_', ' ')}). {turn.note}", "yellow")
        refused = f" ({self._refused} refused)" if self._refused else ""
        used = [
            formatting.pluralize(turn.api_calls, "request"),
            formatting.pluralize(turn.calls, "call") + refused,
            "tokens unknown" if turn.tokens is None else f"{turn.tokens:,} tokens",
            *([f"about ${turn.cost_usd:.4f}"] if turn.cost_usd else []),
            f"{time.monotonic() - self._began:.1f} s",
        ]
        self._print(f"\nsession {turn.session}: {', '.join(used)}")
        if turn.changed_files:
            self._print(f"to undo the changes: journeyman undo {turn.session}")

    def notify(self, line: str) -> None:
        """Show a notice on standard error."""
        click.echo(readable(line), err=True)

    def ask(self, question: ApprovalRequest) -> bool | None:
        """Ask the person at the terminal for approval; return None if there is no terminal. Input
        typed before the question is discarded; Ctrl-C means no, and stops the run.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        _show_question(question)
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        stop = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return click.confirm("Allow this?", default=False, err=True)
        except click.Abort:
            if callable(stop):
                stop(signal.SIGINT, None)
            return False
        finally:
            signal.signal(signal.SIGINT, stop)

    def _show_opening(self, opening: Opening | None) -> None:
        if opening is None:
            return
        if opening.is_empty:
            self._print(f"Starting cold: {opening.note or 'as requested'}", "")
            return
        origin = f" of {opening.template}" if opening.template else ""
        tokens = f"about {opening.tokens:,} tokens"
        self._print(f"Starting warm: {summarize_opening(opening)}{origin}, {tokens}", "green")
        for pattern, reason in zip(opening.patterns, opening.reasons, strict=True):
            self._print(f"  {formatting.one_line(pattern.intent, self._console.width - 2)}")
            self._print(f"    why: {reason}")


def _show_question(question: ApprovalRequest) -> None:
    """Show the request: everything that would run, each line marked so that none can pass for
    Journeyman's own output, and then why approval is needed.
    """
    lines = [f"\nThe agent wants to use {readable(question.tool)}:"]
    for name, value in question.arguments.items():
        lines.append(f"  {readable(name)}:")
        lines += [readable(f"  │ {line}") for line in str(value).split("\n")]
    lines.append(readable(f"Reason: {question.reason} ({question.rule})"))
    click.echo("\n".join(lines), err=True)


def _turn_json(turn: Turn, steps: list[Step], judge: Callable[[Call], Verdict]) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(turn)
    opening = turn.opening
    document["completed"] = turn.completed
    document["opening"] = opening and {
        "id": opening.id,
        "template": opening.template,
        "patterns": [pattern.id for pattern in opening.patterns],
        "reasons": list(opening.reasons),
        "note": opening.note,
    }
    document["steps"] = [
        {
            "tool": step.call.name,
            "arguments": step.call.arguments,
            "result": step.result.content,
            "verdict": judge(step.joined),
        }
        for step in steps
        if isinstance(step, ToolCalled)
    ]
    return document
