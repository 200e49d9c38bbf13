"""`journeyman hosts`: installs Journeyman into other programs' agents, lists and checks what is
installed, removes it, and reports what it did there.
"""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.doctor import show_findings
from journeyman.cli.host_tables import show_choices, show_explanation, show_hosts, show_report
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.installation.file_change import refuse_read_only
from journeyman.hosts.installation.installer import NAMES, Installer, Plan
from journeyman.hosts.installation.status import HostStatus, list_hosts, notes_before
from journeyman.hosts.installation.steps import steps_after
from journeyman.hosts.installation.targets import PARTS
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.hosts.explanation import Explanation
    from journeyman.hosts.installation.service_unit import Manager
    from journeyman.hosts.report import HostReport

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_SHOWN_LINES = 60


class HostChange(Struct, frozen=True, kw_only=True):
    """What an installation or a removal changed, or would change."""

    name: str
    file: str
    parts: tuple[str, ...]
    diff: str
    is_needed: bool
    is_written: bool
    notes: tuple[str, ...]
    next: tuple[str, ...]


@click.group()
def hosts() -> None:
    """Install Journeyman into your agents: Hermes, Claude Code, Codex and opencode.

    Sessions of these agents then start with what earlier ones learned, risky calls wait for a
    person, and finished sessions are imported.
    """


def _name_argument(
    function: Callable[..., Any] | None = None, *, is_optional: bool = False
) -> Callable[..., Any]:
    name = click.argument(
        "name", type=click.Choice(NAMES), metavar="NAME", required=not is_optional
    )
    return name if function is None else name(function)


def _print_diff(diff: str, *, is_whole: bool) -> None:
    """Print a diff, or the beginning of a long one."""
    console = formatting.console()
    lines = diff.splitlines()
    shown = lines if is_whole or len(lines) < 2 * _SHOWN_LINES else lines[:_SHOWN_LINES]
    for line in shown:
        style = "bold" if line.startswith(("+++", "---")) else _STYLES.get(line[:1], "")
        console.print(Text(readable(line), style), soft_wrap=True)
    formatting.print_remainder(console, len(lines), len(shown), " (--print shows all)", noun="line")


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"Note: {readable(note)}", err=True)


def _agree(question: str, *, yes: bool) -> None:
    """Ask for consent, unless it was given. Raise UsageError where no one can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "This needs confirmation, and standard input is not a terminal. Pass --yes to go "
            "ahead, or --print to see what would change."
        )
    click.confirm(question, abort=True, err=True)


def _finish(change: HostChange, message: str, *, as_json: bool) -> None:
    if as_json:
        context.print_json(change)
        return
    click.echo(message)
    for step in change.next:
        click.echo(f"→ {readable(step)}")


def _described(plan: Plan, *, notes: Sequence[str] = (), is_needed: bool = True) -> HostChange:
    return HostChange(
        name=plan.target.name,
        file=str(plan.change.path),
        parts=plan.parts if plan.target.name in NAMES[:-1] else (),
        diff=plan.change.diff,
        is_needed=is_needed,
        is_written=False,
        notes=tuple(notes),
        next=(),
    )


@context.command(hosts, "install")
@_name_argument(is_optional=True)
@flag("--print", "Only show what would change.", dest="only_print")
@context.yes_option
@flag("--no-opening", "Leave out openings and hints.")
@flag("--no-gate", "Leave out the gate: no call waits for a person.")
@flag("--no-import", "Leave out importing sessions.")
@option(
    "--manager",
    "For the service: systemd or launchd.",
    type=click.Choice(["systemd", "launchd"]),
    show_default="that of this system",
)
def install(
    journeyman: Journeyman,
    *,
    name: str | None,
    only_print: bool,
    yes: bool,
    manager: "Manager | None",
    as_json: bool,
    **left_out: bool,
) -> None:
    """Install Journeyman into the agent NAME: hermes, claude-code, codex or opencode. Shows the
    change and asks before it is made; the file as it was is kept, and `journeyman hosts remove`
    restores it. Run it again after an update of Journeyman, or when settings have changed. Without
    NAME, it lists the agents on this machine and the command for each.

    `service` instead of an agent writes a systemd user unit or a launchd agent that keeps
    `journeyman serve` running, and shows the command that enables it.

    Examples:
      journeyman hosts install
      journeyman hosts install claude-code --print
      journeyman hosts install claude-code
      journeyman hosts install codex --no-gate --yes
      journeyman hosts install service
    """
    parts = tuple(part for part in PARTS if not left_out[f"no_{part}"])
    installer = Installer(journeyman)
    if name is None:
        listed = list_hosts(installer)
        if as_json:
            context.print_json(listed)
        else:
            show_choices(formatting.console(), listed)
        return
    plan = installer.plan(name, parts, manager)
    notes = notes_before(installer, journeyman.configuration, plan)
    is_needed = installer.is_needed(plan)
    change = _described(plan, notes=notes, is_needed=is_needed)
    if not as_json:
        if is_needed and change.diff:
            _print_diff(change.diff, is_whole=only_print)
        _print_notes(notes)
    if only_print or not is_needed:
        message = "Nothing was changed."
        if not is_needed:
            message = f"Nothing to do: {change.file} is up to date."
        _finish(change, message, as_json=as_json)
        return
    if plan.change.is_needed:
        refuse_read_only(plan.change)
    _agree(f"Write this to {change.file}?", yes=yes)
    installer.install(plan)
    steps = tuple(map(str, steps_after(installer, name)))
    done = msgspec.structs.replace(change, is_written=True, next=steps)
    undo = f"To undo this: journeyman hosts remove {name}"
    _finish(done, f"Written to {change.file}. {undo}", as_json=as_json)


@context.command(hosts, "remove")
@_name_argument
@flag("--print", "Only show what would change.", dest="only_print")
@context.yes_option
def remove(
    journeyman: Journeyman, *, name: str, only_print: bool, yes: bool, as_json: bool
) -> None:
    """Take Journeyman out of the agent NAME, or remove the service. The file becomes what it was
    before; if it was changed since, only Journeyman's entries are removed. The agent's token for
    confirmations is revoked.

    Examples:
      journeyman hosts remove claude-code
      journeyman hosts remove codex --print
      journeyman hosts remove service --yes
    """
    installer = Installer(journeyman)
    plan = installer.plan_removal(name)
    change = _described(plan, is_needed=plan.is_installed)
    if not as_json and change.diff:
        _print_diff(change.diff, is_whole=only_print)
    if only_print or not plan.is_installed:
        message = "Nothing was changed."
        if not plan.is_installed:
            message = f"Nothing to do: {change.file} has nothing of Journeyman."
        _finish(change, message, as_json=as_json)
        return
    if plan.change.is_needed:
        refuse_read_only(plan.change)
    _agree(f"Change {change.file} like this?", yes=yes)
    notes = installer.remove(plan)
    done = msgspec.structs.replace(change, is_written=True, notes=notes)
    if not as_json:
        _print_notes(notes)
    message = f"Removed from {change.file}."
    if name != NAMES[-1]:
        message += " Sessions that are running keep it until they end."
    _finish(done, message, as_json=as_json)


@context.command(hosts, "list", render=show_hosts)
def list_(journeyman: Journeyman) -> list[HostStatus]:
    """List the agents on this machine: the version of each program, whether Journeyman is installed
    in it and active, which parts, and what is out of date. The last line is the service, which
    keeps `journeyman serve` running, and the process of `journeyman serve`, however it was started.

    Examples:
      journeyman hosts list
      journeyman hosts list --json
    """
    return list_hosts(Installer(journeyman))


@context.command(
    hosts,
    "check",
    render=show_findings,
    is_failure=lambda findings: any(finding.status == "problem" for finding in findings),
)
@_name_argument
@flag("--real", "Also run the program once, with a stand-in for its model on this machine.")
@option("--task TEXT", "Task of the real run.", default="Run the tests.")
def check(journeyman: Journeyman, *, name: str, real: bool, task: str) -> Sequence[Finding]:
    """Check Journeyman in the agent NAME, or the service: fires test events through the agent's own
    configuration, and shows what answered, how fast, and what to do if something is wrong.

    --real runs the agent's program itself, with a configuration of its own and an empty project
    that counts as the current one. No model is asked and nothing of it is stored; it shows what
    would arrive at the model.

    Examples:
      journeyman hosts check claude-code
      journeyman hosts check codex --real --task "Fix the failing test"
      journeyman hosts check service --json
    """
    # Imported here because the other commands do not need them.
    from journeyman.hosts.installation import check as checks  # noqa: PLC0415

    installer = Installer(journeyman)
    with formatting.spinner(f"Checking {name}…"):
        return checks.check(installer, journeyman, name, task if real else "")


@context.command(hosts, "report", render=show_report)
@context.since_option
def report(journeyman: Journeyman, *, since: float | None) -> "Sequence[HostReport]":
    """Show what Journeyman did in each agent: sessions and how many started warm, errors per call
    of warm and cold sessions, tokens added, calls that people approved or that were blocked, and
    hooks that failed. The time to answer is that of the service; for a hook, about 15 ms for
    starting a shell and Python come on top.

    Examples:
      journeyman hosts report
      journeyman hosts report --since 7d --json
    """
    from journeyman.hosts.report import report as make_report  # noqa: PLC0415 - heavy

    return make_report(journeyman, since=since or 0.0)


@context.command(hosts, "explain", render=show_explanation, is_paged=True)
@click.argument("session")
def explain(journeyman: Journeyman, *, session: str) -> "Sequence[Explanation]":
    """Show why an agent's session started as it did, and what was added to it. SESSION is the
    session's id in the agent, or the beginning of it.

    Examples:
      journeyman hosts explain 0f3a91
      journeyman hosts explain 0f3a91 --json
    """
    from journeyman.hosts.explanation import explain_session  # noqa: PLC0415 - heavy

    return explain_session(journeyman, session)
