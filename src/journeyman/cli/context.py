"""What the commands share: decorators for commands and options, the Journeyman they work with, and
JSON output.
"""

import inspect
import io
import json
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click
import msgspec

from journeyman.facade.journeyman import Journeyman
from journeyman.text import durations
from journeyman.text.invisible import INVISIBLE_CHARACTERS

if TYPE_CHECKING:
    from rich.console import Console

_LARGEST_NUMBER = 1_000_000_000
_PLAIN_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
JSON_HELP = "Print JSON for programs."
_PAGER_HELP = "Do not show long output in a pager."

SessionFilters = dict[str, Any]
"""Keyword arguments for `Journeyman.sessions.list`; holds only the filters that were requested."""

# Recorded text may contain characters that move the cursor or reverse text. In JSON they occur only
# inside strings, where an escape is equivalent.
_UNSEEN = re.compile(f"[\x7f-\x9f\u2028\u2029{INVISIBLE_CHARACTERS}]")


def option(names: str, help_text: str, *, dest: str = "", **settings: Any) -> _Decorator:
    """Declare an option the way help shows it: its names and the placeholder of its value, as in
    `-o --output FILE`. The command receives it as `dest`. A default is shown unless it is empty.
    """
    flags = [name for name in names.split() if name.startswith("-")]
    metavar = names.removeprefix(" ".join(flags)).strip() or settings.pop("metavar", None)
    settings.setdefault("show_default", settings.get("default") not in (None, "", True, 0))
    if metavar is None and isinstance(settings.get("type"), WholeNumber):
        metavar = "N"
    declared = (*flags, *filter(None, [dest]))
    return click.option(*declared, metavar=metavar, help=help_text, **settings)


def number(
    names: str, help_text: str, *, least: int = 1, most: int = _LARGEST_NUMBER, **settings: Any
) -> _Decorator:
    """Declare an option whose value is a whole number."""
    return option(names, help_text, type=WholeNumber(least, most), **settings)


def choice(names: str, help_text: str, values: Iterable[str], **settings: Any) -> _Decorator:
    """Declare an option whose value is one of several."""
    return option(names, help_text, type=click.Choice(tuple(values)), **settings)


def flag(names: str, help_text: str, *, dest: str = "") -> _Decorator:
    """Declare an option without a value."""
    return click.option(*names.split(), *filter(None, [dest]), is_flag=True, help=help_text)


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.3
    """A whole number within limits. Help does not show them: most only exclude huge numbers."""

    name = "whole number"

    def __init__(self, least: int, most: int = _LARGEST_NUMBER) -> None:
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid whole number.", param, ctx)
        if not self.least <= number <= self.most:
            self.fail(f"{number} is not between {self.least} and {self.most:,}.", param, ctx)
        return number


POSITIVE_INT = WholeNumber(1)
POSITIVE_FLOAT = click.FloatRange(0, min_open=True)

yes_option = flag("-y --yes", "Do not ask for confirmation.")
source_option = option("--source", "Only sessions from this recorder.")
platform_option = option("--platform", "Only sessions from this platform: cli, telegram, cron, …")
bots_option = flag("--bots", "Include sessions of bots: headless runs, schedules, …")
include_trivial_option = flag(
    "--include-trivial", "Also count housekeeping tools: memory, to-do lists, …"
)


class _Screen(io.StringIO):
    """Text that is written as on a terminal, with colours."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _paged_output() -> Iterator[None]:
    """Show what the block prints in a pager, if it does not fit on the terminal."""
    terminal, sys.stdout = sys.stdout, _Screen()
    try:
        yield
    finally:
        text, sys.stdout = sys.stdout.getvalue(), terminal
        fits = text.count("\n") < shutil.get_terminal_size().lines
        (partial(click.echo, nl=False) if fits else click.echo_via_pager)(text)


def open_journeyman(*, tolerant: bool = False) -> Journeyman:
    """Return the Journeyman for this command; it is closed when the command ends."""
    ctx = click.get_current_context()
    selected = ctx.find_root().obj
    opened = Journeyman(selected["home"], selected["database"], tolerant=tolerant)
    selected["opened"] = ctx.with_resource(opened)
    return opened


def short_ids(session_ids: Iterable[str]) -> dict[str, str]:
    """Return what is enough to identify each session in this command's store; an id that is not
    stored there stays whole.
    """
    whole = {id_: id_ for id_ in session_ids}
    opened: Journeyman | None = click.get_current_context().find_root().obj.get("opened")
    return whole | (opened.sessions.short_ids(whole) if opened and whole else {})


def command(
    group: click.Group | None = None,
    name: str | None = None,
    *,
    render: "Callable[[Console, Any], object] | None" = None,
    message: Callable[[Any], str] | None = None,
    to_json: Callable[[Any], Any] = lambda result: result,
    is_failure: Callable[[Any], object] = lambda _result: False,
    has_json: bool = True,
    is_paged: bool = False,
    tolerant: bool = False,
    **settings: Any,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command, on its own or in a group. It is called with a Journeyman and its
    options. People see its result through `render` or `message`; --json prints `to_json` of it.
    Without `render` and `message`, the function also receives `as_json` and prints its own output.
    If `is_failure` of the result is true, the exit code is 1. `is_paged` shows long output for
    people in a pager. A `tolerant` command also runs with settings that cannot be used. The
    examples in the docstring become the end of the help.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(**options: Any) -> None:
            wants_pager = is_paged and not (options.pop("no_pager") or options.get("as_json"))
            with _paged_output() if wants_pager and sys.stdout.isatty() else nullcontext():
                run_unpaged(**options)

        def run_unpaged(**options: Any) -> None:
            as_json = options.pop("as_json", False) if render or message else False
            result = function(open_journeyman(tolerant=tolerant), **options)
            if as_json:
                print_json(to_json(result))
            elif message:
                click.echo(message(result))
            elif render:
                print_result(result, render, as_json=False)
            if is_failure(result):
                click.get_current_context().exit(1)

        help_text = inspect.cleandoc(settings.get("help") or function.__doc__ or "")
        settings["help"], _, examples = help_text.partition("\n\nExamples:\n")
        if examples:
            settings["epilog"] = f"\b\nExamples:\n{examples}"
        decorated = (group.command if group else click.command)(name, **settings)(run)
        if has_json:
            json_flag = click.Option(("--json", "as_json"), is_flag=True, help=JSON_HELP)
            decorated.params.append(json_flag)
        if is_paged:
            decorated.params.append(click.Option(("--no-pager",), is_flag=True, help=_PAGER_HELP))
        return decorated

    return decorate


class DefaultGroup(click.Group):
    """A group that passes arguments which name none of its commands to its `default` command."""

    def __init__(self, *args: Any, default: str, usage: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._default, self._usage = default, usage

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {*self.commands, *ctx.help_option_names}
        is_own = args[0] in own if args else self.no_args_is_help
        return super().parse_args(ctx, args if is_own else [self._default, *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, self._usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the default command, because the group takes them."""
        self.commands[self._default].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def require_terminal(preview: str = "--dry-run") -> None:
    """Raise UsageError if standard input is not a terminal, where confirmation is impossible; the
    option `preview` shows what would happen.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(
            "This needs confirmation, and standard input is not a terminal. Pass --yes to go "
            f"ahead, or {preview} to see what would change."
        )


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """On SIGTERM, exit through Python, so that the worker processes are ended first."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def graceful_stop(
    message: str,
    signals: Iterable[int] = (signal.SIGINT,),
    *,
    notify: Callable[[str], object] = lambda line: click.echo(line, err=True),
) -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C (or other signal) sets, to request an orderly stop; the
    second one stops at once.
    """
    stopping = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        with suppress(OSError, ValueError):
            notify(message)

    # Ignored signals stay ignored: nohup and background shells set that on purpose.
    handled = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in handled}
    try:
        yield stopping
    except KeyboardInterrupt:
        click.echo("Stopped immediately.", err=True)
        click.get_current_context().exit(1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_result(result: Any, render: "Callable[[Console, Any], object]", *, as_json: bool) -> None:
    """Print a result, as JSON or rendered for people."""
    if as_json:
        print_json(result)
    else:
        # Imported here because loading it takes longer than some commands.
        from journeyman.cli import formatting  # noqa: PLC0415

        render(formatting.console(), result)


def print_json(value: Any) -> None:
    """Print one JSON document, indented for readability."""
    text = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2)
    click.echo(escape_json(text.decode()))


def escape_json(json_text: str) -> str:
    """Return JSON text with all characters escaped that could control a terminal."""
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], json_text)


def _parse_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    moment = durations.parse_moment(value, time.time())
    if moment is None:
        raise click.BadParameter(
            f"{value!r} is not a time. Write it like 7d, '2 weeks', yesterday or 2026-11-15."
        )
    return moment


def parse_duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds in a duration above 0: a number of seconds, or like 30s, 15m, 2h, 7d."""
    if value is None:
        return None
    text = value.strip().lower()
    duration_s = float(text) if _PLAIN_NUMBER.fullmatch(text) else durations.parse_duration(text)
    if not duration_s:
        raise click.BadParameter(
            f"{value!r} is not a duration above 0. Write it like 90, 15m, 2h or 7d."
        )
    return duration_s


def _resolve_project(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return open_journeyman().project_named(value) if value else value


project_option = option(
    "--project NAME|DIR",
    "Only sessions of this project: a name, or a folder (. for this one).",
    callback=_resolve_project,
)
since_option = option(
    "--since TIME",
    "Only sessions started then or later: 7d, '2 weeks', yesterday, 2026-11-15.",
    callback=_parse_moment,
)
_SESSION_OPTIONS = {
    "project": project_option,
    "source": source_option,
    "platform": platform_option,
    "model": option("--model", "Only sessions of this model."),
    "tag": option("--tag", "Only sessions with this tag."),
    "since": since_option,
    "until": option("--until TIME", "Only sessions started before then.", callback=_parse_moment),
    "min_messages": number(
        "--min-messages", "Only sessions with at least this many messages.", least=0
    ),
    "subagents": option(
        "--no-subagents",
        "Leave out sessions of subagents.",
        dest="subagents",
        is_flag=True,
        flag_value=False,
        default=None,
    ),
    "bots": option("--bots/--no-bots", "Include or leave out bots: headless runs, …", default=None),
    "warm": option("--warm/--cold", "Only sessions with an opening, or without.", default=None),
}


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select sessions; the command receives those in use as `filters`."""

    @wraps(command)
    def with_filters(*args: Any, **options: Any) -> None:
        values = {name: options.pop(name) for name in _SESSION_OPTIONS}
        filters = {name: value for name, value in values.items() if value is not None}
        command(*args, filters=filters, **options)

    with_options: Callable[..., None] = with_filters
    for add_option in reversed(_SESSION_OPTIONS.values()):
        with_options = add_option(with_options)
    return with_options


def no_match_message(journeyman: Journeyman, filters: SessionFilters) -> str:
    """Return why no session matches these filters, and how to see all; empty if there are no
    filters or no sessions are stored.
    """
    reason = journeyman.sessions.no_match(**filters)
    return f"{reason} `journeyman sessions list` shows all sessions." if reason else ""
