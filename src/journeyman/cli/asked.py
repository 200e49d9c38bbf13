"""What commands share in asking: which Journeyman is meant, which sessions, and answers as JSON."""

import getpass
import inspect
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
import msgspec

from journeyman.jobs.clocks import find_duration
from journeyman.journeyman import Journeyman
from journeyman.logs.repositories import find_project
from journeyman.text.invisible import UNSEEN

if TYPE_CHECKING:
    from rich.console import Console

_MOST = 1_000_000_000
MORE = click.FloatRange(0, min_open=True)
_MOST_WORKERS = 64
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

Chosen = dict[str, Any]
"""Which sessions are meant, as `Journeyman.sessions.list` takes it: only what was asked for."""

# Recorded text may hold what moves a cursor or turns text round. In JSON it stands only inside
# strings, where its escape means the same.
_UNSEEN = re.compile(f"[\x7f-\x9f\u2028\u2029{UNSEEN}]")


def option(names: str, about: str | None = None, *, to: str = "", **settings: Any) -> _Decorator:
    """An option as help shows it: its names, and what stands for its value, as in `-o --output
    FILE`. The command gets it as `to`; a default that says something is shown.
    """
    flags = [name for name in names.split() if name.startswith("-")]
    metavar = names.removeprefix(" ".join(flags)).strip() or settings.pop("metavar", None)
    settings.setdefault("show_default", settings.get("default") not in (None, "", True, 0))
    return click.option(*flags, *filter(None, [to]), metavar=metavar, help=about, **settings)


def flag(name: str, about: str, *, to: str = "") -> _Decorator:
    """An option that is given or not."""
    return click.option(*name.split(), *filter(None, [to]), is_flag=True, help=about)


class WholeNumber(click.IntRange):
    """A number in a range, called what people call it when it is none."""

    name = "whole number"


COUNT, SOME = WholeNumber(0, _MOST), WholeNumber(1, _MOST)

yes_option = flag("-y --yes", "Do not ask.")
source_option = option("--source", "Only sessions of this recorder.")
workers_option = option(
    "--workers N",
    "How many processes share the work, if there is much.",
    type=WholeNumber(1, _MOST_WORKERS),
    default=lambda: min(os.cpu_count() or 1, _MOST_WORKERS),
    show_default="all cores",
)


def opened() -> Journeyman:
    """The Journeyman of this command, closed when the command ends."""
    ctx = click.get_current_context()
    chosen = ctx.find_root().obj
    return ctx.with_resource(Journeyman(home=chosen["home"], database=chosen["database"]))


def command(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    shows: "Callable[[Console, Any], object] | None" = None,
    says: Callable[[Any], str] | None = None,
    tells: Callable[[Any], Any] = lambda answer: answer,
    fails: Callable[[Any], object] = lambda _answer: False,
    has_json: bool = True,
    **settings: Any,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, of a group or by itself. It is called with the Journeyman that is
    meant and with its options. What it returns `shows` or `says` for people, and --json prints as
    `tells` has it; without these two, the function gets `as_json` too and prints by itself. An
    answer that `fails` ends the command with 1. The examples in its docstring end the help.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(**options: Any) -> None:
            as_json = options.pop("as_json", False) if shows or says else False
            found = function(opened(), **options)
            if as_json:
                print_json(tells(found))
            elif says:
                click.echo(says(found))
            elif shows:
                answer(found, shows, as_json=False)
            if fails(found):
                click.get_current_context().exit(1)

        said = inspect.cleandoc(settings.get("help") or function.__doc__ or "")
        settings["help"], _, examples = said.partition("\n\nExamples:\n")
        if examples:
            settings["epilog"] = f"\b\nExamples:\n{examples}"
        made = (group.command if group else click.command)(name, **settings)(run)
        if has_json:
            about_json = "Print JSON for programs."
            made.params.append(click.Option(("--json", "as_json"), is_flag=True, help=about_json))
        return made

    return decorate


class DefaultGroup(click.Group):
    """A group that hands to its command `default` whatever is no command."""

    def __init__(self, *args: Any, default: str, usage: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._default, self._usage = default, usage

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {*self.commands, *ctx.help_option_names}
        is_known = args[0] in own if args else self.no_args_is_help
        return super().parse_args(ctx, args if is_known else [self._default, *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, self._usage)


def check_terminal() -> None:
    """Raises UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here. Use --yes, or --dry-run to look.")


def person() -> str:
    """Who sits at this terminal; empty for a user without a name, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


@contextmanager
def ending_workers() -> Iterator[None]:
    """A process that is told to end meanwhile first ends the workers that it has started."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stoppable(
    said: str,
    signals: Iterable[int] = (signal.SIGINT,),
    *,
    tell: Callable[[str], object] = lambda line: click.echo(line, err=True),
) -> Iterator[threading.Event]:
    """The first Ctrl-C, or other signal, asks to stop in order by setting what this yields; the
    second stops at once.
    """
    stopping = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        with suppress(OSError, ValueError):
            tell(said)

    # What is ignored stays so: nohup, and shells that start something in the background, mean it.
    heard = [one for one in signals if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield stopping
    except KeyboardInterrupt:
        click.echo("Stopped at once.", err=True)
        click.get_current_context().exit(1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def answer(found: Any, shows: "Callable[[Console, Any], object]", *, as_json: bool) -> None:
    """What was found, for people or for programs."""
    if as_json:
        print_json(found)
    else:
        # Loaded here, because it takes longer than some commands do.
        from journeyman.cli import shown  # noqa: PLC0415

        shows(shown.console(), found)


def print_json(value: Any) -> None:
    """One JSON document, indented for people who look at it too."""
    text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2)
    click.echo(escaped(text.decode()))


def escaped(json_text: str) -> str:
    """JSON text with everything escaped that a terminal might obey."""
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], json_text)


def _day(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value).astimezone(UTC).timestamp()
    except (OverflowError, ValueError, OSError) as error:
        raise click.BadParameter(f"{value!r} is not a day like 2026-11-15") from error


def seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """A length of time above 0: so many seconds, or 30s, 15m, 2h, 7d."""
    if value is None:
        return None
    text = value.strip().lower()
    found = float(text) if _NUMBER.fullmatch(text) else find_duration(text)
    if not found:
        how = "it has to be above 0, and written like 15m, 2h or 7d"
        raise click.BadParameter(f"{value!r} is no length of time: {how}.")
    return found


def _project(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return find_project(value) if value and os.path.isdir(value) else value  # noqa: PTH112


project_option = option(
    "--project NAME|DIR",
    "Only sessions of this project: a name, or a folder (. for this one).",
    callback=_project,
)
_SESSION_OPTIONS = (
    project_option,
    source_option,
    option("--model", "Only sessions of this model."),
    option("--tag", "Only sessions with this tag."),
    option("--since DAY", "Only sessions begun on or after.", callback=_day),
    option("--until DAY", "Only sessions begun before.", callback=_day),
    option("--min-messages", "Only sessions this long.", type=COUNT),
    flag("--no-subagents", "Leave out the sessions of subagents."),
)


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that choose sessions, handed to the command as `chosen`."""

    @wraps(command)
    def choosing(*args: Any, no_subagents: bool, **given: Any) -> None:
        names = ("project", "source", "model", "tag", "since", "until", "min_messages")
        chosen = {name: value for name in names if (value := given.pop(name)) is not None}
        if no_subagents:
            chosen["subagents"] = False
        command(*args, chosen=chosen, **given)

    with_options: Callable[..., None] = choosing
    for one in reversed(_SESSION_OPTIONS):
        with_options = one(with_options)
    return with_options


def nothing_fits(journeyman: Journeyman, chosen: Chosen) -> str:
    """What to say where none of the sessions fits; empty if none was to, or none is stored."""
    if not chosen or not journeyman.sessions.list(limit=1):
        return ""
    said = "No stored session fits these options: `journeyman sessions list`."
    project = chosen.get("project")
    if project and not journeyman.sessions.list(project=project, limit=1):
        nearest = journeyman.sessions.nearest_projects(project)
        said += f" None belongs to project {project!r}."
        said += f" Known projects: {', '.join(nearest)}." if nearest else ""
    return said
