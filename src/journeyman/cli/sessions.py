"""`journeyman sessions`: lists, shows, searches, exports and deletes sessions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.text import Text

from journeyman.cli import context, files, formatting, session_view
from journeyman.cli.context import choice, flag, number
from journeyman.cli.session_view import ListedSession
from journeyman.facade.journeyman import Journeyman
from journeyman.facade.transcript import Transcript
from journeyman.records import SessionOverview
from journeyman.records.errors import WrongInput
from journeyman.records.fragment import ExportedSession
from journeyman.records.message import openai_messages

_raw_option = flag("--raw", "Show secrets and personal data instead of placeholders.")


@click.group()
def sessions() -> None:
    """List, show, search, export and delete sessions.

    A session is identified by its id, or by any prefix that is unique.
    """


@context.command(sessions, "list", is_paged=True)
@context.session_options
@number("-n --limit", "Number of sessions to list.", default=30)
def list_(
    journeyman: Journeyman, *, filters: context.SessionFilters, limit: int, as_json: bool
) -> None:
    """List sessions, newest first, with their failed calls and their cost.

    New sessions are judged when they are first listed. Wide terminals show more columns; a cost
    with ~ is estimated from the prices of the models.

    Examples:
      journeyman sessions list
      journeyman sessions list --source codex --since 7d
    """
    # One more than is shown, to know whether there are more.
    found = journeyman.sessions.list(limit=limit + 1, **filters)
    rows = _listed(journeyman, found[:limit])
    if as_json:
        context.print_json([_as_json(row) for row in rows])
        return
    if not rows and (message := context.no_match_message(journeyman, filters)):
        raise WrongInput(message)
    console = formatting.console()
    if_empty = "No sessions are stored. `journeyman import` imports sessions."
    session_view.print_sessions(console, rows, if_empty)
    if len(found) > limit:
        shown = formatting.pluralize(limit, "session")
        console.print(f"{shown} shown; more with --limit.", style="dim")


def _listed(journeyman: Journeyman, overviews: Sequence[SessionOverview]) -> list[ListedSession]:
    ids = [overview.session.id for overview in overviews]
    with formatting.counting_bar("Judging new sessions") as progress:
        errors = journeyman.errors(overviews, progress=progress)
    usage, short_ids = journeyman.accounting.of_sessions(ids), context.short_ids(ids)
    return [
        ListedSession(overview, short_ids[id_], errors.get(id_), usage.get(id_))
        for id_, overview in zip(ids, overviews, strict=True)
    ]


def _as_json(row: ListedSession) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(row.overview),
        "short_id": row.short_id,
        "errors": row.errors,
        "cost_usd": row.usage and row.usage.cost_usd,
        "cost_estimated_share": row.usage and row.usage.estimated_share,
    }


@context.command(sessions, is_paged=True)
@click.argument("session_id", metavar="ID")
@flag("--calls", "Show only the tool calls, with their results.", dest="only_calls")
@flag("--full", "Show the messages in full.")
@number("--call N", "Show only this call, whole.", dest="call_number")
@number("--message N", "Show only this message, whole.", dest="message_number")
@_raw_option
def show(
    journeyman: Journeyman,
    *,
    session_id: str,
    only_calls: bool,
    full: bool,
    call_number: int | None,
    message_number: int | None,
    raw: bool,
    as_json: bool,
) -> None:
    """Show a session: its details and its messages, or one call or message whole.

    Secrets and personal data are shown as placeholders, so that the output can be passed on.

    Examples:
      journeyman sessions show 0442a060
      journeyman sessions show 0442a060 --call 12
      journeyman sessions show 0442a060 --message 3 --raw
    """
    if call_number and message_number:
        raise click.UsageError("Pass --call or --message, not both.")
    shown = journeyman.transcript(session_id, raw=raw)
    if as_json:
        context.print_json(_document(shown, call_number, message_number))
        return
    console = formatting.console()
    if call_number:
        call, _ = shown.call(call_number)
        asked = f"asked in message {shown.number_of(call.asked_key):,}, for the request:"
        console.print(Text(asked, style="dim"))
        console.print(formatting.safe_text(f"{shown.request_of(call)}\n"), soft_wrap=True)
        session_view.print_calls(console, shown, full=True, only=call_number)
    elif message_number:
        shown.message(message_number)
        session_view.print_messages(console, shown, full=True, only=message_number)
    else:
        children = journeyman.sessions.children(shown.overview.session.id)
        short_ids = context.short_ids(child.id for child in children)
        by_short_id = {short_ids[child.id]: child for child in children}
        session_view.print_details(console, shown.overview, by_short_id)
        console.print()
        parts = session_view.print_calls if only_calls else session_view.print_messages
        parts(console, shown, full=full)
    if shown.is_redacted:
        console.print("\nSecrets and personal data are redacted; --raw shows them.", style="dim")


def _document(
    shown: Transcript, call_number: int | None, message_number: int | None
) -> dict[str, Any]:
    if call_number:
        call, verdict = shown.call(call_number)
        message = shown.number_of(call.asked_key)
        request = shown.request_of(call)
        return {"call": call, "verdict": verdict, "message": message, "request": request}
    if message_number:
        return {"message": shown.message(message_number)}
    return {name: getattr(shown, name) for name in ("overview", "messages", "calls", "verdicts")}


@context.command(sessions, is_paged=True)
@click.argument("query", nargs=-1, required=True, metavar="WORDS...")
@context.session_options
@number("-n --limit", "Number of messages to show.", default=20)
@_raw_option
def search(
    journeyman: Journeyman,
    *,
    query: Sequence[str],
    filters: context.SessionFilters,
    raw: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find messages that contain all the WORDS, in their text or in their tool calls.

    Words in double quotes must occur together; pyt* finds words that start with pyt. Only the
    beginning of a tool's result is searched. Each match is shown with what opens it: `journeyman
    sessions show ID --call N` or `--message N`.

    Examples:
      journeyman sessions search 'pyt*'
      journeyman sessions search '"no such file"' --source codex
      journeyman sessions search timeout --project . --since '2 weeks'
    """
    words = " ".join(query)
    hits = journeyman.sessions.search(words, redacted=not raw, **options, **filters)
    if as_json:
        context.print_json(hits)
    elif hits:
        short_ids = context.short_ids(hit.session for hit in hits)
        session_view.print_hits(formatting.console(), hits, short_ids)
    else:
        no_match = context.no_match_message(journeyman, filters)
        click.echo(f"No message contains {formatting.one_line(words, 200)}. {no_match}".strip())
    if not hits:
        click.get_current_context().exit(1)


def _openai_chat(exported: ExportedSession) -> object:
    session = {name: getattr(exported.session, name) for name in ("id", "model")}
    return session | {"messages": openai_messages(exported.messages)}


@context.command(sessions, has_json=False)
@click.argument("session_ids", nargs=-1, required=True, metavar="ID...")
@choice(
    "--format",
    "journeyman is complete and can be imported again; openai is chat messages.",
    ("journeyman", "openai"),
    dest="form",
    default="journeyman",
)
@flag("--raw", "Keep secrets and personal data, for a faithful copy.")
@files.output_options
def export(
    journeyman: Journeyman,
    *,
    session_ids: Sequence[str],
    form: str,
    raw: bool,
    **destination: Any,
) -> None:
    """Write sessions as JSON, one per line, with secrets and personal data redacted.

    Journeyman's own format can be imported again. Only with --raw is it a faithful copy, secrets
    included: use that to move sessions between your own machines.

    Examples:
      journeyman sessions export 0442a060 -o to-send.jsonl
      journeyman sessions export 0442a060 --raw > session.jsonl
      journeyman sessions export 0442a060 --format openai -o chat.json
    """
    exported = [journeyman.sessions.export(id_, redacted=not raw) for id_ in session_ids]
    records = map(_openai_chat, exported) if form == "openai" else exported
    content = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
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
      journeyman sessions delete 0442a060 1284c080 --yes
    """
    overviews = [journeyman.sessions.get(session_id) for session_id in session_ids]
    if not yes:
        for row in overviews:
            title = formatting.one_line(row.session.title, 60)
            click.echo(f"{row.session.id}  {row.messages:,} messages  {title}", err=True)
        question = f"Delete {formatting.pluralize(len(overviews), 'session')}?"
        click.confirm(question, abort=True, err=True)
    return [journeyman.sessions.delete(row.session.id) for row in overviews]
