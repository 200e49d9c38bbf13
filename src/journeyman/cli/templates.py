"""`journeyman templates`: build, create, list, show, stats, delete, export, import, quarantine."""

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, files, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.opening import TYPE, show_pattern
from journeyman.cli.quarantine import quarantine
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records import Effect, Gain, Imported, Template, TemplateOrigin, TemplateStats
from journeyman.templates.defaults import MAX_EXAMPLES, MAX_PATTERNS, MAX_SESSIONS, MIN_MESSAGES

_tags = option("--tag", "A tag for it; may be repeated.", to="tags", multiple=True)
_description = option("--description", "What it is for, for people.")
_addendum = option("--addendum", "A text of your own that models see beside the examples.")


_NO_TEMPLATES = (
    "There are no templates yet.\n"
    "`journeyman templates build NAME` makes one from long sessions that went well.\n"
    "`journeyman templates create SESSION` makes one from a single session."
)
_ORIGINS: dict[TemplateOrigin, str] = {
    "built": "built from sessions",
    "created": "created from one session",
    "imported": "imported from a file",
}


_COLUMNS = (
    Column("name", lambda one: one.name, overflow="fold", min_width=12),
    Column("version", lambda one: str(one.version), number=True),
    Column("type", lambda one: one.task_type, needs=50),
    Column("tags", lambda one: ", ".join(one.tags), needs=70, optional=True),
    Column("patterns", lambda one: len(one.patterns), number=True),
    Column("used", lambda one: one.used, needs=60, number=True),
    Column("effect", lambda one: _effect(one.effect), needs=80),
    Column("created", lambda one: shown.moment(one.created_at)[:10], needs=60, no_wrap=True),
)


def _show_facts(console: Console, one: Template) -> None:
    held = sum(bool(pattern.quarantined) for pattern in one.patterns)
    used = shown.many(one.used, "time")
    teaching = shown.counted(one.qualified, "that teaches", "that teach")
    of_source = f" of {one.source}" if one.source else ""
    taught = f"{teaching}, of {one.scanned:,}{of_source} looked at"
    facts = {
        "template": f"{one.name}@{one.version}",
        "about": one.description,
        "type": one.task_type,
        "tags": ", ".join(one.tags),
        "made": f"{_ORIGINS[one.origin]}, {shown.moment(one.created_at)}",
        "sessions": taught if one.scanned and one.origin != "created" else "",
        "patterns": shown.count(len(one.patterns)) + (f", {held:,} in quarantine" if held else ""),
        "addendum": one.addendum,
        "gain": "" if one.gain is None else _gain(one.gain),
        "used": f"{used}, last {shown.moment(one.last_used_at)}" if one.used else "never",
        "effect": _effect(one.effect),
    }
    shown.facts(console, facts)


def _show_made(console: Console, one: Template) -> None:
    _show_facts(console, one)
    console.print()
    name = shlex.quote(one.name)
    console.print(Text(f"Look at it: `journeyman templates show {name}`"), soft_wrap=True)
    console.print(Text(f"Use it: `journeyman open TASK --template {name}`"), soft_wrap=True)


def _show_imported(console: Console, imported: Imported) -> None:
    one = imported.template
    _show_facts(console, one)
    if imported.skipped:
        shown.problems(console, f"\n{len(imported.skipped):,} left out", imported.skipped)
    rules = Counter(pattern.quarantined for pattern in one.patterns if pattern.quarantined)
    if rules:
        told = ", ".join(f"{number:,} {rule}" for rule, number in rules.most_common())
        marked = f"`journeyman templates show {shlex.quote(one.name)}` marks them."
        said = f"\nIn quarantine, and in no opening: {told}.\n{marked}"
        console.print(shown.cell(said), style="yellow")


def _show_stats(console: Console, found: TemplateStats) -> None:
    if not found.total:
        console.print(_NO_TEMPLATES)
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
    shown.facts(console, facts, width=11, wrap=True)


def _gain(gain: Gain) -> str:
    """By how much errors fell from early to late calls; a positive gain is better."""
    if gain.estimate is None or gain.low is None or gain.high is None:
        return "too few calls to say"
    said = f"{100 * gain.estimate:+.1f} points from early to late calls"
    return f"{said} (95 % interval {100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


def _effect(effect: Effect) -> str:
    if effect.mean is None:
        return "not tried"
    return f"{effect.mean:+.2f} in {shown.many(effect.tried, 'trial')}"


@click.group()
def templates() -> None:
    """Build, create, show and exchange templates: named sets of examples that worked.

    A template is named by its name, which means the newest version, or by name@version.
    """


templates.add_command(quarantine)
_reference = click.argument("reference", metavar="NAME[@VERSION]")


@asked.command(templates, shows=_show_made)
@click.argument("name")
@option("--min-messages", "Only sessions this long.", type=asked.COUNT, default=MIN_MESSAGES)
@option(
    "--max-sessions",
    "How many sessions that teach are used, newest first.",
    type=asked.SOME,
    default=MAX_SESSIONS,
)
@option(
    "--max-patterns",
    "How many patterns are kept, those seen most first.",
    type=asked.SOME,
    default=MAX_PATTERNS,
)
@asked.project_option
@asked.source_option
@_tags
@_description
@_addendum
def build(journeyman: Journeyman, *, name: str, tags: tuple[str, ...], **options: Any) -> Template:
    """Make a template from the newest long sessions that went well.

    What is new in them is learned first. Building the same NAME again makes a new version, with
    the tags and texts of the one before unless you give others (an empty text clears); the older
    ones stay.

    Examples:
      journeyman templates build web
      journeyman templates build fixes --source claude_code --tag python --min-messages 8
      journeyman templates build here --project .
      journeyman templates build web --addendum "Our tests run with make test." --json
    """
    with shown.counting_bar("Looking at sessions") as progress:
        return journeyman.templates.build(name, tags=tags or None, progress=progress, **options)


@asked.command(templates, shows=_show_made)
@click.argument("session")
@option("--name", "What it is called (default: made of the session's title).")
@option("--type", "Its type (default: that of the calls).", to="task_type", type=TYPE)
@_tags
@_description
@_addendum
@option("--max-examples", "How many patterns are kept.", type=asked.SOME, default=MAX_EXAMPLES)
def create(journeyman: Journeyman, *, session: str, **options: Any) -> Template:
    """Make a template from one SESSION that went well.

    Examples:
      journeyman templates create 0442a060
      journeyman templates create 0442a060 --name release --type code --tag deploy
    """
    given = {name: value for name, value in options.items() if value is not None}
    return journeyman.templates.create(session, **given)


def _show_list(console: Console, found: Sequence[Template]) -> None:
    given = click.get_current_context().params
    fits = "No template fits: `journeyman templates list` shows all."
    nothing = fits if given["task_type"] or given["tags"] else _NO_TEMPLATES
    shown.listed(console, found, _COLUMNS, nothing)


def _without_patterns(found: Sequence[Template]) -> list[dict[str, Any]]:
    """Templates for programs; `templates show` has the patterns."""
    return [msgspec.to_builtins(one) | {"patterns": len(one.patterns)} for one in found]


@asked.command(templates, "list", shows=_show_list, tells=_without_patterns)
@option("--type", "Only those of this type.", to="task_type", type=TYPE)
@option("--tag", "Only those with this tag; may be repeated.", to="tags", multiple=True)
@flag("--versions", "All versions, not only the newest.")
def list_(journeyman: Journeyman, *, versions: bool, **chosen: Any) -> Sequence[Template]:
    """List templates by name.

    Examples:
      journeyman templates list
      journeyman templates list --type code --tag python
      journeyman templates list --versions --json
    """
    return journeyman.templates.list(versions=versions, **chosen)


@asked.command(templates)
@_reference
@flag("--full", "Show all of every call and result.")
def show(journeyman: Journeyman, reference: str, *, full: bool, as_json: bool) -> None:
    """Show a template: what is known of it, and its patterns.

    Examples:
      journeyman templates show web
      journeyman templates show web@1 --full | less
    """
    found = journeyman.templates.get(reference)
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    _show_facts(console, found)
    for number, pattern in enumerate(found.patterns, start=1):
        console.print()
        show_pattern(console, pattern, number=number, full=full)


@asked.command(templates, shows=_show_stats)
def stats(journeyman: Journeyman) -> TemplateStats:
    """Show the library in numbers.

    Examples:
      journeyman templates stats
      journeyman templates stats --json
    """
    return journeyman.templates.stats()


@asked.command(
    templates,
    says=lambda gone: f"Deleted {shown.many(gone['versions'], 'version')} of {gone['name']}.",
)
@_reference
@asked.yes_option
def delete(journeyman: Journeyman, reference: str, *, yes: bool) -> dict[str, Any]:
    """Delete a template with all its versions, or the one version that is named.

    Examples:
      journeyman templates delete web
      journeyman templates delete web@1 --yes
    """
    library = journeyman.templates
    found = library.get(reference)
    if not yes:
        every = [one for one in library.list(versions=True) if one.name == found.name]
        which = [found] if "@" in reference else every
        for one in which:
            patterns = shown.many(len(one.patterns), "pattern")
            made = f"{patterns}  {shown.moment(one.created_at)}  {one.description[:60]}"
            click.echo(shown.plain(f"{one.name}@{one.version}  {made}"), err=True)
        versions = shown.many(len(which), "version")
        click.confirm(f"Delete {versions} of {found.name}?", abort=True, err=True)
    return {"name": found.name, "versions": library.delete(reference)}


@asked.command(templates, has_json=False)
@_reference
@files.output_options
def export(journeyman: Journeyman, *, reference: str, **to: Any) -> None:
    """Write a template as JSON, for another machine or for a colleague.

    Examples:
      journeyman templates export web > web.json
      journeyman templates export web@1 -o web.json --force
    """
    files.put(journeyman.templates.export(reference), "template", reference, **to)


@asked.command(templates, "import", shows=_show_imported)
@click.argument("file")
@option("--name", "What it is to be called here (default: as the file says).")
@flag("--with-addendum", "Keep its words to models too. Read them before.")
def import_(journeyman: Journeyman, *, file: str, **options: Any) -> Imported:
    """Keep a template from a FILE, or from standard input for a dash.

    The file is not trusted: its examples are redacted and looked at like all that is learned. A
    name that is there already gets a new version.

    Examples:
      journeyman templates import web.json
      journeyman templates import web.json --name colleagues-web
      ssh build journeyman templates export web | journeyman templates import -
    """
    # Loaded here, because it takes longer than showing help.
    from journeyman.templates.template_files import LARGEST_FILE  # noqa: PLC0415

    data = files.read(file, "template", most=LARGEST_FILE)
    return journeyman.templates.import_file(data, **options)
