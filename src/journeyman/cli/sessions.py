"""`journeyman sessions`: list, show, search, export, delete."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import asked, files, shown
from journeyman.journeyman import Journeyman
from journeyman.records import Call, Message, Recorded, SessionOverview, Status, Verdict
from journeyman.records.chat import openai_messages

_VERDICT_STYLES: dict[Status, str] = {
    "ok": "green",
    "failed": "red",
    "invalid": "red",
    "refused": "yellow",
    "interrupted": "yellow",
    "unknown": "dim",
}
_ROLE_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "dim"}


_LIMIT = click.IntRange(1, 1_000_000_000)


@click.group()
def sessions() -> None:
    """List, show, search, export and delete sessions.

    A session is named by its id or by any beginning of it that only one session has.
    """


@sessions.command(
    "list",
    epilog="""\b
Examples:
  journeyman sessions list
  journeyman sessions list --source codex --since 2026-11-01
  journeyman sessions list --project .
  journeyman sessions list --project acme/app
  journeyman sessions list --min-messages 100 --json""",
)
@asked.session_options
@click.option("-n", "--limit", type=_LIMIT, default=30, show_default=True)
@click.option("--offset", type=asked.COUNT, default=0, help="How many to pass over.")
@asked.json_option
@click.pass_context
def list_(
    ctx: click.Context,
    *,
    chosen: asked.Chosen,
    limit: int,
    offset: int,
    as_json: bool,
) -> None:
    """List sessions, newest first."""
    journeyman = asked.opened(ctx)
    found = journeyman.sessions.list(limit=limit, offset=offset, **chosen)
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    if not found and chosen and journeyman.sessions.list(limit=1):
        console.print(Text(shown.plain(asked.nothing_fits(journeyman, chosen))))
        return
    if not found:
        console.print("No session is stored that fits. `journeyman import` brings some in.")
        return
    console.print(_sessions_table(found, console.width))
    if len(found) == limit:
        console.print(f"The newest {limit}; more with --limit or --offset.", style="dim")


# The columns of the list, and how wide a window has to be to show each.
_LIST_COLUMNS = (
    ("id", 0),
    ("source", 0),
    ("project", 72),
    ("started", 60),
    ("msgs", 0),
    ("calls", 60),
    ("tokens", 110),
    ("outcome", 60),
    ("title", 0),
)


def _sessions_table(found: Sequence[SessionOverview], width: int) -> Table:
    silent = {
        "outcome": all(one.session.outcome is None for one in found),
        "project": not any(one.session.project for one in found),
    }
    names = [
        name for name, needed in _LIST_COLUMNS if width >= needed and not silent.get(name, False)
    ]
    table = shown.table(*names, numbers=("msgs", "calls", "tokens"))
    columns = dict(zip(names, table.columns, strict=True))
    columns["id"].overflow, columns["id"].min_width = "fold", 8
    columns["source"].no_wrap = True
    if "project" in columns:
        project = columns["project"]
        project.no_wrap, project.overflow, project.max_width = True, "ellipsis", 20
    title = columns["title"]
    title.no_wrap, title.overflow, title.ratio, title.min_width = True, "ellipsis", 1, 10
    table.expand = True
    for one in found:
        cells = _session_cells(one, is_wide=width >= 100)
        table.add_row(*(cells[name] for name in names))
    return table


def _short_project(project: str, *, is_wide: bool) -> str:
    """The end of a project's name, with as much before it as there is room for."""
    return "/".join(project.split("/")[-2 if is_wide else -1 :])


def _session_cells(one: SessionOverview, *, is_wide: bool) -> dict[str, Text]:
    session = one.session
    started = shown.moment(session.started_at)
    outcome = shown.UNKNOWN if session.outcome is None else f"{session.outcome:g}"
    return {
        "id": shown.cell(shown.short_id(session.id)),
        "source": shown.cell(session.source),
        "project": shown.cell(_short_project(session.project, is_wide=is_wide) or shown.UNKNOWN),
        "started": Text(started if is_wide else started[:10]),
        "msgs": Text(shown.count(one.messages)),
        "calls": Text(shown.count(one.calls)),
        "tokens": Text(shown.short_count(one.tokens.total)),
        "outcome": Text(outcome),
        "title": shown.cell(session.title),
    }


@sessions.command(
    epilog="""\b
Examples:
  journeyman sessions show 0442a060
  journeyman sessions show 0442a060 --calls
  journeyman sessions show 0442a060 --full | less"""
)
@click.argument("session_id", metavar="ID")
@click.option("--calls", "only_calls", is_flag=True, help="Show the tool calls with their results.")
@click.option("--full", is_flag=True, help="Show all of every message.")
@asked.json_option
@click.pass_context
def show(
    ctx: click.Context, session_id: str, *, only_calls: bool, full: bool, as_json: bool
) -> None:
    """Show a session: what is known of it, and what was said."""
    journeyman = asked.opened(ctx)
    overview = journeyman.sessions.get(session_id)
    if as_json:
        calls = journeyman.sessions.calls(overview.session.id)
        asked.print_json(
            {
                "overview": overview,
                "messages": [*journeyman.sessions.messages(overview.session.id)],
                "calls": calls,
                "verdicts": [journeyman.judge(call) for call in calls],
            }
        )
        return
    console = shown.console()
    _show_facts(console, journeyman, overview)
    console.print()
    if only_calls:
        for call in journeyman.sessions.calls(overview.session.id):
            show_call(console, call, journeyman.judge(call), full=full)
        return
    for message in journeyman.sessions.messages(overview.session.id):
        _show_message(console, message, full=full)


def _show_facts(console: Console, journeyman: Journeyman, overview: SessionOverview) -> None:
    session, tokens = overview.session, overview.tokens
    began, ended = shown.moment(session.started_at), shown.moment(session.ended_at)
    lineage = ""
    if session.lineage is not None:
        lineage = f"{session.lineage.kind} of {session.lineage.parent}"
    children = journeyman.sessions.children(session.id)
    facts = {
        "session": session.id,
        "title": session.title,
        "recorded by": f"{session.source} ({session.agent})" if session.agent else session.source,
        "model": session.model,
        "time": f"{began} to {ended}",
        "end": session.end_reason,
        "outcome": "" if session.outcome is None else f"{session.outcome:g}",
        "project": session.project,
        "folder": session.cwd + (f" ({session.git_branch})" if session.git_branch else ""),
        "lineage": lineage,
        "children": ", ".join(
            f"{shown.short_id(child.id)} ({child.lineage.kind})"
            for child in children
            if child.lineage
        ),
        "messages": f"{overview.messages:,} in {shown.many(overview.generations, 'generation')}",
        "calls": f"{overview.calls:,}, {overview.answered:,} with result",
        "tokens": f"{shown.count(tokens.total)} ({shown.count(tokens.output_tokens)} written)",
        "cost": "" if tokens.cost_usd is None else f"${tokens.cost_usd:.4f} as recorded",
        "log": session.log,
    }
    for name, value in facts.items():
        if value:
            console.print(Text.assemble((f"{name:12s}", "dim"), shown.plain(value)), soft_wrap=True)


def _show_message(console: Console, message: Message, *, full: bool) -> None:
    head = Text(f"{message.role:9s} ", style=_ROLE_STYLES[message.role])
    if message.kind != "plain":
        head.append(f"({message.kind}) ", style="dim")
    flags = _flags(message.recorded)
    if flags:
        head.append(f"{flags} ", style="magenta")
    room = max(console.width - head.cell_len, 20)
    if full:
        console.print(head.append(shown.plain(message.text)), soft_wrap=True)
    elif message.text or not message.tool_calls:
        console.print(head.append(shown.one_line(message.text, room), style=""), soft_wrap=True)
    for call in message.tool_calls:
        line = Text("  → ", style="cyan").append(shown.plain(call.name), style="bold")
        room = max(console.width - line.cell_len - 1, 20)
        arguments = call.arguments if full else shown.one_line(call.arguments, room)
        console.print(line.append(f" {shown.plain(arguments)}", style="dim"), soft_wrap=True)


def show_call(console: Console, call: Call, verdict: Verdict, *, full: bool) -> None:
    """One call, its verdict and what came back, on two lines unless all is asked for."""
    line = Text(f"{call.index + 1:4d} ", style="dim").append(shown.plain(call.tool), style="bold")
    room = max(console.width - line.cell_len - 1, 20)
    arguments = call.arguments if full else shown.one_line(call.arguments, room)
    console.print(line.append(f" {shown.plain(arguments)}", style="not bold"), soft_wrap=True)
    if call.result is None:
        console.print(Text("     no result was recorded", style="dim"))
        return
    said = f"{verdict.status}: {verdict.kind}" if verdict.kind else verdict.status
    head = Text("     ").append(f"[{said}] ", style=_VERDICT_STYLES[verdict.status])
    if verdict.status != "ok" and not full:
        # What decided says more than how the result begins.
        rule = f"  ({verdict.rule})"
        room = max(console.width - head.cell_len - len(rule), 20)
        head.append(shown.one_line(verdict.evidence or call.result, room), style="")
        console.print(head.append(rule, style="dim"), soft_wrap=True)
        return
    room = max(console.width - head.cell_len, 20)
    result = call.result if full else shown.one_line(call.result, room)
    console.print(head.append(shown.plain(result) or "(empty)", style=""), soft_wrap=True)


def _flags(recorded: Recorded | None) -> str:
    if recorded is None:
        return ""
    flags = []
    if recorded.is_error is not None:
        flags.append("error" if recorded.is_error else "ok")
    if recorded.exit_code is not None:
        flags.append(f"exit {recorded.exit_code}")
    if recorded.interrupted:
        flags.append("interrupted")
    return f"[{', '.join(flags)}]" if flags else ""


@sessions.command(
    epilog="""\b
Examples:
  journeyman sessions search permission denied
  journeyman sessions search '"no such file"' --source codex
  journeyman sessions search timeout --project ."""
)
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@asked.project_option
@click.option("--source", help="Only sessions of this recorder.")
@click.option("-n", "--limit", type=_LIMIT, default=20, show_default=True)
@asked.json_option
@click.pass_context
def search(
    ctx: click.Context,
    query: tuple[str, ...],
    *,
    project: str | None,
    source: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find messages that contain all the WORDS, newest first.

    Words in double quotes must stand together. Of a tool's result the head is searched.
    """
    words = " ".join(query)
    hits = asked.opened(ctx).sessions.search(words, project=project, source=source, limit=limit)
    if as_json:
        asked.print_json(hits)
    elif not hits:
        shown.console().print(Text(f"No message contains {words}."))
    else:
        console = shown.console()
        table = shown.table("id", "when", "role", "message")
        table.columns[0].overflow = "fold"
        table.columns[1].no_wrap = True
        for hit in hits:
            name = shown.cell(shown.short_id(hit.session))
            table.add_row(name, shown.moment(hit.at), hit.role, shown.cell(hit.snippet))
        console.print(table)
    if not hits:
        ctx.exit(1)


@sessions.command(
    epilog="""\b
Examples:
  journeyman sessions export 0442a060 > session.jsonl
  journeyman sessions export 0442a060 --redact -o to-send.jsonl
  journeyman sessions export 0442a060 --format openai -o chat.json"""
)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["journeyman", "openai"]),
    default="journeyman",
    show_default=True,
    help="journeyman keeps everything and can be imported again; openai is chat messages.",
)
@click.option(
    "--redact/--no-redact",
    "redacted",
    default=None,
    help="Replace secrets and personal data; default only for openai.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option("--force", is_flag=True, help="Overwrite FILE if it is there.")
@click.pass_context
def export(
    ctx: click.Context,
    session_ids: tuple[str, ...],
    *,
    form: str,
    redacted: bool | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write sessions as JSON, one a line.

    Journeyman's own form is a copy for yourself, with all that is in the session, secrets
    included. Use --redact before you give it to somebody else.
    """
    journeyman = asked.opened(ctx)
    if redacted is None:
        redacted = form == "openai"
    lines = []
    for session_id in session_ids:
        exported = journeyman.sessions.export(session_id, redacted=redacted)
        if form == "openai":
            session = exported.session
            chat = {"id": session.id, "model": session.model}
            chat_messages = openai_messages(exported.messages)
            lines.append(msgspec.json.encode({**chat, "messages": chat_messages}))
        else:
            lines.append(msgspec.json.encode(exported))
    content = b"\n".join(lines) + b"\n"
    if output is None or str(output) == "-":
        sys.stdout.buffer.write(content)
        return
    files.write(output, content, "export", force=force)
    click.echo(f"{shown.many(len(lines), 'session')} written to {output}", err=True)


@sessions.command(
    epilog="""\b
Examples:
  journeyman sessions delete 0442a060
  journeyman sessions delete 0442a060 1284c080 --yes"""
)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@asked.json_option
@click.pass_context
def delete(ctx: click.Context, session_ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Delete sessions with all their messages. The logs they came from are not touched."""
    journeyman = asked.opened(ctx)
    found = [journeyman.sessions.get(session_id) for session_id in session_ids]
    if not yes:
        for one in found:
            title = shown.one_line(one.session.title, 60)
            click.echo(f"{one.session.id}  {one.messages:,} messages  {title}", err=True)
        click.confirm(f"Delete {shown.many(len(found), 'session')}?", abort=True, err=True)
    deleted = [journeyman.sessions.delete(one.session.id) for one in found]
    if as_json:
        asked.print_json(deleted)
        return
    for one in deleted:
        click.echo(f"Deleted {one.session.id} ({one.messages:,} messages).")
    logs = sorted({one.session.log for one in deleted if Path(one.session.log).is_file()})
    if logs:
        click.echo("To get back what the log still holds: journeyman import --reread " + logs[0])
