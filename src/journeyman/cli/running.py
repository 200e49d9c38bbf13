"""`journeyman run`: an agent does a task in this folder."""

import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from journeyman.agent.dispatch import Question
from journeyman.agent.limits import Limits
from journeyman.agent.steps import Called, Compressed, Step
from journeyman.agent.turn import Turn
from journeyman.cli import asked, files, shown
from journeyman.cli.running_shown import Watching
from journeyman.journeyman import Journeyman
from journeyman.records import Call, Verdict

_MORE = click.FloatRange(0, min_open=True)


@click.command(
    epilog="""\b
Examples:
  journeyman run "Sort the lines of lists/guests.txt and check the result."
  journeyman run "Fix the failing test" --workspace ~/code/shop --turns 20
  journeyman run "Summarise notes/" --model gpt-5-mini --cost 0.05
  journeyman run "Tidy up" --warm off
  journeyman run --resume 20261116-081500-3fa2b1
  cat task.txt | journeyman run - --json"""
)
@click.argument("task", nargs=-1, metavar="[TASK]")
@click.option(
    "--model",
    default="",
    metavar="NAME",
    help="embedded, a .gguf file, or a model at the endpoint in the settings.",
)
@click.option(
    "--warm",
    default="auto",
    show_default=True,
    metavar="auto|NAME|off",
    help="Start with examples that fit, with those of a template, or with none.",
)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where the agent works (default: here, or where a resumed session worked).",
)
@click.option("--resume", metavar="ID", help="Go on with a session that was interrupted.")
@click.option("--turns", type=click.IntRange(1), help="Requests to the model at most.")
@click.option("--tokens", type=click.IntRange(1), help="Tokens at most.")
@click.option("--cost", type=_MORE, metavar="USD", help="Dollars at most.")
@click.option("--seconds", type=_MORE, help="Time at most.")
@click.option("--review/--no-review", default=None, help="Review the turn when it is done.")
@click.option("--tag", "tags", multiple=True, help="A tag for the session; repeatable.")
@asked.json_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    task: tuple[str, ...],
    model: str,
    warm: str,
    workspace: Path | None,
    resume: str | None,
    turns: int | None,
    tokens: int | None,
    cost: float | None,
    seconds: float | None,
    review: bool | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Have an agent do TASK with tools, in this folder.

    It starts warm: with the few examples from recorded sessions that fit the task, if there are
    any. Every step is kept, so a run that was interrupted, or killed, can be resumed. Risky
    calls are asked about on a terminal and refused elsewhere. A dash reads TASK from standard
    input.
    """
    said = files.task_text(task)
    if not said.strip() and resume is None:
        raise click.UsageError("Say what the agent is to do, or --resume a session.")
    journeyman = asked.opened(ctx)
    given = {"turns": turns, "tokens": tokens, "cost_usd": cost, "seconds": seconds}
    usual = msgspec.structs.asdict(journeyman.settings.agent)
    chosen = {name: usual[name] if value is None else value for name, value in given.items()}
    limits = msgspec.convert(chosen, Limits)
    if resume is not None:
        workspace, model = _of_session(journeyman, resume, workspace, model)
    watching = Watching(shown.console(), journeyman.judge, quiet=as_json)
    steps: list[Step] = []

    def see(step: Step) -> None:
        steps.append(step)
        watching.see(step)

    agent = journeyman.agent(
        model=model,
        workspace=workspace or Path(),
        warm=warm,
        # Where a confirmation service is configured, it is asked, and not who sits here.
        ask=None if journeyman.settings.confirm.token else _asking(watching),
        limits=limits,
        review=review,
        tell=watching.tell,
        platform="cli",
        tags=tags,
    )
    if limits.cost_usd is not None and not agent.knows_cost:
        watching.tell(
            f"No price is known for {agent.model.name}, so a limit on cost cannot hold; "
            "--tokens can."
        )
    with _stoppable(watching.tell) as cancelled, agent:
        watching.start(agent.model)
        hooks: dict[str, Any] = {"on_step": see, "on_text": watching.hear}
        hooks["cancelled"] = cancelled
        if resume is None:
            turn = agent.run_conversation(said, **hooks)
        else:
            turn = agent.resume(resume, said, **hooks)
        if as_json:
            asked.print_json(_told(turn, steps, journeyman.judge))
        else:
            watching.end(turn)
        watching.reviewing(agent.wait_for_review, cancelled)
    ctx.exit(0 if turn.completed else 1)


def _of_session(
    journeyman: Journeyman, session_id: str, workspace: Path | None, model: str
) -> tuple[Path | None, str]:
    """Where a session was at work and with which model, unless others are given."""
    session = journeyman.sessions.get(session_id).session
    asked_model = session.details.get("asked_model", "")
    return workspace or (Path(session.cwd) if session.cwd else None), model or asked_model


def _asking(watching: Watching) -> Callable[[Question], bool | None]:
    """Asks the person at the terminal, if there is one. Only what is typed after the question is an
    answer to it; Ctrl-C there means no, and stop.
    """

    def ask(question: Question) -> bool | None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        with watching.paused():
            watching.show_question(question)
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

    return ask


@contextmanager
def _stoppable(tell: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks the agent, or the review of its turn, to stop in order; the second
    stops it.
    """
    asked_to: list[bool] = []

    def stop(_number: int, _frame: object) -> None:
        if asked_to:
            raise KeyboardInterrupt
        asked_to.append(True)
        tell("Stopping; what is done is kept. Ctrl-C again stops at once.")

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: bool(asked_to)
    finally:
        signal.signal(signal.SIGINT, before)


def _told(turn: Turn, steps: list[Step], judge: Callable[[Call], Verdict]) -> dict[str, Any]:
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
    told["steps"] = [
        {
            "tool": step.call.name,
            "arguments": step.call.arguments,
            "result": step.result.content,
            "verdict": judge(step.joined),
        }
        if isinstance(step, Called)
        else msgspec.to_builtins(step)
        for step in steps
        if isinstance(step, Called | Compressed)
    ]
    return told
