"""`journeyman sessions`: list, show, search, export, delete."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text

from journeyman.cli import asked, files, shown
from journeyman.cli.asked import flag, option
from journeyman.cli.shown import Column
from journeyman.journeyman import Journeyman
from journeyman.records import Call, Message, Recorded, SearchHit, SessionOverview, Status, Verdict
from journeyman.records.message import openai_messages

_VERDICT_STYLES: dict[Status, str] = {
    **dict.fromkeys(("failed", "invalid"), "red"),
    **dict.fromkeys(("refused", "interrupted"), "yellow"),
    "ok": "green",
    "unknown": "dim",
}
_ROLE_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "dim"}


@click.group()
def sessions() -> None:
    """List, show, search, export and delete sessions.

    A session is named by its id or by any beginning of it that only one session has.
    """


@asked.command(sessions, "list")
@asked.session_options
@option("-n --limit", type=asked.SOME, default=30)
@option("--offset", "How many to pass over.", type=asked.COUNT, default=0)
def list_(
    journeyman: Journeyman, *, chosen: asked.Chosen, limit: int, offset: int, as_json: bool
) -> None:
    """List sessions, newest first.

    Examples:
      journeyman sessions list
      journeyman sessions list --source codex --since 2026-11-01
      journeyman sessions list --project .
      journeyman sessions list --project acme/app
      journeyman sessions list --min-messages 100 --json
    """
    found = journeyman.sessions.list(limit=limit, offset=offset, **chosen)
    if as_json:
        asked.print_json(found)
        return
    console = shown.console()
    nothing = "No session is stored that fits. `journeyman import` brings some in."
    said = "" if found else asked.nothing_fits(journeyman, chosen)
    shown.listed(console, found, _columns(console.width), said or nothing)
    if len(found) == limit:
        console.print(f"The newest {limit}; more with --limit or --offset.", style="dim")


def _columns(width: int) -> Sequence[Column]:
    parts, characters = (-2, 16) if width >= 100 else (-1, 10)

    def project(one: SessionOverview) -> str:
        return "/".join(one.session.project.split("/")[parts:]) or shown.UNKNOWN

    def outcome(one: SessionOverview) -> str:
        return shown.UNKNOWN if one.session.outcome is None else f"{one.session.outcome:g}"

    return (
        Column("id", lambda one: shown.short_id(one.session.id), overflow="fold", min_width=8),
        Column("source", lambda one: one.session.source, no_wrap=True),
        Column("project", project, needs=72, optional=True, max_width=20, **shown.CUT),
        Column("started", lambda one: shown.moment(one.session.started_at)[:characters], needs=60),
        Column("msgs", lambda one: one.messages, number=True),
        Column("calls", lambda one: one.calls, needs=60, number=True),
        Column("tokens", lambda one: shown.short_count(one.tokens.total), needs=110, number=True),
        Column("outcome", outcome, needs=60, optional=True),
        Column("title", lambda one: one.session.title, ratio=1, min_width=10, **shown.CUT),
    )


@asked.command(sessions)
@click.argument("session_id", metavar="ID")
@flag("--calls", "Show the tool calls with their results.", to="only_calls")
@flag("--full", "Show all of every message.")
def show(
    journeyman: Journeyman, *, session_id: str, only_calls: bool, full: bool, as_json: bool
) -> None:
    """Show a session: what is known of it, and what was said.

    Examples:
      journeyman sessions show 0442a060
      journeyman sessions show 0442a060 --calls
      journeyman sessions show 0442a060 --full | less
    """
    overview = journeyman.sessions.get(session_id)
    messages = journeyman.sessions.messages(overview.session.id)
    if as_json:
        calls = journeyman.sessions.calls(overview.session.id)
        told = {"overview": overview, "messages": [*messages], "calls": calls}
        asked.print_json(told | {"verdicts": [journeyman.judge(call) for call in calls]})
        return
    console = shown.console()
    _show_facts(console, journeyman, overview)
    console.print()
    if only_calls:
        for call in journeyman.sessions.calls(overview.session.id):
            show_call(console, call, journeyman.judge(call), full=full)
        return
    for message in messages:
        _show_message(console, message, full=full)


def _show_facts(console: Console, journeyman: Journeyman, overview: SessionOverview) -> None:
    session, tokens = overview.session, overview.tokens
    lineage = session.lineage
    children = [
        f"{shown.short_id(one.id)} ({one.lineage.kind})"
        for one in journeyman.sessions.children(session.id)
        if one.lineage
    ]
    facts = {
        "session": session.id,
        "title": session.title,
        "recorded by": f"{session.source} ({session.agent})" if session.agent else session.source,
        "model": session.model,
        "time": f"{shown.moment(session.started_at)} to {shown.moment(session.ended_at)}",
        "end": session.end_reason,
        "outcome": "" if session.outcome is None else f"{session.outcome:g}",
        "project": session.project,
        "folder": session.cwd + (f" ({session.git_branch})" if session.git_branch else ""),
        "lineage": f"{lineage.kind} of {lineage.parent}" if lineage else "",
        "children": ", ".join(children),
        "messages": f"{overview.messages:,} in {shown.many(overview.generations, 'generation')}",
        "calls": f"{overview.calls:,}, {overview.answered:,} with result",
        "tokens": f"{shown.count(tokens.total)} ({shown.count(tokens.output_tokens)} written)",
        "cost": "" if tokens.cost_usd is None else f"${tokens.cost_usd:.4f} as recorded",
        "log": session.log,
    }
    shown.facts(console, facts, width=12)


def _show_message(console: Console, message: Message, *, full: bool) -> None:
    head = Text(f"{message.role:9s} ", style=_ROLE_STYLES[message.role])
    if message.kind != "plain":
        head.append(f"({message.kind}) ", style="dim")
    if flags := _flags(message.recorded):
        head.append(f"[{', '.join(flags)}] ", style="magenta")
    if full or message.text or not message.tool_calls:
        shown.after(console, head, message.text, full=full)
    for call in message.tool_calls:
        line = Text("  → ", style="cyan").append(f"{shown.plain(call.name)} ", style="bold")
        shown.after(console, line, call.arguments, full=full, style="dim")


def show_call(console: Console, call: Call, verdict: Verdict, *, full: bool) -> None:
    """One call, its verdict and what came back, on two lines unless all is asked for."""
    line = Text(f"{call.index + 1:4d} ", style="dim").append(f"{shown.plain(call.tool)} ", "bold")
    shown.after(console, line, call.arguments, full=full, style="")
    if call.result is None:
        console.print(Text("     no result was recorded", style="dim"))
        return
    said = f"{verdict.status}: {verdict.kind}" if verdict.kind else verdict.status
    head = Text("     ").append(f"[{said}] ", style=_VERDICT_STYLES[verdict.status])
    if verdict.status == "ok" or full:
        shown.after(console, head, call.result or "(empty)", full=full)
        return
    # What decided says more than how the result begins.
    rule = f"  ({verdict.rule})"
    room = max(console.width - head.cell_len - len(rule), 20)
    head.append(shown.one_line(verdict.evidence or call.result, room), style="")
    console.print(head.append(rule, style="dim"), soft_wrap=True)


def _flags(recorded: Recorded | None) -> list[str]:
    if recorded is None:
        return []
    error = {True: "error", False: "ok", None: ""}[recorded.is_error]
    code = "" if recorded.exit_code is None else f"exit {recorded.exit_code}"
    return [*filter(None, (error, code, "interrupted" if recorded.interrupted else ""))]


def _show_hits(console: Console, hits: Sequence[SearchHit]) -> None:
    columns = (
        Column("id", lambda hit: shown.short_id(hit.session), overflow="fold"),
        Column("when", lambda hit: shown.moment(hit.at), no_wrap=True),
        Column("role", lambda hit: hit.role),
        Column("message", lambda hit: hit.snippet),
    )
    words = " ".join(click.get_current_context().params["query"])
    shown.listed(console, hits, columns, f"No message contains {words}.")


@asked.command(sessions, shows=_show_hits, fails=lambda hits: not hits)
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@asked.project_option
@asked.source_option
@option("-n --limit", type=asked.SOME, default=20)
def search(journeyman: Journeyman, *, query: Sequence[str], **options: Any) -> Sequence[SearchHit]:
    """Find messages that contain all the WORDS, newest first.

    Words in double quotes must stand together. Of a tool's result the head is searched.

    Examples:
      journeyman sessions search permission denied
      journeyman sessions search '"no such file"' --source codex
      journeyman sessions search timeout --project .
    """
    return journeyman.sessions.search(" ".join(query), **options)


@asked.command(sessions, has_json=False)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@option(
    "--format",
    "journeyman keeps everything and can be imported again; openai is chat messages.",
    to="form",
    type=click.Choice(["journeyman", "openai"]),
    default="journeyman",
)
@option(
    "--redact/--no-redact",
    "Replace secrets and personal data; default only for openai.",
    to="redacted",
    default=None,
)
@files.output_options
def export(
    journeyman: Journeyman,
    *,
    session_ids: Sequence[str],
    form: str,
    redacted: bool | None,
    **to: Any,
) -> None:
    """Write sessions as JSON, one a line.

    Journeyman's own form is a copy for yourself, with all that is in the session, secrets
    included. Use --redact before you give it to somebody else.

    Examples:
      journeyman sessions export 0442a060 > session.jsonl
      journeyman sessions export 0442a060 --redact -o to-send.jsonl
      journeyman sessions export 0442a060 --format openai -o chat.json
    """
    if redacted is None:
        redacted = form == "openai"
    told: list[Any] = [journeyman.sessions.export(one, redacted=redacted) for one in session_ids]
    if form == "openai":
        told = [
            {name: getattr(one.session, name) for name in ("id", "model")}
            | {"messages": openai_messages(one.messages)}
            for one in told
        ]
    content = b"".join(msgspec.json.encode(one) + b"\n" for one in told)
    files.put(content, "export", shown.many(len(told), "session"), **to)


def _say_deleted(deleted: Sequence[SessionOverview]) -> str:
    lines = [f"Deleted {one.session.id} ({one.messages:,} messages)." for one in deleted]
    logs = sorted({one.session.log for one in deleted if Path(one.session.log).is_file()})
    if logs:
        lines.append(f"To get back what the log still holds: journeyman import --reread {logs[0]}")
    return "\n".join(lines)


@asked.command(sessions, says=_say_deleted)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@asked.yes_option
def delete(
    journeyman: Journeyman, *, session_ids: Sequence[str], yes: bool
) -> Sequence[SessionOverview]:
    """Delete sessions with all their messages. The logs they came from are not touched.

    Examples:
      journeyman sessions delete 0442a060
      journeyman sessions delete 0442a060 1284c080 --yes
    """
    found = [journeyman.sessions.get(session_id) for session_id in session_ids]
    if not yes:
        for one in found:
            title = shown.one_line(one.session.title, 60)
            click.echo(f"{one.session.id}  {one.messages:,} messages  {title}", err=True)
        click.confirm(f"Delete {shown.many(len(found), 'session')}?", abort=True, err=True)
    return [journeyman.sessions.delete(one.session.id) for one in found]
