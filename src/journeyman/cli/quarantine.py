"""`journeyman templates quarantine`: list, show, release, delete, restore."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records import KeptOutKind, Quarantined

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


@click.group(
    cls=asked.DefaultGroup,
    default="list",
    usage="[list] [OPTIONS] | show KEY | release KEY... | delete KEY... | restore KEY...",
    no_args_is_help=False,
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


def _in_short(one: Quarantined) -> str:
    """What a list says of it: of a call that changes a file, the tool and the file."""
    tool = one.text.partition(" ")[0]
    found = _FILE.search(one.text) if one.kind == "call" or tool == "apply_patch" else None
    return shown.one_line(f"{tool} {found[1] or found[2]} …" if found else one.text, 400)


_COLUMNS = (
    Column("key", lambda one: one.key[:_KEY_SHOWN], no_wrap=True),
    Column("state", lambda one: one.state if one.decided_at else "", optional=True),
    Column("kind", lambda one: one.kind, needs=60, no_wrap=True),
    Column("rule", lambda one: one.rule, overflow="fold", max_width=24),
    Column("sessions", lambda one: len(one.sessions) or "template", needs=70, number=True),
    Column("text", _in_short, ratio=1, min_width=16, **shown.CUT),
)


def _show(console: Console, one: Quarantined) -> None:
    ids = [shown.short_id(session) for session in one.sessions]
    by = f" by {one.decided_by}" if one.decided_by else ""
    decided = f"{by}, {shown.moment(one.decided_at)}" if one.decided_at is not None else ""
    facts = {
        "key": one.key,
        "kind": one.kind,
        "rule": one.rule,
        "reason": one.reason,
        "state": f"{one.state}{decided}",
        "sessions": shown.names(ids, _SESSIONS_SHOWN),
        "templates": ", ".join(one.templates),
        "text": one.text,
    }
    shown.facts(console, facts)


def _show_list(console: Console, found: Sequence[Quarantined]) -> None:
    given = click.get_current_context().params
    limit, decided = given["limit"] or _LISTED, given["decided"]
    if not found:
        nothing = "Nothing is in quarantine: no rule kept anything out that waits for a decision."
        if any(given[name] for name in ("rule", "session", "project", "kind")):
            nothing = "Nothing in quarantine fits: `journeyman templates quarantine` shows all."
        elif decided:
            nothing = "Nothing was released or deleted."
        console.print(nothing)
        return
    if given["full"]:
        for one in found[:limit]:
            _show(console, one)
            console.print()
    else:
        console.print(shown.fitting_table(found[:limit], _COLUMNS, console.width), "", sep="\n")
    if len(found) > limit:
        console.print(f"{limit:,} of {len(found):,}; more with --limit.", style="dim")
    for verb in ("show", "restore") if decided else ("show", "release", "delete"):
        said = f"journeyman templates quarantine {verb} {found[0].key[:_KEY_SHOWN]}"
        console.print(Text(said, style="dim"))


def _up_to_limit(found: Sequence[Quarantined]) -> Sequence[Quarantined]:
    return found[: click.get_current_context().params["limit"]]


@asked.command(quarantine, "list", shows=_show_list, tells=_up_to_limit)
@option("--rule RULE", "Only what this rule kept out, or rules that begin so.")
@option("--session ID", "Only what was found in this session.")
@asked.project_option
@option("--kind", "Only this kind.", type=click.Choice(get_args(KeptOutKind)))
@flag("--decided", "What was released or deleted instead.")
@option("-n --limit N", f"How many to show (default {_LISTED}; with --json all).", type=_LIMIT)
@flag("--full", "Show all that is kept of every text.")
def list_(journeyman: Journeyman, *, rule: str | None, **chosen: Any) -> Sequence[Quarantined]:
    """List what waits for a decision, what most sessions have first.

    Examples:
      journeyman templates quarantine list
      journeyman templates quarantine list --rule git.push --project .
      journeyman templates quarantine list --kind pattern --full | less
      journeyman templates quarantine list --decided --json
    """
    if rule is not None:
        known = journeyman.kept_out.rules()
        beginning = f"{rule.rstrip('.')}."
        if known and not any(f"{one}.".startswith(beginning) for one in known):
            said = f"No rule {rule!r} has kept anything out. Rules that have: {', '.join(known)}."
            raise click.UsageError(said)
    if chosen["session"] is not None:
        chosen["session"] = journeyman.sessions.get(chosen["session"]).session.id
    del chosen["limit"], chosen["full"]
    return journeyman.kept_out.list(rule=rule, **chosen)


@asked.command(quarantine, shows=_show)
@click.argument("key", metavar="KEY")
def show(journeyman: Journeyman, *, key: str) -> Quarantined:
    """Show one thing that was kept out: the rule, its reason, where it was found, and the text.

    Examples:
      journeyman templates quarantine show 3f2a9c10
      journeyman templates quarantine show 3f2a9c10 --json
    """
    return journeyman.kept_out.get(key)


def _tell(done: str, _console: Console, found: Sequence[Quarantined]) -> None:
    for one in found:
        click.echo(shown.one_line(f"{done} {one.key[:_KEY_SHOWN]}  {one.rule}  {one.text}", 100))
    if done != "Deleted" and any(one.sessions for one in found):
        click.echo("Now run `journeyman learn`. Until then, what is learned stays as it was.")


_keys = click.argument("keys", nargs=-1, required=True, metavar="KEY...")


def _add_decision(name: str, question: str, about: str) -> None:
    """A command that shows things and asks, and then has the store decide about them."""

    @asked.command(quarantine, name, help=about, shows=partial(_tell, f"{name}d".capitalize()))
    @_keys
    @asked.yes_option
    def _decide(journeyman: Journeyman, *, keys: Sequence[str], yes: bool) -> Sequence[Quarantined]:
        if not yes:
            console = Console(stderr=True, highlight=False)
            for key in keys:
                _show(console, journeyman.kept_out.get(key))
                console.print()
            things = shown.many(len(keys), "thing")
            click.confirm(question.format(things), abort=True, err=True)
        decided: Sequence[Quarantined] = getattr(journeyman.kept_out, name)(keys, by=asked.person())
        return decided


_add_decision(
    "release",
    "Release {}? Agents will be shown this.",
    """Let things be learned after all: a rule was wrong about them.

    The next `journeyman learn` learns from them; until then all stays as it was. `restore` takes
    it back.

    Examples:
      journeyman templates quarantine release 3f2a9c10
      journeyman templates quarantine release 3f2a9c10 81be07d2 --yes
    """,
)
_add_decision(
    "delete",
    "Delete {}? What is deleted stays kept out.",
    """Take things off the list. They stay kept out, and are not listed again.

    `restore` takes it back. To remove all that was learned around them, use `journeyman forget`.

    Examples:
      journeyman templates quarantine delete 3f2a9c10
      journeyman templates quarantine delete 3f2a9c10 81be07d2 --yes
    """,
)


@asked.command(quarantine, shows=partial(_tell, "Restored"))
@_keys
def restore(journeyman: Journeyman, *, keys: Sequence[str]) -> Sequence[Quarantined]:
    """Take a decision back: things are listed again. The next `journeyman learn` keeps them out.

    Examples:
      journeyman templates quarantine restore 3f2a9c10
    """
    return journeyman.kept_out.restore(keys)
