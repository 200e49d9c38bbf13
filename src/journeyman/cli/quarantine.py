"""`journeyman templates quarantine`: list, show, release, restore."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import Quarantined

_KEY_LENGTH = 8
_MAX_SESSIONS = 10


@click.group(
    cls=context.DefaultGroup,
    default="list",
    usage="[list] [OPTIONS] | show KEY | release KEY... | restore KEY...",
    no_args_is_help=False,
)
def quarantine() -> None:
    """List what was excluded from learning, and decide about it.

    Excluded are actions that a person would have to confirm, such as a forced push, and text that
    reads like an instruction. They are in no opening, playbook or template. Without a command,
    lists everything that waits for a decision.
    """


_COLUMNS = (
    Column("key", lambda item: item.key[:_KEY_LENGTH], no_wrap=True),
    Column("state", lambda item: item.state if item.decided_at else "", optional=True),
    Column("kind", lambda item: item.kind, min_terminal_width=60, no_wrap=True),
    Column("rule", lambda item: item.rule, overflow="fold", max_width=24),
    Column("sessions", lambda item: len(item.sessions), min_terminal_width=70, numeric=True),
    Column(
        "text",
        lambda item: formatting.one_line(item.text, 400),
        ratio=1,
        min_width=16,
        **formatting.TRUNCATED,
    ),
)


def _show(console: Console, item: Quarantined) -> None:
    decided = ""
    if item.decided_at is not None:
        decided = f" by {item.decided_by}, {formatting.local_time(item.decided_at)}"
    ids = list(context.short_ids(item.sessions).values())
    fields = {name: getattr(item, name) for name in ("key", "kind", "rule", "reason", "state")}
    fields["state"] += decided
    fields["sessions"] = formatting.join_names(ids, _MAX_SESSIONS)
    formatting.print_fields(console, fields | {"text": item.text})


def _show_list(console: Console, items: Sequence[Quarantined]) -> None:
    options = click.get_current_context().params
    if not items:
        is_filtered = any(options[name] for name in ("rule", "project", "decided"))
        empty = "Quarantine is empty: nothing waits for a decision."
        console.print("Nothing in quarantine matches." if is_filtered else empty)
        return
    console.print(formatting.fit_table(items, _COLUMNS, console.width), "", sep="\n")
    for verb in ("show", "restore" if options["decided"] else "release"):
        hint = f"journeyman templates quarantine {verb} {items[0].key[:_KEY_LENGTH]}"
        console.print(Text(hint, style="dim"))


@context.command(quarantine, "list", render=_show_list, is_paged=True)
@option("--rule RULE", "Only items of this rule, or of rules that begin with it.")
@context.project_option
@flag("--decided", "List released items instead.")
def list_(journeyman: Journeyman, **filters: Any) -> Sequence[Quarantined]:
    """List items that wait for a decision, those found in most sessions first.

    Examples:
      journeyman templates quarantine list
      journeyman templates quarantine list --rule git.push --project .
    """
    return journeyman.kept_out.list(**filters)


@context.command(quarantine, render=_show, is_paged=True)
@click.argument("key", metavar="KEY")
def show(journeyman: Journeyman, *, key: str) -> Quarantined:
    """Show one item: the rule, its reason, where it was found, and the text.

    Examples:
      journeyman templates quarantine show 3f2a9c10
    """
    return journeyman.kept_out.get(key)


def _show_decision(done: str, _console: Console, items: Sequence[Quarantined]) -> None:
    for item in items:
        click.echo(
            formatting.one_line(f"{done} {item.key[:_KEY_LENGTH]}  {item.rule}  {item.text}", 100)
        )
    click.echo("To apply this: `journeyman learn`. Until then, nothing changes.")


_keys = click.argument("keys", nargs=-1, required=True, metavar="KEY...")


@context.command(quarantine, render=partial(_show_decision, "Released"))
@_keys
@context.yes_option
def release(journeyman: Journeyman, *, keys: Sequence[str], yes: bool) -> Sequence[Quarantined]:
    """Allow items to be learned after all, if a rule was wrong about them.

    The next `journeyman learn` learns from them; until then, nothing changes. `restore` undoes
    this.

    Examples:
      journeyman templates quarantine release 3f2a9c10
      journeyman templates quarantine release 3f2a9c10 81be07d2 --yes
    """
    if not yes:
        console = Console(stderr=True, highlight=False)
        for key in keys:
            _show(console, journeyman.kept_out.get(key))
            console.print()
        items = formatting.pluralize(len(keys), "item")
        click.confirm(f"Release {items}? Agents will see this.", abort=True, err=True)
    return journeyman.kept_out.release(keys, by=context.user_name())


@context.command(quarantine, render=partial(_show_decision, "Restored"))
@_keys
def restore(journeyman: Journeyman, *, keys: Sequence[str]) -> Sequence[Quarantined]:
    """Undo a decision: items are listed again. The next `journeyman learn` excludes them.

    Examples:
      journeyman templates quarantine restore 3f2a9c10
    """
    return journeyman.kept_out.restore(keys)
