"""`journeyman templates`: builds, shows and exchanges named sets of examples."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import flag, number, option
from journeyman.cli.formatting import Column
from journeyman.cli.opening import all_tags_flag, show_pattern, tags_option, type_option
from journeyman.facade.journeyman import Journeyman
from journeyman.records import (
    ImportedFolder,
    ImportedTemplate,
    LateChange,
    Template,
    TemplateStats,
)
from journeyman.records.defaults import MAX_EXAMPLES, MAX_PATTERNS, MIN_MESSAGES

_addendum_option = option("--addendum", "Text of your own that models see with the examples.")


_NO_TEMPLATES = (
    "There are no templates yet.\n"
    "`journeyman templates build NAME` builds one from long, successful sessions.\n"
    "`journeyman templates create SESSION` creates one from a single session."
)
_COLUMNS = (
    Column("name", lambda row: row.name, overflow="fold", min_width=12),
    Column("version", lambda row: str(row.version), numeric=True),
    Column("type", lambda row: row.task_type, min_terminal_width=50),
    Column("tags", lambda row: ", ".join(row.tags), min_terminal_width=70, optional=True),
    Column("patterns", lambda row: len(row.patterns), numeric=True),
    Column("used", lambda row: row.used, min_terminal_width=60, numeric=True),
    Column("created", lambda row: formatting.local_time(row.created_at)[:10], no_wrap=True),
)


def _show_details(console: Console, template: Template) -> None:
    of_source = f" of {template.source}" if template.source else ""
    sessions = f"{template.qualified:,} used, of {template.scanned:,}{of_source} examined"
    times = formatting.pluralize(template.used, "time")
    used = f"{times}, last {formatting.local_time(template.last_used_at)}"
    fields = {
        "template": f"{template.name}@{template.version}",
        "about": template.description,
        "type": template.task_type,
        "tags": ", ".join(template.tags),
        "created": f"{template.origin}, {formatting.local_time(template.created_at)}",
        "sessions": sessions if template.scanned and template.origin != "created" else "",
        "patterns": formatting.count(len(template.patterns)),
        "addendum": template.addendum,
        "learning": _learning(template.late_minus_early),
        "used": used if template.used else "never",
    }
    formatting.print_fields(console, fields)


def _learning(change: LateChange | None) -> str:
    """Return how late calls of the sessions differ from early ones; empty if not compared."""
    if change is None or change.low is None:
        return "" if change is None else "too few calls to measure"
    from journeyman.reliability.learning_curve import late_change_text  # noqa: PLC0415 - loads slowly

    return late_change_text(change)


def _show_created(console: Console, template: Template) -> None:
    _show_details(console, template)
    name = shlex.quote(template.name)
    console.print(Text(f"\nTo use it: `journeyman open TASK --template {name}`"), soft_wrap=True)


def _show_imported(console: Console, result: ImportedTemplate | ImportedFolder) -> None:
    if isinstance(result, ImportedTemplate):
        result = ImportedFolder(imported=(result,), failed={})
    formatting.print_table(console, [one.template for one in result.imported], _COLUMNS, "")
    skipped = [f"{file}: {reason}" for file, reason in result.failed.items()]
    skipped += [f"{one.template.name}: {part}" for one in result.imported for part in one.skipped]
    if skipped:
        formatting.print_problems(console, f"\n{len(skipped):,} left out", skipped)


def _show_stats(console: Console, stats: TemplateStats) -> None:
    if not stats.total:
        console.print(_NO_TEMPLATES)
        return
    types = ", ".join(f"{number:,} {name}" for name, number in stats.by_type.items())
    versions = formatting.pluralize(stats.versions, "version")
    fields = {
        "templates": f"{stats.total:,} ({types}), {versions} in total",
        "patterns": f"{stats.patterns:,} in the newest versions",
        "used": formatting.pluralize(stats.used, "time"),
        "most used": stats.most_used,
    }
    formatting.print_fields(console, fields)


@click.group()
def templates() -> None:
    """Build, create, show and exchange templates: named sets of examples that worked.

    A template is identified by its name, which means the newest version, or by name@version.
    """


_reference = click.argument("reference", metavar="NAME[@VERSION]")


@context.command(templates, render=_show_created)
@click.argument("name")
@number(
    "--min-messages",
    "Only sessions with at least this many messages.",
    least=0,
    default=MIN_MESSAGES,
)
@number("--max-patterns", "Most patterns to store, frequent ones first.", default=MAX_PATTERNS)
@context.project_option
@context.source_option
@context.platform_option
@tags_option
@_addendum_option
def build(journeyman: Journeyman, *, name: str, tags: tuple[str, ...], **options: Any) -> Template:
    """Build a template from the newest long sessions that succeeded.

    New sessions are learned from first. Building the same NAME again adds a version with the tags
    and texts of the one before, unless you pass others (an empty text clears them); older versions
    are kept.

    Examples:
      journeyman templates build web
      journeyman templates build fixes --source claude_code --tag python --min-messages 8
      journeyman templates build here --project . --addendum "Our tests run with make test."
    """
    with formatting.counting_bar("Examining sessions") as progress:
        return journeyman.templates.build(name, tags=tags or None, progress=progress, **options)


@context.command(templates, render=_show_created)
@click.argument("session", required=False)
@option("--name", "Name of the template (default: the session's id).")
@type_option
@tags_option
@_addendum_option
@number("--max-patterns", "Most patterns to store.", dest="max_examples", default=MAX_EXAMPLES)
def create(journeyman: Journeyman, *, session: str | None, **options: Any) -> Template:
    """Create a template from one SESSION that succeeded, or without one from an addendum alone.

    Examples:
      journeyman templates create 0442a060 --name release --type code --tag deploy
      journeyman templates create --name house --addendum "Our tests run with make test."
    """
    settings = {name: value for name, value in options.items() if value is not None}
    return journeyman.templates.create(session, **settings)


def _show_list(console: Console, templates: Sequence[Template]) -> None:
    options = click.get_current_context().params
    no_match = "No template matches: `journeyman templates list` shows all."
    if_empty = no_match if options["task_type"] or options["tags"] else _NO_TEMPLATES
    formatting.print_table(console, templates, _COLUMNS, if_empty)


def _without_patterns(templates: Sequence[Template]) -> list[dict[str, Any]]:
    """Return templates for JSON output, with the number of their patterns instead of them."""
    return [msgspec.to_builtins(row) | {"patterns": len(row.patterns)} for row in templates]


@context.command(templates, "list", render=_show_list, to_json=_without_patterns, is_paged=True)
@type_option
@tags_option
@all_tags_flag
@flag("--versions", "List all versions, not only the newest.")
def list_(journeyman: Journeyman, *, versions: bool, **filters: Any) -> Sequence[Template]:
    """List templates by name.

    Examples:
      journeyman templates list --type code --tag python
      journeyman templates list --tags python,tests --all-tags
    """
    return journeyman.templates.list(versions=versions, **filters)


def _show_patterns(console: Console, template: Template) -> None:
    _show_details(console, template)
    full = click.get_current_context().params["full"]
    for at, pattern in enumerate(template.patterns, start=1):
        console.print()
        show_pattern(console, pattern, number=at, full=full)


@context.command(templates, render=_show_patterns, is_paged=True)
@_reference
@flag("--full", "Show calls and results in full.")
def show(journeyman: Journeyman, reference: str, **_shown: bool) -> Template:
    """Show a template: its details and its patterns, redacted.

    Examples:
      journeyman templates show web
      journeyman templates show web@1 --full | less
    """
    return journeyman.templates.redacted(reference)


@context.command(templates, render=_show_stats)
def stats(journeyman: Journeyman) -> TemplateStats:
    """Show how many templates there are, of which types, and how often they were used.

    Examples:
      journeyman templates stats
      journeyman templates stats --json
    """
    return journeyman.templates.stats()


@context.command(
    templates,
    message=lambda deleted: (
        f"Deleted {formatting.pluralize(deleted['versions'], 'version')} of {deleted['name']}."
    ),
)
@_reference
@context.yes_option
def delete(journeyman: Journeyman, reference: str, *, yes: bool) -> dict[str, Any]:
    """Delete a template with all its versions, or only the named version.

    Examples:
      journeyman templates delete web
      journeyman templates delete web@1 --yes
    """
    library = journeyman.templates
    template = library.get(reference)
    if not yes:
        selected = reference if "@" in reference else f"{template.name} with all its versions"
        click.confirm(f"Delete {selected}?", abort=True, err=True)
    return {"name": template.name, "versions": library.delete(reference)}


@context.command(templates, has_json=False)
@_reference
@files.output_options
def export(journeyman: Journeyman, *, reference: str, **destination: Any) -> None:
    """Write a template as JSON, redacted, for another machine or a colleague.

    Examples:
      journeyman templates export web > web.json
      journeyman templates export web@1 -o web.json --force
    """
    content = journeyman.templates.export(reference)
    files.write(content, "template", reference, **destination)


@context.command(templates, "import", render=_show_imported)
@click.argument("file", metavar="FILE|FOLDER")
@option("--as NAME", "Name of the template here (default: as in the file).", dest="name")
@flag("--replace", "If the name is taken, make this its next version.", dest="replace_existing")
@flag("--with-addendum", "Also import its addendum for models. Read it first.")
def import_(
    journeyman: Journeyman, *, file: str, name: str | None, **options: Any
) -> ImportedTemplate | ImportedFolder:
    """Import a template from FILE, from standard input for a dash, or those in all JSON files of a
    FOLDER, where a file that cannot be imported is left out.

    A file is not trusted: its examples are redacted and checked like everything that is learned.
    If the name is taken, nothing is imported unless you pass --as or --replace.

    Examples:
      journeyman templates import web.json
      journeyman templates import web.json --as colleagues-web
      journeyman templates import ~/.hermes/warm_sessions
      ssh build journeyman templates export web | journeyman templates import -
    """
    # Imported here because loading it takes longer than showing help.
    from journeyman.experience.template_files import LARGEST_FILE  # noqa: PLC0415

    if Path(file).is_dir():
        if name is not None:
            raise click.UsageError("--as names one template. Import a folder without it.")
        return journeyman.templates.import_folder(Path(file), **options)
    data = files.read(file, "template", max_bytes=LARGEST_FILE)
    return journeyman.templates.import_file(data, name=name, **options)
