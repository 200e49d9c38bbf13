"""The command line. Commands are loaded when they are called, so that help comes at once."""

import atexit
import io
import logging
import signal
import sys
from importlib import import_module

import click

from journeyman.records.errors import BadSetting, JourneymanError, UnknownReader, follows_interrupt
from journeyman.version import __version__

# Where each command is, and what the list of commands says of it.
_COMMANDS = {
    "tour": ("tour:tour", "The whole story on this machine in about a minute."),
    "doctor": ("doctor:doctor", "What is found, what works, what to fix."),
    "import": ("import_logs:import_", "Import the sessions that agents have recorded."),
    "sessions": ("sessions:sessions", "List, show, search, export and delete sessions."),
    "judge": ("judge:judge", "Judge tool calls from a file, line by line."),
    "profile": ("profile:profile_command", "How reliable the calls of sessions were."),
    "compression": ("compare:compression", "Did context compression preserve proficiency?"),
    "compare": ("compare:compare", "Warm sessions against cold ones."),
    "learn": ("import_logs:learn", "Learn which calls work, from the sessions that are new."),
    "forget": ("forget:forget", "Remove what was learned, and do not learn it again."),
    "playbook": ("playbook:playbook", "What holds in a project: commands, mistakes, files."),
    "templates": ("templates:templates", "Build, show and exchange sets of examples."),
    "open": ("opening:open_", "What a new session should start with."),
    "foresight": ("foresight:foresight", "How much of what sessions needed, openings foresee."),
    "run": ("run:run", "Have an agent do a task, started warm."),
    "undo": ("undo:undo", "Put back what a run changed in its folder."),
    "review": ("review:review", "Keep what a session teaches; show and undo that."),
    "usage": ("usage:usage", "Tokens and cost of sessions."),
    "confirm": ("confirming:confirm", "Hold risky actions until a person decides."),
    "jobs": ("jobs:jobs", "Agents on a schedule."),
    "mcp": ("mcp:mcp", "Serve MCP, for the models of other programs."),
}

_WRONG_USAGE = (BadSetting, UnknownReader)


class _LazyGroup(click.Group):
    """A group that knows its commands by name and loads one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(f"journeyman.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in _COMMANDS.items()])


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: journeyman tour",
)
@click.option(
    "--home",
    envvar="JOURNEYMAN_HOME",
    metavar="FOLDER",
    help="Where Journeyman keeps its data (default ~/.journeyman; variable JOURNEYMAN_HOME).",
)
@click.option(
    "--database",
    metavar="URL",
    help="The database, sqlite:///… or postgresql://… (variable JOURNEYMAN_DATABASE).",
)
@click.version_option(__version__, prog_name="journeyman")
@click.pass_context
def command_line(ctx: click.Context, home: str | None, database: str | None) -> None:
    """Journeyman gives tool-using agents experience.

    It reads the sessions that your agents (Hermes, Claude Code, Codex and others) have recorded,
    judges every tool call in them, learns which calls work, and starts the next session with the
    few examples that fit its task.
    """
    ctx.obj = {"home": home, "database": database}


def main() -> None:
    """Run the command line; errors that have an explanation are shown as that."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows another, not an error.
            stream.reconfigure(errors="replace")
    # What is logged is for programs that set up logging; people are told in other ways. SQLAlchemy
    # would show a traceback when Ctrl-C hits the closing of a connection.
    for name in ("journeyman", "sqlalchemy"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    atexit.unregister(_ignore_interrupts)
    atexit.register(_ignore_interrupts)
    try:
        # Not standalone, so that errors can be told our way; then `ctx.exit(1)` comes back as 1.
        code = command_line.main(prog_name="journeyman", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as stop:
        is_no = isinstance(stop, click.Abort) and not stop.__cause__
        sys.exit(_told("Not confirmed: nothing was done." if is_no else _INTERRUPTED))
    except JourneymanError as error:
        sys.exit(_told(f"journeyman: {error}", 2 if isinstance(error, _WRONG_USAGE) else 1))
    except BrokenPipeError:
        # The reader of a pipe has seen enough; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.exit(_told(f"journeyman: {error}."))
    except Exception as error:
        if follows_interrupt(error):
            sys.exit(_told(_INTERRUPTED))
        if sys.flags.dev_mode:
            raise
        logging.getLogger(__name__).debug("unexpected", exc_info=True)
        unexpected = f"journeyman: this should not happen: {type(error).__name__}: {error}."
        sys.exit(_told(f"{unexpected} `python -X dev -m journeyman …` shows where."))


_INTERRUPTED = "Interrupted. Nothing was left half done; run the command again."


def _ignore_interrupts() -> None:
    """The command has finished and reported: a Ctrl-C while Python shuts down must not turn
    that into a failure.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _told(text: str, code: int = 1) -> int:
    click.echo(text, err=True)
    return code
