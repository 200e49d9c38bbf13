"""`journeyman templates quarantine`: list, show, release, delete, restore."""

import getpass
import re
from collections.abc import Sequence
from typing import get_args

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.journeyman import Journeyman
from journeyman.records import KeptOutKind, Quarantined

_KIND = click.Choice(get_args(KeptOutKind))
_LIMIT = asked.WholeNumber(1, 1_000_000_000)
_LISTED = 30
_KEY_SHOWN = 8
_SESSIONS_SHOWN = 10
# The file that a call changes. The arguments may be cut, so they are not read as JSON.
_FILE = re.compile(
    r'\*\*\* (?:Add|Update|Delete) File: ([^\\\n"]+)'
    r'|"(?:file_?path|notebook_path|path|target_file)"\s*:\s*"((?:[^"\\]|\\.)+)"',
    re.IGNORECASE,
)


class _ListFirst(click.Group):
    """A group that lists, unless it is told to do something else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if known else ["list", *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        actions = "show KEY | release KEY... | delete KEY... | restore KEY..."
        formatter.write_usage(ctx.command_path, f"[list] [OPTIONS] | {actions}")


@click.group(
    cls=_ListFirst,
    epilog="""\b
Examples:
  journeyman templates quarantine
  journeyman templates quarantine --rule git
  journeyman templates quarantine show 3f2a9c10
  journeyman templates quarantine release 3f2a9c10""",
)
def quarantine() -> None:
    """Look at what was kept out of what is learned, and decide about it.

    Kept out is what a person would have to confirm, such as a forced push, and text that reads like
    an instruction to its reader. It is in no opening, playbook or template. Without a command,
    everything that waits for a decision is listed.
    """


@quarantine.command(
    "list",
    epilog="""\b
Examples:
  journeyman templates quarantine list
  journeyman templates quarantine list --rule git.push --project .
  journeyman templates quarantine list --kind pattern --full | less
  journeyman templates quarantine list --decided --json""",
)
@click.option(
    "--rule", metavar="RULE", help="Only what this rule kept out, or rules that begin so."
)
@click.option("--session", metavar="ID", help="Only what was found in this session.")
@asked.project_option
@click.option("--kind", type=_KIND, help="Only this kind.")
@click.option("--decided", is_flag=True, help="What was released or deleted instead.")
@click.option(
    "-n",
    "--limit",
    type=_LIMIT,
    metavar="N",
    help=f"How many to show (default {_LISTED}; with --json all).",
)
@click.option("--full", is_flag=True, help="Show all that is kept of every text.")
@asked.json_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    rule: str | None,
    session: str | None,
    project: str | None,
    kind: KeptOutKind | None,
    decided: bool,
    limit: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """List what waits for a decision, what most sessions have first."""
    journeyman = asked.opened(ctx)
    if rule is not None:
        _check_rule(journeyman, rule)
    found = journeyman.kept_out.list(
        rule=rule,
        kind=kind,
        session=None if session is None else journeyman.sessions.get(session).session.id,
        project=project,
        decided=decided,
    )
    if as_json:
        asked.print_json(found[:limit])
        return
    limit = limit or _LISTED
    console = shown.console()
    if not found:
        console.print(_nothing(chosen=bool(rule or session or project or kind), decided=decided))
        return
    if full:
        for one in found[:limit]:
            _show(console, one)
            console.print()
    else:
        console.print(_table(found[:limit], console.width, decided=decided))
    _show_next(console, found, limit, decided=decided)


def _check_rule(journeyman: Journeyman, rule: str) -> None:
    known = journeyman.kept_out.rules()
    beginning = f"{rule.rstrip('.')}."
    if known and not any(f"{one}.".startswith(beginning) for one in known):
        raise click.UsageError(
            f"No rule {rule!r} has kept anything out. Rules that have: {', '.join(known)}."
        )


def _nothing(*, chosen: bool, decided: bool) -> str:
    if chosen:
        return "Nothing in quarantine fits: `journeyman templates quarantine` shows all."
    if decided:
        return "Nothing was released or deleted."
    return "Nothing is in quarantine: no rule kept anything out that waits for a decision."


def _show_next(
    console: Console, found: Sequence[Quarantined], limit: int, *, decided: bool
) -> None:
    console.print()
    if len(found) > limit:
        console.print(f"{limit:,} of {len(found):,}; more with --limit.", style="dim")
    key = found[0].key[:_KEY_SHOWN]
    verbs = ("show", "restore") if decided else ("show", "release", "delete")
    for verb in verbs:
        console.print(Text(f"journeyman templates quarantine {verb} {key}", style="dim"))


# The columns of the list, and how wide a window has to be to show each.
_COLUMNS = (("key", 0), ("state", 0), ("kind", 60), ("rule", 0), ("sessions", 70), ("text", 0))


def _table(found: Sequence[Quarantined], width: int, *, decided: bool) -> Table:
    names = [name for name, needed in _COLUMNS if width >= needed and (decided or name != "state")]
    table = shown.table(*names, numbers=("sessions",))
    columns = dict(zip(names, table.columns, strict=True))
    for name in ("key", "kind"):
        if name in columns:
            columns[name].no_wrap = True
    columns["rule"].overflow, columns["rule"].max_width = "fold", 24
    text = columns["text"]
    text.no_wrap, text.overflow, text.ratio, text.min_width = True, "ellipsis", 1, 16
    table.expand = True
    for one in found:
        cells = {
            "key": Text(one.key[:_KEY_SHOWN]),
            "state": Text(one.state),
            "kind": Text(one.kind),
            "rule": shown.cell(one.rule),
            "sessions": Text(shown.count(len(one.sessions)) if one.sessions else "template"),
            "text": Text(shown.one_line(_in_short(one), width)),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def _in_short(one: Quarantined) -> str:
    """What a list says of it: of a call that changes a file, the tool and the file."""
    tool = one.text.partition(" ")[0]
    found = _FILE.search(one.text) if one.kind == "call" or tool == "apply_patch" else None
    return f"{tool} {found[1] or found[2]} …" if found else one.text


@quarantine.command(
    epilog="""\b
Examples:
  journeyman templates quarantine show 3f2a9c10
  journeyman templates quarantine show 3f2a9c10 --json"""
)
@click.argument("key", metavar="KEY")
@asked.json_option
@click.pass_context
def show(ctx: click.Context, key: str, *, as_json: bool) -> None:
    """Show one thing that was kept out: the rule, its reason, where it was found, and the text."""
    found = asked.opened(ctx).kept_out.get(key)
    if as_json:
        asked.print_json(found)
    else:
        _show(shown.console(), found)


def _show(console: Console, one: Quarantined) -> None:
    ids = [shown.short_id(session) for session in one.sessions]
    more = len(ids) - _SESSIONS_SHOWN
    sessions = ", ".join(ids[:_SESSIONS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    state: str = one.state
    if one.decided_at is not None:
        by = f" by {one.decided_by}" if one.decided_by else ""
        state = f"{one.state}{by}, {shown.moment(one.decided_at)}"
    facts = {
        "key": one.key,
        "kind": one.kind,
        "rule": one.rule,
        "reason": one.reason,
        "state": state,
        "sessions": sessions,
        "templates": ", ".join(one.templates),
        "text": one.text.replace("\n", "\n" + " " * 10),
    }
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"{name:10s}", "dim"), shown.plain(value)), soft_wrap=True)


@quarantine.command(
    epilog="""\b
Examples:
  journeyman templates quarantine release 3f2a9c10
  journeyman templates quarantine release 3f2a9c10 81be07d2 --yes"""
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asked.json_option
@click.pass_context
def release(ctx: click.Context, keys: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Let things be learned after all: a rule was wrong about them.

    The next `journeyman learn` learns from them; until then all stays as it was. `restore` takes
    it back.
    """
    journeyman = asked.opened(ctx)
    if not yes:
        _confirm(journeyman, keys, "Release {}? Agents will be shown this.")
    released = journeyman.kept_out.release(keys, by=_user())
    _tell(released, "Released", as_json=as_json)


@quarantine.command(
    epilog="""\b
Examples:
  journeyman templates quarantine delete 3f2a9c10
  journeyman templates quarantine delete 3f2a9c10 81be07d2 --yes"""
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asked.json_option
@click.pass_context
def delete(ctx: click.Context, keys: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Take things off the list. They stay kept out, and are not listed again.

    `restore` takes it back. To remove all that was learned around them, use `journeyman forget`.
    """
    journeyman = asked.opened(ctx)
    if not yes:
        _confirm(journeyman, keys, "Delete {}? What is deleted stays kept out.")
    deleted = journeyman.kept_out.delete(keys, by=_user())
    _tell(deleted, "Deleted", as_json=as_json)


@quarantine.command(
    epilog="""\b
Examples:
  journeyman templates quarantine restore 3f2a9c10"""
)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@asked.json_option
@click.pass_context
def restore(ctx: click.Context, keys: tuple[str, ...], *, as_json: bool) -> None:
    """Take a decision back: things are listed again. The next `journeyman learn` keeps them out."""
    restored = asked.opened(ctx).kept_out.restore(keys)
    _tell(restored, "Restored", as_json=as_json)


def _confirm(journeyman: Journeyman, keys: Sequence[str], question: str) -> None:
    console = Console(stderr=True, highlight=False)
    found = [journeyman.kept_out.get(key) for key in keys]
    for one in found:
        _show(console, one)
        console.print()
    click.confirm(question.format(shown.many(len(found), "thing")), abort=True, err=True)


def _tell(found: Sequence[Quarantined], done: str, *, as_json: bool) -> None:
    if as_json:
        asked.print_json(found)
        return
    for one in found:
        click.echo(shown.one_line(f"{done} {one.key[:_KEY_SHOWN]}  {one.rule}  {one.text}", 100))
    if done != "Deleted" and any(one.sessions for one in found):
        click.echo("Now run `journeyman learn`. Until then, what is learned stays as it was.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return ""
