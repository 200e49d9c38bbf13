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
from journeyman.cli.context import flag
from journeyman.cli.doctor import show_findings
from journeyman.cli.host_tables import show_explanation, show_hosts, show_report
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts.installation.file_change import refuse_read_only
from journeyman.hosts.installation.installer import NAMES, Installer, Plan
from journeyman.hosts.installation.programs import SERVICE
from journeyman.hosts.installation.status import (
    HostStatus,
    list_hosts,
    notes_before,
    steps_after,
)
from journeyman.hosts.installation.targets import PARTS
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.hosts.explanation import Explanation
    from journeyman.hosts.report import HostReport

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


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


def _name_argument(*, required: bool = True) -> Callable[..., Any]:
    return click.argument("name", type=click.Choice(NAMES), metavar="NAME", required=required)


def _carry_out(
    plan: Plan,
    change: HostChange,
    question: str,
    work: Callable[[], HostChange],
    *,
    only_print: bool,
    yes: bool,
    as_json: bool,
) -> HostChange:
    """Show a change, ask, and make it, unless it is not needed or only shown."""
    if change.is_needed and not as_json:
        for line in change.diff.splitlines():
            style = "bold" if line.startswith(("+++", "---")) else _STYLES.get(line[:1], "")
            formatting.console().print(Text(readable(line), style), soft_wrap=True)
    if not as_json:
        _print_notes(change.notes)
    if only_print or not change.is_needed:
        return change
    if plan.change.is_needed:
        refuse_read_only(plan.change)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(
            "This needs confirmation, and standard input is not a terminal. Pass --yes to go "
            "ahead, or --print to see what would change."
        )
    if not yes:
        click.confirm(question, abort=True, err=True)
    return msgspec.structs.replace(work(), is_written=True)


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"Note: {readable(note)}", err=True)


def _finish(change: HostChange, written: str, unneeded: str, *, as_json: bool) -> None:
    """Say what was done."""
    if as_json:
        context.print_json(change)
        return
    unwritten = "Nothing was changed." if change.is_needed else f"Nothing to do: {unneeded}."
    click.echo(written if change.is_written else unwritten)
    for step in change.next:
        click.echo(f"→ {readable(step)}")


def _described(plan: Plan, *, notes: Sequence[str] = (), is_needed: bool) -> HostChange:
    return HostChange(
        name=plan.target.name,
        file=str(plan.change.path),
        parts=plan.parts,
        diff=plan.change.diff,
        is_needed=is_needed,
        is_written=False,
        notes=tuple(notes),
        next=(),
    )


@context.command(hosts, "install")
@_name_argument(required=False)
@flag("--print", "Only show what would change.", dest="only_print")
@context.yes_option
@flag("--no-opening", "Leave out openings and hints.")
@flag("--no-gate", "Leave out the gate: no call waits for a person.")
@flag("--no-import", "Leave out importing sessions.")
def install(
    journeyman: Journeyman,
    *,
    name: str | None,
    only_print: bool,
    yes: bool,
    as_json: bool,
    **left_out: bool,
) -> None:
    """Install Journeyman into the agent NAME: hermes, claude-code, codex or opencode. Shows the
    change and asks before it is made; the file as it was is kept, and `journeyman hosts remove`
    restores it. Run it again after an update of Journeyman, or when settings have changed. Without
    NAME, it lists the agents on this machine.

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
            show_hosts(formatting.console(), listed)
        return
    plan = installer.plan(name, parts)
    notes = notes_before(installer, journeyman.configuration, plan)
    change = _described(plan, notes=notes, is_needed=installer.is_needed(plan))

    def work() -> HostChange:
        installer.install(plan)
        return msgspec.structs.replace(change, next=tuple(steps_after(installer, name)))

    done = _carry_out(
        plan,
        change,
        f"Write this to {change.file}?",
        work,
        only_print=only_print,
        yes=yes,
        as_json=as_json,
    )
    written = f"Written to {change.file}. To undo this: journeyman hosts remove {name}"
    _finish(done, written, f"{change.file} is up to date", as_json=as_json)


@context.command(hosts, "remove")
@_name_argument()
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

    def work() -> HostChange:
        notes = installer.remove(plan)
        if not as_json:
            _print_notes(notes)
        return msgspec.structs.replace(change, notes=notes)

    done = _carry_out(
        plan,
        change,
        f"Change {change.file} like this?",
        work,
        only_print=only_print,
        yes=yes,
        as_json=as_json,
    )
    written = f"Removed from {change.file}."
    if name != SERVICE:
        written += " Sessions that are running keep it until they end."
    _finish(done, written, f"{change.file} has nothing of Journeyman", as_json=as_json)


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
@_name_argument()
def check(journeyman: Journeyman, *, name: str) -> Sequence[Finding]:
    """Check Journeyman in the agent NAME, or the service: fires test events through the agent's own
    configuration, and shows what answered, how fast, and what to do if something is wrong.

    Examples:
      journeyman hosts check claude-code
      journeyman hosts check service --json
    """
    # Imported here because the other commands do not need them.
    from journeyman.hosts.installation import check as checks  # noqa: PLC0415

    with formatting.spinner(f"Checking {name}…"):
        return checks.check(Installer(journeyman), journeyman, name)


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
