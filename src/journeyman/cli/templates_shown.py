"""How templates look in the terminal: lists, facts, what building and importing did."""

import shlex
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.records import Effect, Gain, Imported, Template, TemplateOrigin, TemplateStats

NO_TEMPLATES = (
    "There are no templates yet.\n"
    "`journeyman templates build NAME` makes one from long sessions that went well.\n"
    "`journeyman templates create SESSION` makes one from a single session."
)
_SHOWN_SKIPPED = 10
_ORIGINS: dict[TemplateOrigin, str] = {
    "built": "built from sessions",
    "created": "created from one session",
    "imported": "imported from a file",
}

# The columns of the list, and how wide a window has to be to show each.
_LIST_COLUMNS = (
    ("name", 0),
    ("version", 0),
    ("type", 50),
    ("tags", 70),
    ("patterns", 0),
    ("used", 60),
    ("effect", 80),
    ("created", 60),
)


def templates_table(found: Sequence[Template], width: int) -> Table:
    """Templates, a row each."""
    names = [name for name, needed in _LIST_COLUMNS if width >= needed]
    if not any(one.tags for one in found) and "tags" in names:
        names.remove("tags")
    table = shown.table(*names, numbers=("version", "patterns", "used"))
    columns = dict(zip(names, table.columns, strict=True))
    columns["name"].overflow, columns["name"].min_width = "fold", 12
    if "created" in columns:
        columns["created"].no_wrap = True
    for one in found:
        cells = _cells(one, with_time=width >= 100)
        table.add_row(*(cells[name] for name in names))
    return table


def _cells(one: Template, *, with_time: bool) -> dict[str, Text]:
    created = shown.moment(one.created_at)
    return {
        "name": shown.cell(one.name),
        "version": Text(str(one.version)),
        "type": Text(one.task_type),
        "tags": shown.cell(", ".join(one.tags)),
        "patterns": Text(shown.count(len(one.patterns))),
        "used": Text(shown.count(one.used)),
        "effect": Text(_effect(one.effect)),
        "created": Text(created if with_time else created[:10]),
    }


def show_facts(console: Console, one: Template) -> None:
    """What is known of a template."""
    held = sum(bool(pattern.quarantined) for pattern in one.patterns)
    used = shown.many(one.used, "time")
    facts = {
        "template": f"{one.name}@{one.version}",
        "about": one.description,
        "type": one.task_type,
        "tags": ", ".join(one.tags),
        "made": f"{_ORIGINS[one.origin]}, {shown.moment(one.created_at)}",
        "sessions": _sessions(one),
        "patterns": shown.count(len(one.patterns)) + (f", {held:,} in quarantine" if held else ""),
        "addendum": one.addendum,
        "gain": "" if one.gain is None else gain_in_words(one.gain),
        "used": f"{used}, last {shown.moment(one.last_used_at)}" if one.used else "never",
        "effect": _effect(one.effect),
    }
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"{name:10s}", "dim"), shown.plain(value)), soft_wrap=True)


def show_made(console: Console, one: Template) -> None:
    """A template that was just made."""
    show_facts(console, one)
    console.print()
    name = shlex.quote(one.name)
    console.print(Text(f"Look at it: `journeyman templates show {name}`"), soft_wrap=True)
    console.print(Text(f"Use it: `journeyman open TASK --template {name}`"), soft_wrap=True)


def show_imported(console: Console, imported: Imported) -> None:
    """A template that came from a file, what was left out and what is in quarantine."""
    one = imported.template
    show_facts(console, one)
    if imported.skipped:
        console.print(f"\n{len(imported.skipped):,} left out:", style="yellow")
        for reason in imported.skipped[:_SHOWN_SKIPPED]:
            console.print(shown.cell(f"  {reason}"), soft_wrap=True)
        more = len(imported.skipped) - _SHOWN_SKIPPED
        if more > 0:
            console.print(f"  and {more:,} more (--json lists them)")
    rules = Counter(pattern.quarantined for pattern in one.patterns if pattern.quarantined)
    if rules:
        told = ", ".join(f"{number:,} {rule}" for rule, number in rules.most_common())
        console.print(
            shown.cell(
                f"\nIn quarantine, and in no opening: {told}."
                f"\n`journeyman templates show {shlex.quote(one.name)}` marks them."
            ),
            style="yellow",
        )


def show_stats(console: Console, found: TemplateStats) -> None:
    """The library in numbers."""
    if not found.total:
        console.print(NO_TEMPLATES)
        return
    types = ", ".join(f"{number:,} {name}" for name, number in found.by_type.items())
    versions = shown.many(found.versions, "version")
    facts = {
        "templates": f"{found.total:,} ({types}), {versions} in all",
        "examples": f"{found.examples:,} in the newest versions",
        "used": shown.many(found.used, "time"),
        "most used": found.most_used,
        "tried": f"in {shown.many(found.tried, 'trial')}" if found.tried else "in no trial yet",
    }
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"{name:11s}", "dim"), shown.plain(value)))


def in_short(one: Template) -> str:
    """A template on one line."""
    patterns = shown.many(len(one.patterns), "pattern")
    created = shown.moment(one.created_at)
    return shown.plain(f"{one.name}@{one.version}  {patterns}  {created}  {one.description[:60]}")


def gain_in_words(gain: Gain) -> str:
    """By how much errors fell from early to late calls; a positive gain is better."""
    if gain.estimate is None or gain.low is None or gain.high is None:
        return "too few calls to say"
    said = f"{100 * gain.estimate:+.1f} points from early to late calls"
    return f"{said} (95 % interval {100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


def _sessions(one: Template) -> str:
    if not one.scanned or one.origin == "created":
        return ""
    of_source = f" of {one.source}" if one.source else ""
    teach = "teaches" if one.qualified == 1 else "teach"
    return f"{one.qualified:,} that {teach}, of {one.scanned:,}{of_source} looked at"


def _effect(effect: Effect) -> str:
    if effect.mean is None:
        return "not tried"
    return f"{effect.mean:+.2f} in {shown.many(effect.tried, 'trial')}"
