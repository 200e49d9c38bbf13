"""`journeyman run`: an agent does a task in this folder; each step is shown as it is done."""

import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.status import Status
from rich.text import Text

from journeyman.agent.dispatch import Question
from journeyman.agent.turn import Begun, Called, Compressed, Limits, Replied, Step, Turn
from journeyman.cli import asked, files, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.opening import opening_in_brief
from journeyman.cli.sessions import show_call
from journeyman.journeyman import Journeyman
from journeyman.models.model import Model
from journeyman.records import Call, Verdict
from journeyman.templates.shown.opening import Opening

_TAIL = 60
_WAITED_S = 0.1
_TOLD = {
    **dict.fromkeys(("turns", "tokens", "cost", "time"), "Stopped at a limit."),
    "interrupted": "Interrupted.",
    "repeating": "Stopped: it goes round in circles.",
    "context_full": "Stopped: the conversation does not fit the model's window.",
    "model_failed": "Stopped: the model gave no answer.",
    "cut": "The answer is not whole.",
    "empty": "Stopped: the model had nothing to say.",
}


@asked.command()
@click.argument("task", nargs=-1, metavar="[TASK]")
@option(
    "--model NAME",
    "embedded, a .gguf file, or a model at the endpoint in the settings.",
    default="",
)
@option(
    "--warm auto|NAME|off",
    "Start with examples that fit, with those of a template, or with none.",
    default="auto",
)
@option(
    "--workspace FOLDER",
    "Where the agent works (default: here, or where a resumed session worked).",
    type=click.Path(path_type=Path),
)
@option("--resume ID", "Go on with a session that was interrupted.")
@option("--turns", "Requests to the model at most.", type=asked.SOME)
@option("--tokens", "Tokens at most.", type=asked.SOME)
@option("--cost USD", "Dollars at most.", to="cost_usd", type=asked.MORE)
@option("--seconds", "Time at most.", type=asked.MORE)
@option("--review/--no-review", "Review the turn when it is done.", default=None)
@flag("--network", "Give the agent's commands the network.")
@option("--tag", "A tag for the session; repeatable.", to="tags", multiple=True)
def run(
    journeyman: Journeyman,
    *,
    task: tuple[str, ...],
    workspace: Path | None,
    resume: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Have an agent do TASK with tools, in this folder.

    It starts warm: with the few examples from recorded sessions that fit the task, if there are
    any. Every step is kept, so a run that was interrupted, or killed, can be resumed. Risky
    calls are asked about on a terminal and refused elsewhere. A dash reads TASK from standard
    input.

    Examples:
      journeyman run "Sort the lines of lists/guests.txt and check the result."
      journeyman run "Fix the failing test" --workspace ~/code/shop --turns 20
      journeyman run "Summarise notes/" --model gpt-5-mini --cost 0.05
      journeyman run "Tidy up" --warm off
      journeyman run "Update the dependencies" --network
      journeyman run --resume 20261116-081500-3fa2b1
      cat task.txt | journeyman run - --json
    """
    said = files.task_text(task)
    if not said.strip() and resume is None:
        raise click.UsageError("Say what the agent is to do, or --resume a session.")
    names = ("turns", "tokens", "cost_usd", "seconds")
    usual = {name: getattr(journeyman.settings.agent, name) for name in names}
    given = {name: options.pop(name) for name in names}
    chosen = {name: value for name, value in given.items() if value is not None}
    limits = msgspec.convert(usual | chosen, Limits)
    if resume is not None:
        session = journeyman.sessions.get(resume).session
        workspace = workspace or (Path(session.cwd) if session.cwd else None)
        options["model"] = options["model"] or session.details.get("asked_model", "")
    watching = Watching(shown.console(), journeyman.judge, quiet=as_json)
    agent = journeyman.agent(
        workspace=workspace or Path(),
        # Where a confirmation service is configured, it is asked, and not who sits here.
        ask=None if journeyman.settings.confirm.token else watching.ask,
        limits=limits,
        tell=watching.tell,
        platform="cli",
        **options,
    )
    if limits.cost_usd is not None and not agent.knows_cost:
        watching.tell(
            f"No price is known for {agent.model.name}, so a limit on cost cannot hold; "
            "--tokens can."
        )
    told = "Stopping; what is done is kept. Ctrl-C again stops at once."
    with asked.stoppable(told, tell=watching.tell) as stopping, agent:
        watching.start(agent.model)
        hooks: dict[str, Any] = {"on_step": watching.see, "on_text": watching.hear}
        hooks["cancelled"] = stopping.is_set
        if resume is None:
            turn = agent.run_conversation(said, **hooks)
        else:
            turn = agent.resume(resume, said, **hooks)
        if as_json:
            asked.print_json(_turn_json(turn, watching.steps, journeyman.judge))
        else:
            watching.end(turn)
        if not agent.wait_for_review(0.0):
            with shown.waiting("reviewing the turn; Ctrl-C skips it"):
                while not stopping.is_set() and not agent.wait_for_review(_WAITED_S):
                    pass
    click.get_current_context().exit(0 if turn.completed else 1)


class Watching:
    """Shows the steps of a turn as they come. On a terminal a line moves while the model thinks;
    when `quiet`, only questions and stops are told, on standard error. `steps` are all so far.
    """

    def __init__(
        self, console: Console, judge: Callable[[Call], Verdict], *, quiet: bool = False
    ) -> None:
        self._console, self._judge, self._quiet = console, judge, quiet
        self._status: Status | None = None
        self.steps: list[Step] = []
        self._heard = ""
        self._calls = 0
        self._refused = 0
        self._began = time.monotonic()

    def start(self, model: Model) -> None:
        if self._quiet:
            return
        self._say(f"{model.name} ({model.provider})")
        if sys.stderr.isatty():
            self._status = Console(stderr=True).status("thinking")
            self._status.start()

    def _say(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(shown.plain(text), style=style))

    def hear(self, text: str) -> None:
        """Text of the model as it comes."""
        if self._status is not None:
            self._heard = (self._heard + text)[-_TAIL:]
            self._status.update(Text(shown.one_line(self._heard, _TAIL), style="dim"))

    def see(self, step: Step) -> None:
        self.steps.append(step)
        self._heard = ""
        if not self._quiet:
            with self.paused():
                self._show(step)

    def _show(self, step: Step) -> None:
        if isinstance(step, Begun):
            self._say(f"session {step.session}")
            self._show_opening(step.opening)
        elif isinstance(step, Replied) and step.reply.tool_calls and step.reply.text.strip():
            self._say(step.reply.text.strip())
        elif isinstance(step, Called):
            call = msgspec.structs.replace(step.joined, index=self._calls)
            self._calls += 1
            verdict = self._judge(call)
            self._refused += verdict.status == "refused"
            show_call(self._console, call, verdict, full=False)
        elif isinstance(step, Compressed):
            full = f"The window is full: {step.messages} messages were summarised"
            self._say(f"{full}; it goes on as {step.child}.", "yellow")

    def end(self, turn: Turn) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if turn.final_response:
            self._say(f"\n{turn.final_response}", "")
        if not turn.completed:
            self._say("\n" + f"{_TOLD.get(turn.stop, '')} {turn.note}".strip(), "yellow")
            self._say(f"Go on: journeyman run --resume {turn.session}", "")
        refused = f" ({self._refused} refused)" if self._refused else ""
        used = [
            shown.many(turn.api_calls, "request"),
            shown.many(turn.calls, "call") + refused,
            "tokens unknown" if turn.tokens is None else f"{turn.tokens:,} tokens",
            *([f"about ${turn.cost_usd:.4f}"] if turn.cost_usd else []),
            f"{time.monotonic() - self._began:.1f} s",
        ]
        self._say(f"\nsession {turn.session}: {', '.join(used)}")
        if turn.changed_files:
            self._say(f"undo with: journeyman undo {turn.session}")

    def tell(self, line: str) -> None:
        """A line for the person, beside the answer."""
        with self.paused():
            click.echo(shown.plain(line), err=True)

    def ask(self, question: Question) -> bool | None:
        """Ask the person at the terminal, if there is one. Only what is typed after the question
        is an answer to it; Ctrl-C there means no, and stop.
        """
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        with self.paused():
            _show_question(question)
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
            stop = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                return click.confirm("Allow it?", default=False, err=True)
            except click.Abort:
                if callable(stop):
                    stop(signal.SIGINT, None)
                return False
            finally:
                signal.signal(signal.SIGINT, stop)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the moving line, for as long as something else is said."""
        if self._status is not None:
            self._status.stop()
        yield
        if self._status is not None:
            self._status.update("thinking")
            self._status.start()

    def _show_opening(self, opening: Opening | None) -> None:
        if opening is None:
            return
        if opening.is_empty:
            self._say(f"Starting cold: {opening.note or 'as asked'}", "")
            return
        origin = f" of {opening.template}" if opening.template else ""
        tokens = f"about {opening.tokens:,} tokens"
        self._say(f"Starting warm: {opening_in_brief(opening)}{origin}, {tokens}", "green")
        for pattern, reason in zip(opening.patterns, opening.reasons, strict=True):
            self._say(f"  {shown.one_line(pattern.intent, max(self._console.width - 4, 30))}", "")
            self._say(f"    why: {reason}")


def _show_question(question: Question) -> None:
    """What is to be decided: all of what would run, every line of it marked so that none can pass
    for ours, and then why it is asked.
    """
    lines = [f"\nThe agent wants to use {shown.plain(question.tool)}:"]
    for name, value in question.arguments.items():
        lines.append(f"  {shown.plain(name)}:")
        lines += [shown.plain(f"  │ {line}") for line in str(value).split("\n")]
    lines.append(shown.plain(f"Why you are asked: {question.reason} ({question.rule})"))
    click.echo("\n".join(lines), err=True)


def _turn_json(turn: Turn, steps: list[Step], judge: Callable[[Call], Verdict]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(turn)
    opening = turn.opening
    told["completed"] = turn.completed
    told["opening"] = opening and {
        "id": opening.id,
        "template": opening.template,
        "patterns": [pattern.id for pattern in opening.patterns],
        "reasons": list(opening.reasons),
        "note": opening.note,
    }
    told["steps"] = []
    for step in steps:
        if isinstance(step, Called):
            call = {"tool": step.call.name, "arguments": step.call.arguments}
            verdict = judge(step.joined)
            told["steps"].append(call | {"result": step.result.content, "verdict": verdict})
        elif isinstance(step, Compressed):
            told["steps"].append(msgspec.to_builtins(step))
    return told
