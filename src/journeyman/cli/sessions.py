"""`journeyman sessions`: lists, shows, searches, exports and deletes sessions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import context, files, formatting
from journeyman.cli.context import flag, option
from journeyman.cli.formatting import Column
from journeyman.facade.journeyman import Journeyman
from journeyman.records import (
    Call,
    Message,
    ResultFlags,
    SearchHit,
    SessionOverview,
    Verdict,
    VerdictStatus,
)
from journeyman.records.message import openai_messages
from journeyman.text.display import readable

_VERDICT_STYLES: dict[VerdictStatus, str] = {
    **dict.fromkeys(("failed", "invalid"), "red"),
    **dict.fromkeys(("refused", "interrupted"), "yellow"),
    "ok": "green",
    "unknown": "dim",
}
_ROLE_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "dim"}


@click.group()
def sessions() -> None:
    """List, show, search, export and delete sessions.

    A session is identified by its id, or by any prefix that is unique.
    """


@context.command(sessions, "list")
@context.session_options
@option("-n --limit", "Number of sessions to list.", type=context.POSITIVE_INT, default=30)
@option("--offset", "Number of sessions to skip.", type=context.NON_NEGATIVE_INT, default=0)
def list_(
    journeyman: Journeyman,
    *,
    filters: context.SessionFilters,
    limit: int,
    offset: int,
    as_json: bool,
) -> None:
    """List sessions, newest first.

    Examples:
      journeyman sessions list
      journeyman sessions list --source codex --since 2026-11-01
      journeyman sessions list --project .
      journeyman sessions list --project acme/app
      journeyman sessions list --min-messages 100 --json
    """
    overviews = journeyman.sessions.list(limit=limit, offset=offset, **filters)
    if as_json:
        context.print_json(overviews)
        return
    console = formatting.console()
    no_match = "" if overviews else context.no_match_message(journeyman, filters)
    if_empty = no_match or "No sessions are stored. `journeyman import` imports sessions."
    formatting.print_table(console, overviews, _columns(console.width), if_empty)
    if len(overviews) == limit:
        console.print(f"{limit} sessions shown; more with --limit or --offset.", style="dim")


def _columns(width: int) -> Sequence[Column]:
    parts, characters = (-2, 16) if width >= 100 else (-1, 10)

    def project(row: SessionOverview) -> str:
        return "/".join(row.session.project.split("/")[parts:]) or formatting.UNKNOWN

    def outcome(row: SessionOverview) -> str:
        return formatting.UNKNOWN if row.session.outcome is None else f"{row.session.outcome:g}"

    return (
        Column("id", lambda row: formatting.short_id(row.session.id), overflow="fold", min_width=8),
        Column("source", lambda row: row.session.source, no_wrap=True),
        Column(
            "project",
            project,
            min_terminal_width=72,
            optional=True,
            max_width=20,
            **formatting.TRUNCATED,
        ),
        Column(
            "started",
            lambda row: formatting.local_time(row.session.started_at)[:characters],
            min_terminal_width=60,
        ),
        Column("msgs", lambda row: row.messages, numeric=True),
        Column("calls", lambda row: row.calls, min_terminal_width=60, numeric=True),
        Column(
            "tokens",
            lambda row: formatting.short_count(row.tokens.total),
            min_terminal_width=110,
            numeric=True,
        ),
        Column("outcome", outcome, min_terminal_width=60, optional=True),
        Column(
            "title", lambda row: row.session.title, ratio=1, min_width=10, **formatting.TRUNCATED
        ),
    )


@context.command(sessions)
@click.argument("session_id", metavar="ID")
@flag("--calls", "Show only the tool calls, with their results.", dest="only_calls")
@flag("--full", "Show the messages in full.")
def show(
    journeyman: Journeyman, *, session_id: str, only_calls: bool, full: bool, as_json: bool
) -> None:
    """Show a session: its details and its messages.

    Examples:
      journeyman sessions show 0442a060
      journeyman sessions show 0442a060 --calls
      journeyman sessions show 0442a060 --full | less
    """
    overview = journeyman.sessions.get(session_id)
    messages = journeyman.sessions.messages(overview.session.id)
    if as_json:
        calls = journeyman.sessions.calls(overview.session.id)
        document = {"overview": overview, "messages": [*messages], "calls": calls}
        context.print_json(document | {"verdicts": [journeyman.judge(call) for call in calls]})
        return
    console = formatting.console()
    _show_details(console, journeyman, overview)
    console.print()
    if only_calls:
        for call in journeyman.sessions.calls(overview.session.id):
            show_call(console, call, journeyman.judge(call), full=full)
        return
    for message in messages:
        _show_message(console, message, full=full)


def _show_details(console: Console, journeyman: Journeyman, overview: SessionOverview) -> None:
    session, tokens = overview.session, overview.tokens
    lineage = session.lineage
    children = [
        f"{formatting.short_id(child.id)} ({child.lineage.kind})"
        for child in journeyman.sessions.children(session.id)
        if child.lineage
    ]
    generations = formatting.pluralize(overview.generations, "generation")
    output_tokens = formatting.count(tokens.output_tokens)
    started, ended = map(formatting.local_time, (session.started_at, session.ended_at))
    fields = {
        "session": session.id,
        "title": session.title,
        "recorded by": f"{session.source} ({session.agent})" if session.agent else session.source,
        "platform": session.platform,
        "model": session.model,
        "time": f"{started} to {ended}",
        "end": session.end_reason,
        "outcome": "" if session.outcome is None else f"{session.outcome:g}",
        "project": session.project,
        "folder": session.cwd + (f" ({session.git_branch})" if session.git_branch else ""),
        "lineage": f"{lineage.kind} of {lineage.parent}" if lineage else "",
        "children": ", ".join(children),
        "messages": f"{overview.messages:,} in {generations}",
        "calls": f"{overview.calls:,}, {overview.answered:,} with a result",
        "tokens": f"{formatting.count(tokens.total)} ({output_tokens} output)",
        "cost": "" if tokens.cost_usd is None else f"${tokens.cost_usd:.4f} as recorded",
        "log": session.log,
    }
    formatting.print_fields(console, fields, width=12)


def _show_message(console: Console, message: Message, *, full: bool) -> None:
    label = Text(f"{message.role:9s} ", style=_ROLE_STYLES[message.role])
    if message.kind != "plain":
        label.append(f"({message.kind}) ", style="dim")
    if flags := _flags(message.recorded):
        label.append(f"[{', '.join(flags)}] ", style="magenta")
    if full or message.text or not message.tool_calls:
        formatting.print_labelled(console, label, message.text, full=full)
    for call in message.tool_calls:
        line = Text("  → ", style="cyan").append(f"{readable(call.name)} ", style="bold")
        formatting.print_labelled(console, line, call.arguments, full=full, style="dim")


def show_call(console: Console, call: Call, verdict: Verdict, *, full: bool) -> None:
    """Show a call, its verdict and its result, on two lines unless `full`."""
    line = Text(f"{call.index + 1:4d} ", style="dim").append(f"{readable(call.tool)} ", "bold")
    formatting.print_labelled(console, line, call.arguments, full=full, style="")
    if call.result is None:
        console.print(Text("     no result was recorded", style="dim"))
        return
    outcome = f"{verdict.status}: {verdict.kind}" if verdict.kind else verdict.status
    label = Text("     ").append(f"[{outcome}] ", style=_VERDICT_STYLES[verdict.status])
    if verdict.status == "ok" or full:
        formatting.print_labelled(console, label, call.result or "(empty)", full=full)
        return
    # The evidence is more informative than the beginning of the result.
    rule = f"  ({verdict.rule})"
    room = max(console.width - label.cell_len - len(rule), 20)
    label.append(formatting.one_line(verdict.evidence or call.result, room), style="")
    console.print(label.append(rule, style="dim"), soft_wrap=True)


def _flags(recorded: ResultFlags | None) -> list[str]:
    if recorded is None:
        return []
    error = {True: "error", False: "ok", None: ""}[recorded.is_error]
    code = "" if recorded.exit_code is None else f"exit {recorded.exit_code}"
    return [*filter(None, (error, code, "interrupted" if recorded.interrupted else ""))]


def _show_hits(console: Console, hits: Sequence[SearchHit]) -> None:
    columns = (
        Column("id", lambda hit: formatting.short_id(hit.session), overflow="fold"),
        Column("when", lambda hit: formatting.local_time(hit.at), no_wrap=True),
        Column("role", lambda hit: hit.role),
        Column("message", lambda hit: hit.snippet),
    )
    words = " ".join(click.get_current_context().params["query"])
    formatting.print_table(console, hits, columns, f"No message contains {words}.")


@context.command(sessions, render=_show_hits, is_failure=lambda hits: not hits)
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@context.project_option
@context.source_option
@option("-n --limit", "Number of messages to show.", type=context.POSITIVE_INT, default=20)
def search(journeyman: Journeyman, *, query: Sequence[str], **options: Any) -> Sequence[SearchHit]:
    """Find messages that contain all the WORDS, newest first.

    Words in double quotes must occur together. Only the beginning of a tool's result is searched.

    Examples:
      journeyman sessions search permission denied
      journeyman sessions search '"no such file"' --source codex
      journeyman sessions search timeout --project .
    """
    return journeyman.sessions.search(" ".join(query), **options)


@context.command(sessions, has_json=False)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@option(
    "--format",
    "journeyman is complete and can be imported again; openai is chat messages.",
    dest="form",
    type=click.Choice(["journeyman", "openai"]),
    default="journeyman",
)
@option(
    "--redact/--no-redact",
    "Replace secrets and personal data (default: only for openai).",
    dest="redacted",
    default=None,
)
@files.output_options
def export(
    journeyman: Journeyman,
    *,
    session_ids: Sequence[str],
    form: str,
    redacted: bool | None,
    **destination: Any,
) -> None:
    """Write sessions as JSON, one per line.

    Journeyman's own format is a complete copy of the session, secrets included. Use --redact
    before you share it.

    Examples:
      journeyman sessions export 0442a060 > session.jsonl
      journeyman sessions export 0442a060 --redact -o to-send.jsonl
      journeyman sessions export 0442a060 --format openai -o chat.json
    """
    if redacted is None:
        redacted = form == "openai"
    exported: list[Any] = [
        journeyman.sessions.export(id_, redacted=redacted) for id_ in session_ids
    ]
    if form == "openai":
        exported = [
            {name: getattr(record.session, name) for name in ("id", "model")}
            | {"messages": openai_messages(record.messages)}
            for record in exported
        ]
    content = b"".join(msgspec.json.encode(record) + b"\n" for record in exported)
    files.write(content, "export", formatting.pluralize(len(exported), "session"), **destination)


def _deleted_message(deleted: Sequence[SessionOverview]) -> str:
    lines = [f"Deleted {row.session.id} ({row.messages:,} messages)." for row in deleted]
    logs = sorted({row.session.log for row in deleted if Path(row.session.log).is_file()})
    if logs:
        lines.append(f"To import what the log still contains: journeyman import --reread {logs[0]}")
    return "\n".join(lines)


@context.command(sessions, message=_deleted_message)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@context.yes_option
def delete(
    journeyman: Journeyman, *, session_ids: Sequence[str], yes: bool
) -> Sequence[SessionOverview]:
    """Delete sessions with all their messages. The logs they came from are not changed.

    Examples:
      journeyman sessions delete 0442a060
      journeyman sessions delete 0442a060 1284c080 --yes
    """
    overviews = [journeyman.sessions.get(session_id) for session_id in session_ids]
    if not yes:
        for row in overviews:
            title = formatting.one_line(row.session.title, 60)
            click.echo(f"{row.session.id}  {row.messages:,} messages  {title}", err=True)
        click.confirm(
            f"Delete {formatting.pluralize(len(overviews), 'session')}?", abort=True, err=True
        )
    return [journeyman.sessions.delete(row.session.id) for row in overviews]
