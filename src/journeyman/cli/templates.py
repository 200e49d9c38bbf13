"""`journeyman templates`: build, create, list, show, stats, delete, export, import, quarantine."""

from pathlib import Path

import click
import msgspec

from journeyman.cli import asked, files, patterns_shown, shown, templates_shown
from journeyman.cli.quarantine import quarantine
from journeyman.cli.template_making import TYPE, build, create


@click.group()
def templates() -> None:
    """Build, create, show and exchange templates: named sets of examples that worked.

    A template is named by its name, which means the newest version, or by name@version.
    """


templates.add_command(build)
templates.add_command(create)
templates.add_command(quarantine)


@templates.command(
    "list",
    epilog="""\b
Examples:
  journeyman templates list
  journeyman templates list --type code --tag python
  journeyman templates list --versions --json""",
)
@click.option("--type", "task_type", type=TYPE, help="Only those of this type.")
@click.option("--tag", "tags", multiple=True, help="Only those with this tag; may be repeated.")
@click.option("--versions", is_flag=True, help="All versions, not only the newest.")
@asked.json_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    task_type: str | None,
    tags: tuple[str, ...],
    versions: bool,
    as_json: bool,
) -> None:
    """List templates by name."""
    library = asked.opened(ctx).templates
    found = library.list(task_type=task_type, tags=tags, versions=versions)
    if as_json:  # `templates show` has the patterns
        asked.print_json(
            [msgspec.to_builtins(one) | {"patterns": len(one.patterns)} for one in found]
        )
        return
    console = shown.console()
    if found:
        console.print(templates_shown.templates_table(found, console.width))
    elif task_type or tags:
        console.print("No template fits: `journeyman templates list` shows all.")
    else:
        console.print(templates_shown.NO_TEMPLATES)


@templates.command(
    epilog="""\b
Examples:
  journeyman templates show web
  journeyman templates show web@1 --full | less"""
)
@click.argument("reference", metavar="NAME[@VERSION]")
@click.option("--full", is_flag=True, help="Show all of every call and result.")
@asked.json_option
@click.pass_context
def show(ctx: click.Context, reference: str, *, full: bool, as_json: bool) -> None:
    """Show a template: what is known of it, and its patterns."""
    found = asked.opened(ctx).templates.get(reference)
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    templates_shown.show_facts(console, found)
    for number, pattern in enumerate(found.patterns, start=1):
        console.print()
        patterns_shown.show_pattern(console, pattern, number=number, full=full)


@templates.command(
    epilog="""\b
Examples:
  journeyman templates stats
  journeyman templates stats --json"""
)
@asked.json_option
@click.pass_context
def stats(ctx: click.Context, *, as_json: bool) -> None:
    """Show the library in numbers."""
    found = asked.opened(ctx).templates.stats()
    if as_json:
        asked.print_json(found)
    else:
        templates_shown.show_stats(shown.console(), found)


@templates.command(
    epilog="""\b
Examples:
  journeyman templates delete web
  journeyman templates delete web@1 --yes"""
)
@click.argument("reference", metavar="NAME[@VERSION]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asked.json_option
@click.pass_context
def delete(ctx: click.Context, reference: str, *, yes: bool, as_json: bool) -> None:
    """Delete a template with all its versions, or the one version that is named."""
    library = asked.opened(ctx).templates
    found = library.get(reference)
    if not yes:
        which = [one for one in library.list(versions=True) if one.name == found.name]
        if "@" in reference:
            which = [found]
        for one in which:
            click.echo(templates_shown.in_short(one), err=True)
        versions = shown.many(len(which), "version")
        click.confirm(f"Delete {versions} of {found.name}?", abort=True, err=True)
    deleted = library.delete(reference)
    if as_json:
        asked.print_json({"name": found.name, "versions": deleted})
    else:
        click.echo(f"Deleted {shown.many(deleted, 'version')} of {found.name}.")


@templates.command(
    epilog="""\b
Examples:
  journeyman templates export web > web.json
  journeyman templates export web@1 -o web.json --force"""
)
@click.argument("reference", metavar="NAME[@VERSION]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it to FILE."
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it is there.")
@click.pass_context
def export(ctx: click.Context, reference: str, *, output: Path | None, force: bool) -> None:
    """Write a template as JSON, for another machine or for a colleague."""
    data = asked.opened(ctx).templates.export(reference)
    if output is None or str(output) == files.STANDARD_INPUT:
        click.echo(data, nl=False)
        return
    files.write(output, data, "template", force=force)
    click.echo(f"{reference} written to {output}", err=True)


@templates.command(
    "import",
    epilog="""\b
Examples:
  journeyman templates import web.json
  journeyman templates import web.json --name colleagues-web
  ssh build journeyman templates export web | journeyman templates import -""",
)
@click.argument("file")
@click.option("--name", help="What it is to be called here (default: as the file says).")
@click.option(
    "--with-addendum", is_flag=True, help="Keep its words to models too. Read them before."
)
@asked.json_option
@click.pass_context
def import_(
    ctx: click.Context, file: str, *, name: str | None, with_addendum: bool, as_json: bool
) -> None:
    """Keep a template from a FILE, or from standard input for a dash.

    The file is not trusted: its examples are redacted and looked at like all that is learned. A
    name that is there already gets a new version.
    """
    # Loaded here, because it takes longer than showing help.
    from journeyman.templates.files.exchange import LARGEST_FILE  # noqa: PLC0415

    data = files.read(file, "template", most=LARGEST_FILE)
    library = asked.opened(ctx).templates
    imported = library.import_file(data, name=name, with_addendum=with_addendum)
    if as_json:
        asked.print_json(imported)
    else:
        templates_shown.show_imported(shown.console(), imported)
