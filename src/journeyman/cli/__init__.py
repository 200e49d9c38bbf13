"""The command line. Each command is imported when it is called, which keeps `--help` fast."""

import atexit
import io
import logging
import signal
import sys
from difflib import get_close_matches
from importlib import import_module

import click

from journeyman.records.errors import BadSetting, JourneymanError, follows_interrupt
from journeyman.text.display import readable_line
from journeyman.version import __version__

# Where each command is defined, and its line in the list of commands; without one it is not listed.
_COMMANDS = {
    "tour": ("tour:tour", "See what Journeyman does, in about a minute."),
    "doctor": ("hosts:doctor", "Check this machine: what works, and what to fix."),
    "config": ("config:config", "Show and change the settings."),
    "import": ("import_logs:import_", "Import the sessions that your agents recorded."),
    "sessions": ("sessions:sessions", "List, show, search, export and delete sessions."),
    "judge": ("judge:judge", "Judge tool calls from a file, line by line."),
    "profile": ("profile:profile_command", "Show how reliable tool calls were."),
    "compression": (
        "compare:compression",
        "Check whether context compression preserved proficiency.",
    ),
    "compare": ("compare:compare", "Compare warm sessions with cold ones."),
    "learn": ("import_logs:learn", "Learn from new sessions which calls work."),
    "forget": ("forget:forget", "Remove what was learned, and do not learn it again."),
    "playbook": ("facts:playbook", "Show what agents are told about a project."),
    "facts": ("facts:facts", "List facts with their evidence; accept, pin and drop them."),
    "remember": ("facts:remember", "Tell later sessions in a project what you want."),
    "worth": ("worth:worth", "Measure what facts are worth in your sessions."),
    "templates": ("templates:templates", "Build, show and exchange sets of examples."),
    "open": ("opening:open_", "Print what a new session should start with."),
    "run": ("run:run", "Run an agent on a task, started warm."),
    "undo": ("undo:undo", "Restore the files that a run changed."),
    "review": ("review:review", "Review sessions for lessons; show and undo reviews."),
    "usage": ("usage:usage", "Show the tokens and cost of sessions."),
    "confirm": ("confirm:confirm", "Hold risky actions until a person decides."),
    "jobs": ("jobs:jobs", "Run agents on a schedule."),
    "hosts": ("hosts:hosts", "Install Journeyman into Hermes, Claude Code, Codex and opencode."),
    "serve": ("serve:serve", "Serve hooks, confirmations, the page and jobs in one process."),
    "mcp": ("mcp:mcp", "Serve MCP to models in other programs."),
    "hook": ("serve:hook", ""),
}


class _LazyGroup(click.Group):
    """A group that lists its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(f"journeyman.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            # click looks for similar names only among commands that are loaded.
            similar = get_close_matches(name, _COMMANDS, cutoff=0.7)
            hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, summary) for name, (_, summary) in _COMMANDS.items() if summary]
            )


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: journeyman tour",
)
@click.option(
    "--home",
    envvar="JOURNEYMAN_HOME",
    metavar="FOLDER",
    help="Folder for Journeyman's data (default ~/.journeyman; variable JOURNEYMAN_HOME).",
)
@click.option(
    "--database",
    metavar="URL",
    help="Database to use, sqlite:///… or postgresql://… (variable JOURNEYMAN_DATABASE).",
)
@click.version_option(__version__, prog_name="journeyman")
@click.pass_context
def command_line(ctx: click.Context, home: str | None, database: str | None) -> None:
    """Journeyman gives tool-using agents experience.

    It reads the sessions that your agents (Hermes, Claude Code, Codex and others) recorded, judges
    every tool call in them, learns which calls work, and starts the next session with the few
    examples that fit its task.
    """
    ctx.obj = {"home": home, "database": database}


def main() -> None:
    """Run the command line; an error that explains itself is shown without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot encode is replaced instead of raising an error.
            stream.reconfigure(errors="replace")
    # Log records are for programs that configure logging; people get messages instead. SQLAlchemy
    # would log a traceback when Ctrl-C arrives while a connection closes.
    for name in ("journeyman", "sqlalchemy"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    if sys.stderr.isatty():
        # The one thing that takes long before a command has begun.
        logging.getLogger("journeyman.store.engine").addHandler(logging.StreamHandler())
    atexit.unregister(_ignore_interrupts)
    atexit.register(_ignore_interrupts)
    try:
        # Not standalone, so that errors are shown below; `ctx.exit(1)` is then returned as 1.
        code = command_line.main(prog_name="journeyman", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        is_declined = isinstance(stop, click.Abort) and not stop.__cause__
        sys.exit(_report("Not confirmed. Nothing was changed." if is_declined else _INTERRUPTED))
    except JourneymanError as error:
        sys.exit(_report(f"journeyman: {error}", 2 if isinstance(error, BadSetting) else 1))
    except BrokenPipeError:
        # The reader of the pipe is gone, so there is nowhere to report it.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.exit(_report(f"journeyman: {error}."))
    except Exception as error:
        if follows_interrupt(error):
            sys.exit(_report(_INTERRUPTED))
        if sys.flags.dev_mode:
            raise
        logging.getLogger(__name__).debug("unexpected", exc_info=True)
        unexpected = f"journeyman: unexpected error: {type(error).__name__}: {error}."
        sys.exit(_report(f"{unexpected} Run `python -X dev -m journeyman …` for a traceback."))


_INTERRUPTED = "Interrupted. Nothing was left half done; run the command again."


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while Python shuts down: the command has finished and reported, and must not
    turn into a failure.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _report(text: str, code: int = 1) -> int:
    click.echo(readable_line(text), err=True)
    return code
