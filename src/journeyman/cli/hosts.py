"""`journeyman hosts`: installs Journeyman into other programs' agents, lists and checks what is
installed, removes it, and reports what it did there. `journeyman doctor` inspects this machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from journeyman import config_file
from journeyman.cli import context, formatting
from journeyman.cli.context import choice, flag
from journeyman.cli.formatting import Column
from journeyman.cli.rate_tables import change, change_interval, interval, percent
from journeyman.facade.finding import Finding
from journeyman.facade.journeyman import Journeyman
from journeyman.plugin.engines import engine_findings
from journeyman.plugin.installation.installer import Installer, Plan
from journeyman.plugin.installation.status import (
    HostStatus,
    host_findings,
    list_hosts,
    steps_after,
)
from journeyman.plugin.installation.targets import PARTS
from journeyman.records.host import HOSTS, Host
from journeyman.text.display import readable

if TYPE_CHECKING:
    from journeyman.plugin.opening_parts import Explanation
    from journeyman.plugin.report import HostReport

_STATES = {
    "installed": "green",
    "not active": "yellow",
    "outdated": "yellow",
    "unreadable": "red",
    "not installed": "dim",
}
_NOT_RANDOM = (
    "Sessions were not assigned at random: other things may explain the difference. "
    "For a fair comparison: journeyman config set hosts.holdout 0.2"
)
_REVIEWS = """
When a session with 15 calls or a correction of yours ends, its agent can review a copy of it.
That is one more request, mostly read from the cache, on your subscription or key, and on one day at
most {:,} tokens. What it drafts is told to no agent before you accept it: journeyman review list
Review your sessions?"""


@click.group()
def hosts() -> None:
    """Install Journeyman into your agents: Hermes, Claude Code, Codex and opencode.

    Sessions of these agents then start with what earlier ones learned, risky calls wait for a
    person, and finished sessions are imported.
    """


def _program(one: HostStatus) -> str:
    return one.version or "found" if one.program else formatting.UNKNOWN


_COLUMNS = (
    Column("name", lambda one: one.name, no_wrap=True),
    Column("program", _program),
    Column("state", lambda one: Text(one.state, _STATES[one.state])),
    Column("parts", lambda one: ", ".join(one.parts)),
    Column("file", lambda one: one.file.replace(f"{Path.home()}/", "~/", 1), overflow="fold"),
)


def _show_hosts(console: Console, listed: Sequence[HostStatus]) -> None:
    """Show every host; what is wrong is said below the table."""
    formatting.print_table(console, listed, _COLUMNS, "")
    for one in listed:
        if one.problem:
            console.print(Text(f"\n{one.name}: {readable(one.problem)}"), soft_wrap=True)
        if one.problem and one.advice:
            console.print(Text(f"→ {one.advice}", "cyan"), soft_wrap=True)


def _show_report(console: Console, reports: "Sequence[HostReport]") -> None:
    """Show what Journeyman did in each host."""
    if not reports:
        console.print("No session of an agent is stored yet. Set one up: journeyman hosts list")
    for one in reports:
        formatting.print_heading(console, one.host)
        side = "held out" if one.is_random else "cold"
        rates = {"warm": one.warm_rate, side: one.cold_rate}
        shown = (
            f"{name} {percent(rate.estimate)} ({interval(rate)}) of {rate.total:,}"
            for name, rate in rates.items()
            if rate.total
        )
        difference = one.difference.note
        if one.difference.estimate is not None:
            points = f"{change(one.difference)} points {change_interval(one.difference)}"
            difference = f"{points}: {one.verdict}"
        each = one.tokens_per_warm_session
        per_session = f", {each:,.0f} per warm session" if each else ""
        held = f"{one.approved:,} approved, {one.blocked:,} blocked"
        failed = f"; the last: {one.last_failure}" if one.last_failure else ""
        fields = {
            "sessions": f"{one.sessions:,}, {one.warm:,} of them warm",
            "errors per call": ", ".join(shown),
            "difference": difference,
            "tokens added": f"{one.tokens_added:,}{per_session}",
            "held calls": f"{held}, {one.prompted:,} asked about by the host",
            "failed hooks": f"{one.failures:,}{failed}",
        }
        formatting.print_fields(console, fields, wrap=True)
        if one.warm and not one.is_random:
            console.print(_NOT_RANDOM, style="dim")


def _show_explanation(console: Console, explained: "Sequence[Explanation]") -> None:
    """Print why sessions started as they did, and what they were given."""
    for one in explained:
        console.print(Text(f"{one.host}  {readable(one.session)}", "bold"))
        console.print(Text(readable(one.explanation)))
        for text in one.texts:
            console.print(Text(f"\n{readable(text)}", "dim"), soft_wrap=True)


_MARKS = {"ok": Text("✓", "green"), "note": Text("!", "yellow"), "problem": Text("✗", "red")}


def _show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print what a check has found, and what to do about it."""
    columns = (
        Column("", lambda finding: _MARKS[finding.status]),
        Column("check", lambda finding: finding.what, no_wrap=True),
        Column("result", _result, overflow="fold"),  # a command that is cut cannot be run
    )
    formatting.print_table(console, findings, columns, "")


def _result(finding: Finding) -> Text:
    advice = f"\n→ {readable(finding.advice)}" if finding.advice else ""
    return Text.assemble(readable(finding.found), (advice, "cyan"))


def _has_problem(findings: Sequence[Finding]) -> bool:
    return any(finding.status == "problem" for finding in findings)


@context.command(render=_show_findings, is_failure=_has_problem, tolerant=True)
def doctor(journeyman: Journeyman) -> Sequence[Finding]:
    """Check this machine: what is installed, what works, and what to fix. Changes nothing.

    Examples:
      journeyman doctor
    """
    installer = Installer(journeyman)
    return [
        *journeyman.diagnose(),
        *engine_findings(installer, journeyman),
        *host_findings(installer),
    ]


_name_argument = click.argument("name", type=click.Choice(HOSTS), metavar="NAME")
_print_option = flag("--print", "Only show what would change.", dest="only_print")


def _is_agreed(plan: Plan, question: str, *, only_print: bool, yes: bool) -> bool:
    """Show a change, and return whether to make it."""
    formatting.print_diff(formatting.console(), plan.change.diff.splitlines())
    if only_print:
        click.echo("Nothing was changed.")
        return False
    if not yes:
        context.require_terminal("--print")
    return yes or click.confirm(question, abort=True, err=True)


@context.command(hosts, "install", has_json=False)
@_name_argument
@_print_option
@context.yes_option
@flag("--no-opening", "Leave out openings and hints.")
@flag("--no-gate", "Leave out the gate: no call waits for a person.")
@flag("--no-import", "Leave out importing sessions.")
@choice("--review", "Review sessions when they end, or not (default: ask).", ("off", "propose"))
def install(
    journeyman: Journeyman,
    *,
    name: Host,
    only_print: bool,
    yes: bool,
    review: str | None,
    **left_out: bool,
) -> None:
    """Install Journeyman into the agent NAME: hermes, claude-code, codex or opencode. Shows the
    change and asks before it is made; the file as it was is kept, and `journeyman hosts remove`
    restores it. Run it again after an update of Journeyman, or when settings have changed.

    Examples:
      journeyman hosts install claude-code
      journeyman hosts install codex --no-gate --yes --review propose
    """
    installer = Installer(journeyman)
    plan = installer.plan(name, tuple(part for part in PARTS if not left_out[f"no_{part}"]))
    file = plan.change.path
    if not installer.is_needed(plan):
        click.echo(f"Nothing to do: {file} is up to date.")
    elif _is_agreed(plan, f"Write this to {file}?", only_print=only_print, yes=yes):
        installer.install(plan)
        click.echo(f"Written to {file}. To undo this: journeyman hosts remove {name}")
        for step in steps_after(installer, name):
            click.echo(f"→ {readable(step)}")
        settings = journeyman.settings.hosts
        is_open = settings.review == "off" and "import" in plan.parts and not (review or yes)
        if is_open and click.confirm(_REVIEWS.format(settings.review_tokens), err=True):
            review = "propose"
    if review and not only_print:
        config_file.set_value(journeyman.configuration.file, "hosts.review", review)
        click.echo(f"hosts.review is {review}. To change it: journeyman config set hosts.review …")


@context.command(hosts, "remove", has_json=False)
@_name_argument
@_print_option
@context.yes_option
def remove(journeyman: Journeyman, *, name: str, only_print: bool, yes: bool) -> None:
    """Take Journeyman out of the agent NAME. The file becomes what it was before; if it was changed
    since, only Journeyman's entries are removed. The agent's token for confirmations is revoked.

    Examples:
      journeyman hosts remove codex --print
    """
    installer = Installer(journeyman)
    plan = installer.plan_removal(name)
    file = plan.change.path
    if not plan.is_installed:
        click.echo(f"Nothing to do: {file} has nothing of Journeyman.")
    elif _is_agreed(plan, f"Change {file} like this?", only_print=only_print, yes=yes):
        for note in installer.remove(plan):
            click.echo(f"Note: {readable(note)}", err=True)
        click.echo(f"Removed from {file}. Sessions that are running keep it until they end.")


@context.command(hosts, "list", render=_show_hosts)
def list_(journeyman: Journeyman) -> list[HostStatus]:
    """List the agents on this machine: the version of each program, whether Journeyman is installed
    in it and active, which parts, and what is out of date.

    Examples:
      journeyman hosts list
    """
    return list_hosts(Installer(journeyman))


@context.command(
    hosts,
    "check",
    render=_show_findings,
    is_failure=_has_problem,
)
@_name_argument
def check(journeyman: Journeyman, *, name: Host) -> Sequence[Finding]:
    """Check Journeyman in the agent NAME: fires test events through the agent's own configuration,
    and shows what answered, how fast, and what to do if something is wrong.

    Examples:
      journeyman hosts check claude-code
    """
    # Imported here because the other commands do not need them.
    from journeyman.plugin.installation import check as checks  # noqa: PLC0415

    with formatting.spinner(f"Checking {name}…"):
        return checks.check(Installer(journeyman), journeyman, name)


@context.command(hosts, "report", render=_show_report)
@context.since_option
def report(journeyman: Journeyman, *, since: float | None) -> "Sequence[HostReport]":
    """Show what Journeyman did in each agent: sessions and how many started warm, errors per call
    of warm and cold sessions, tokens added, calls that people approved or that were blocked, and
    hooks that failed.

    Examples:
      journeyman hosts report
    """
    from journeyman.plugin.report import report as make_report  # noqa: PLC0415 - heavy

    return make_report(journeyman, since=since or 0.0)


@context.command(hosts, "explain", render=_show_explanation, is_paged=True)
@click.argument("session")
def explain(journeyman: Journeyman, *, session: str) -> "Sequence[Explanation]":
    """Show why an agent's session started as it did, and what was added to it. SESSION is the
    session's id in the agent, or the beginning of it.

    Examples:
      journeyman hosts explain 0f3a91
    """
    from journeyman.plugin.opening_parts import explain_session  # noqa: PLC0415 - heavy

    return explain_session(journeyman, session)
