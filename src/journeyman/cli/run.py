"""`journeyman run`: runs an agent on a task in this folder and shows each step as it happens."""

import signal
import sys
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import choice, flag, number, option
from journeyman.cli.session_view import print_call
from journeyman.facade.journeyman import Journeyman
from journeyman.gate.decision import ApprovalRequest
from journeyman.hosts.pages import PAGES
from journeyman.hosts.runner import (
    RunBegan,
    RunCall,
    RunLimits,
    Runner,
    RunOpening,
    RunRequest,
    RunResult,
    RunStep,
    RunText,
)
from journeyman.plugin.engines import ENGINES, OWN, choose_engine, installed_hosts
from journeyman.plugin.runs import HostRun
from journeyman.records import Call, Verdict
from journeyman.records.errors import WrongInput
from journeyman.settings import EMBEDDED
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent

_REVIEW_POLL_S = 0.1
_LIMITS = ("turns", "tokens", "cost_usd", "seconds")


@context.command()
@click.argument("task", nargs=-1, metavar="[TASK]")
@choice(
    "--with",
    "Agent that does it (default: the one that last worked in this project).",
    ENGINES,
    dest="engine",
)
@option(
    "--model NAME",
    "Model to use: one of the agent's; for journeyman also embedded.",
    default="",
)
@option(
    "--warm auto|NAME|off",
    "Start with what fits the task or with nothing; for journeyman also with a template.",
    default="auto",
)
@choice(
    "--access",
    "What it may do without asking.",
    ("read", "edit", "all"),
    default="edit",
)
@option(
    "--workspace FOLDER",
    "Folder to work in (default: the current one).",
    type=click.Path(path_type=Path),
    default=".",
)
@option("--resume SESSION", "Go on with a session of the same agent.", default="")
@number("--turns", "Largest number of requests to the model.")
@number("--tokens", "Largest number of tokens.")
@option("--cost USD", "Highest cost, in dollars.", dest="cost_usd", type=context.POSITIVE_FLOAT)
@option("--seconds N", "Longest run time, in seconds.", type=context.POSITIVE_FLOAT)
@option(
    "--review/--no-review",
    "journeyman: review the turn afterwards (default: as in the settings).",
    default=None,
)
@flag("--network", "journeyman: allow the agent's commands to use the network.")
@option("--tag", "journeyman: tag for the session; repeatable.", dest="tags", multiple=True)
def run(journeyman: Journeyman, *, task: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Have an agent do TASK in this folder: Claude Code, Codex, Hermes, opencode, or journeyman.

    An agent of another program runs with your own login there, subscription or key. It starts warm,
    with what is known about this project, and risky calls need your approval on a terminal and are
    refused elsewhere. `journeyman undo` takes back what it changed. A dash reads TASK from standard
    input. `journeyman` is a small agent of its own for an endpoint or the embedded model.

    Examples:
      journeyman run "Sort the lines of lists/guests.txt and check the result."
      journeyman run "Fix the failing test" --with claude-code --turns 20
      journeyman run "What does this project do?" --with codex --access read
      journeyman run "Summarise notes/" --with journeyman --model gpt-5-mini --cost 0.05
      cat task.txt | journeyman run - --json
    """
    text = files.task_text(task)
    if not text.strip():
        raise click.UsageError("Pass a task for the agent.")
    folder = options["workspace"].absolute()
    if not folder.is_dir():
        raise click.UsageError(f"{options['workspace']} is not a folder.")
    model = options["model"]
    is_own = model == EMBEDDED or (model and not installed_hosts())
    engine = options["engine"] or (OWN if is_own else choose_engine(journeyman, folder))
    display = RunDisplay(formatting.console(), journeyman.judge, quiet=as_json)
    with context.graceful_stop(
        "Stopping; finished steps are stored. Press Ctrl-C again to stop immediately.",
        notify=display.notify,
    ) as stopping:
        if engine == OWN:
            runner: Runner = _own_runner(journeyman, options, display, stopping)
        else:
            runner = _host_runner(journeyman, engine, options, display)
        request = RunRequest(
            prompt=text,
            folder=folder,
            access=options["access"],
            limits=_limits(journeyman, engine, options),
            resume=options["resume"],
            model=options["model"],
        )
        result = runner.run(request, on_step=display.add_step, cancelled=stopping.is_set)
        if as_json:
            context.print_json(_result_json(result, display, journeyman.judge))
        else:
            display.end(result)
    click.get_current_context().exit(0 if result.is_done else 1)


def _limits(journeyman: Journeyman, engine: str, options: dict[str, Any]) -> RunLimits:
    """Return the limits that were passed; the settings are for the small loop."""
    configured = journeyman.settings.agent if engine == OWN else RunLimits()
    return RunLimits(**{name: options[name] or getattr(configured, name) for name in _LIMITS})


def _host_runner(
    journeyman: Journeyman, engine: str, options: dict[str, Any], display: "RunDisplay"
) -> HostRun:
    own_only = {"review": "--review", "network": "--network", "tags": "--tag"}
    for name in (name for name in own_only if options[name]):
        raise WrongInput(f"{own_only[name]} is for --with {OWN}; {engine} has its own settings.")
    if options["warm"] not in ("auto", "off"):
        raise WrongInput(f"Templates are for --with {OWN}; {engine} is told facts: --warm auto.")
    page = next(page for page in PAGES.values() if page.name == engine)
    display.start(f"{page.title} works, with your own subscription or key")
    return HostRun(
        journeyman,
        engine,
        warm=options["warm"] == "auto",
        approver=display.ask,
        notify=display.notify,
    )


def _own_runner(
    journeyman: Journeyman,
    options: dict[str, Any],
    display: "RunDisplay",
    stopping: threading.Event,
) -> Runner:
    from journeyman.agent.runner import AgentRunner  # noqa: PLC0415 - an optional extra

    if options["resume"]:
        raise WrongInput(f"--with {OWN} cannot go on with a session: start a new run.")

    def build(request: RunRequest) -> "Agent":
        agent = journeyman.agent(
            model=request.model,
            workspace=request.folder,
            warm=options["warm"],
            # A configured confirmation service decides instead of the person at the terminal.
            ask=None if journeyman.settings.confirm.token else display.ask,
            limits=request.limits,
            review=options["review"],
            network=options["network"],
            tell=display.notify,
            platform="cli",
            tags=options["tags"],
        )
        display.start(f"{agent.model.name} ({agent.model.provider})")
        if request.limits.cost_usd is not None and not agent.knows_cost:
            display.notify(
                f"No price is known for {agent.model.name}, so the cost limit cannot be enforced. "
                "Use --tokens instead."
            )
        return agent

    return AgentRunner(build=build, after=lambda agent: _wait_for_review(agent, stopping))


def _wait_for_review(agent: "Agent", stopping: threading.Event) -> None:
    if agent.wait_for_review(0.0):
        return
    with formatting.spinner("reviewing the turn; Ctrl-C skips it"):
        while not stopping.is_set() and not agent.wait_for_review(_REVIEW_POLL_S):
            pass


class RunDisplay:
    """Shows the steps of a run as they happen. If `quiet`, shows only questions and stops, on
    standard error. `steps` holds all steps so far.
    """

    def __init__(
        self, console: Console, judge: Callable[[Call], Verdict], *, quiet: bool = False
    ) -> None:
        self._console, self._judge, self._quiet = console, judge, quiet
        self.steps: list[RunStep] = []
        self._calls = self._refused = 0

    def start(self, engine: str) -> None:
        if not self._quiet:
            self._print(engine)

    def _print(self, text: str, style: str = "dim") -> None:
        self._console.print(Text(readable(text), style=style))

    def add_step(self, step: RunStep) -> None:
        """Store a finished step and show it. A text is shown once it is known not to be the last:
        that one is the answer.
        """
        if not self._quiet:
            if self.steps and isinstance(self.steps[-1], RunText):
                self._print(self.steps[-1].text)
            self._show(step)
        self.steps.append(step)

    def _show(self, step: RunStep) -> None:
        if isinstance(step, RunBegan):
            self._print(f"session {step.session}")
            self._show_opening(step.opening)
        elif isinstance(step, RunCall):
            call = replace(step.call, index=self._calls)
            self._calls += 1
            verdict = self._judge(call)
            self._refused += verdict.status == "refused"
            print_call(self._console, call, verdict, full=step.denied)

    def end(self, result: RunResult) -> None:
        if result.text:
            self._print(f"\n{result.text}", "")
        if not result.is_done:
            self._print(f"\nStopped ({result.status.replace('_', ' ')}). {result.reason}", "yellow")
        if not result.session:
            return
        refused = f" ({self._refused} refused)" if self._refused else ""
        total, cost = result.tokens.total, result.tokens.cost_usd
        used = [
            formatting.pluralize(result.turns, "request"),
            formatting.pluralize(result.calls, "call") + refused,
            "tokens unknown" if total is None else f"{total:,} tokens",
            *([f"about ${cost:.4f}"] if cost else []),
            f"{result.seconds:.1f} s",
        ]
        self._print(f"\nsession {result.session}: {', '.join(used)}")
        if result.changed_files:
            self._print(f"to undo the changes: journeyman undo {result.session}")

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

    def _show_opening(self, opening: RunOpening | None) -> None:
        if opening is None:
            return
        if not opening.id:
            self._print(f"Starting cold: {opening.note}", "")
            return
        self._print(f"Starting warm: {opening.summary}", "green")
        for example in opening.examples:
            intent, _, why = example.partition("\n")
            self._print(f"  {formatting.one_line(intent, self._console.width - 2)}")
            self._print(f"    {why}")


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


def _result_json(
    result: RunResult, display: RunDisplay, judge: Callable[[Call], Verdict]
) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(result)
    began = next((step for step in display.steps if isinstance(step, RunBegan)), None)
    document["completed"] = result.is_done
    document["total_tokens"] = result.tokens.total
    document["opening"] = msgspec.to_builtins(began.opening if began else None)
    document["steps"] = [
        {
            "tool": step.call.tool,
            "arguments": step.call.arguments,
            "result": step.call.result,
            "verdict": judge(step.call),
        }
        for step in display.steps
        if isinstance(step, RunCall)
    ]
    return document
