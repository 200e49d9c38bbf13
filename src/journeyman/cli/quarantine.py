"""`journeyman templates quarantine`: list, show, release, delete, restore."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, formatting
from journeyman.cli.context import flag, number, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import Quarantined

_DEFAULT_LIMIT = 30
_KEY_LENGTH = 8
_MAX_SESSIONS = 10


@click.group(
    cls=context.DefaultGroup,
    default="list",
    usage="[list] [OPTIONS] | show KEY | release KEY... | delete KEY... | restore KEY...",
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
    limit = options["limit"] or _DEFAULT_LIMIT
    if not items:
        is_filtered = any(options[name] for name in ("rule", "project", "decided"))
        empty = "Quarantine is empty: nothing waits for a decision."
        console.print("Nothing in quarantine matches." if is_filtered else empty)
        return
    console.print(formatting.fit_table(items[:limit], _COLUMNS, console.width), "", sep="\n")
    formatting.print_remainder(console, len(items), limit, ": --limit shows them")
    for verb in ("show", "restore") if options["decided"] else ("show", "release", "delete"):
        hint = f"journeyman templates quarantine {verb} {items[0].key[:_KEY_LENGTH]}"
        console.print(Text(hint, style="dim"))


def _up_to_limit(items: Sequence[Quarantined]) -> Sequence[Quarantined]:
    return items[: click.get_current_context().params["limit"]]


@context.command(quarantine, "list", render=_show_list, to_json=_up_to_limit, is_paged=True)
@option("--rule RULE", "Only items of this rule, or of rules that begin with it.")
@context.project_option
@flag("--decided", "List released and deleted items instead.")
@number("-n --limit N", f"Number of items to show (default {_DEFAULT_LIMIT}; with --json all).")
def list_(journeyman: Journeyman, *, rule: str | None, **filters: Any) -> Sequence[Quarantined]:
    """List items that wait for a decision, those found in most sessions first.

    Examples:
      journeyman templates quarantine list
      journeyman templates quarantine list --rule git.push --project .
    """
    del filters["limit"]
    return journeyman.kept_out.list(rule=rule, **filters)


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
    if done != "Deleted":
        click.echo("To apply this: `journeyman learn`. Until then, nothing changes.")


_keys = click.argument("keys", nargs=-1, required=True, metavar="KEY...")


def _add_decision(name: str, question: str, help_text: str) -> None:
    """Add a command that shows items, asks for confirmation, and stores the decision."""

    @context.command(
        quarantine, name, help=help_text, render=partial(_show_decision, f"{name}d".capitalize())
    )
    @_keys
    @context.yes_option
    def _decide(journeyman: Journeyman, *, keys: Sequence[str], yes: bool) -> Sequence[Quarantined]:
        if not yes:
            console = Console(stderr=True, highlight=False)
            for key in keys:
                _show(console, journeyman.kept_out.get(key))
                console.print()
            items = formatting.pluralize(len(keys), "item")
            click.confirm(question.format(items), abort=True, err=True)
        decided: Sequence[Quarantined] = getattr(journeyman.kept_out, name)(
            keys, by=context.user_name()
        )
        return decided


_add_decision(
    "release",
    "Release {}? Agents will see this.",
    """Allow items to be learned after all, if a rule was wrong about them.

    The next `journeyman learn` learns from them; until then, nothing changes. `restore` undoes
    this.

    Examples:
      journeyman templates quarantine release 3f2a9c10
      journeyman templates quarantine release 3f2a9c10 81be07d2 --yes
    """,
)
_add_decision(
    "delete",
    "Delete {}? Deleted items stay excluded from learning.",
    """Remove items from the list. They stay excluded from learning and are not listed again.

    `restore` undoes this. To remove what was learned around them, use `journeyman forget`.

    Examples:
      journeyman templates quarantine delete 3f2a9c10
      journeyman templates quarantine delete 3f2a9c10 81be07d2 --yes
    """,
)


@context.command(quarantine, render=partial(_show_decision, "Restored"))
@_keys
def restore(journeyman: Journeyman, *, keys: Sequence[str]) -> Sequence[Quarantined]:
    """Undo a decision: items are listed again. The next `journeyman learn` excludes them.

    Examples:
      journeyman templates quarantine restore 3f2a9c10
    """
    return journeyman.kept_out.restore(keys)
