"""How sessions, their messages and calls, and search hits look on a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from journeyman.cli import formatting
from journeyman.cli.formatting import Column
from journeyman.facade.transcript import Transcript
from journeyman.records import (
    REFUSER_PHRASES,
    Call,
    Message,
    ResultFlags,
    SearchHit,
    Session,
    SessionOverview,
    Verdict,
    VerdictStatus,
)
from journeyman.records.usage import UsageLine
from journeyman.text.display import readable, readable_line

_VERDICT_STYLES: dict[VerdictStatus, str] = {
    **dict.fromkeys(("failed", "invalid"), "red"),
    **dict.fromkeys(("refused", "interrupted"), "yellow"),
    "ok": "green",
    "unknown": "dim",
}
_ROLE_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "dim"}
_INDENT = " " * 7


class ListedSession(msgspec.Struct, frozen=True):
    """A row of the list. `errors` counts the calls that failed; None if it is not known."""

    overview: SessionOverview
    short_id: str
    errors: int | None
    usage: UsageLine | None


def print_sessions(console: Console, rows: Sequence[ListedSession], if_empty: str) -> None:
    formatting.print_table(console, rows, _COLUMNS, if_empty)


def _errors_cell(row: ListedSession) -> Text | str:
    if not row.overview.calls:
        return ""
    if row.errors is None:
        return formatting.UNKNOWN
    return Text(formatting.count(row.errors), style="red" if row.errors else "")


_COLUMNS = (
    Column("id", lambda row: row.short_id, overflow="fold", min_width=8),
    Column("source", lambda row: row.overview.session.source, min_terminal_width=120, no_wrap=True),
    Column(
        "project",
        lambda row: row.overview.session.project.rpartition("/")[2] or formatting.UNKNOWN,
        min_terminal_width=100,
        optional=True,
        max_width=12,
        **formatting.TRUNCATED,
    ),
    Column(
        "started",
        lambda row: formatting.local_time(row.overview.session.started_at)[:10],
        min_terminal_width=72,
        no_wrap=True,
    ),
    Column("errors", _errors_cell, min_terminal_width=50, numeric=True),
    Column(
        "cost",
        lambda row: formatting.short_cost(row.usage),
        min_terminal_width=120,
        optional=True,
        numeric=True,
    ),
    Column(
        "title",
        lambda row: row.overview.session.title,
        ratio=1,
        min_width=10,
        **formatting.TRUNCATED,
    ),
)


def print_details(
    console: Console, overview: SessionOverview, children: Mapping[str, Session]
) -> None:
    """Print what is known about a session; its children come by their short ids."""
    session, tokens = overview.session, overview.tokens
    lineage = session.lineage
    kinds = ((id_, child.lineage) for id_, child in children.items())
    descendants = [f"{short_id} ({kind.kind})" for short_id, kind in kinds if kind]
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
        "folder": readable_line(session.cwd)
        + (f" ({session.git_branch})" if session.git_branch else ""),
        "opening": session.opening,
        "lineage": f"{lineage.kind} of {lineage.parent}" if lineage else "",
        "children": ", ".join(descendants),
        "messages": f"{overview.messages:,} in {generations}",
        "calls": f"{overview.calls:,}, {overview.answered:,} with a result",
        "tokens": f"{formatting.count(tokens.total)} ({output_tokens} output)",
        "cost": "" if tokens.cost_usd is None else f"${tokens.cost_usd:.4f} as recorded",
        "log": session.log,
    }
    formatting.print_fields(console, fields)


def print_messages(
    console: Console, shown: Transcript, *, full: bool, only: int | None = None
) -> None:
    """Print every message with its number and its calls, each on one line or in `full`; or `only`
    one message.
    """
    numbers: dict[str, list[int]] = {}
    for call in shown.calls:
        numbers.setdefault(call.asked_key, []).append(call.index + 1)
    for number, message in enumerate(shown.messages, start=1):
        if number == (only or number):
            _print_message(console, number, message, numbers.get(message.key, ()), full=full)


def _print_message(
    console: Console, number: int, message: Message, calls: Sequence[int], *, full: bool
) -> None:
    label = Text(f"{number:4d} ", style="dim")
    label.append(f"{message.role:9s} ", style=_ROLE_STYLES[message.role])
    marks = (message.kind if message.kind != "plain" else "", "copy" if message.copied else "")
    label.append("".join(f"({mark}) " for mark in filter(None, marks)), style="dim")
    if flags := _flags(message.recorded):
        label.append(f"[{', '.join(flags)}] ", style="magenta")
    if full:
        about = (formatting.local_time(message.at), message.model, message.tool_name)
        label.append(readable("  ".join(filter(None, about))), style="dim")
        console.print(label)
        _print_block(console, "reasoning", message.reasoning)
        _print_block(console, "", message.text)
    elif message.text or not message.tool_calls:
        formatting.print_labelled(console, label, message.text)
    for index, call in enumerate(message.tool_calls):
        name = f"call {calls[index]} " if index < len(calls) else ""
        line = Text(f"     → {name}", style="cyan").append(f"{readable(call.name)} ", style="bold")
        formatting.print_labelled(console, line, call.arguments, full=full, style="dim")


def print_calls(
    console: Console, shown: Transcript, *, full: bool, only: int | None = None
) -> None:
    """Print every call with its verdict, on two lines or in `full`; or `only` one call."""
    for call, verdict in zip(shown.calls, shown.verdicts, strict=True):
        if call.index + 1 == (only or call.index + 1):
            print_call(console, call, verdict, full=full)


def print_call(console: Console, call: Call, verdict: Verdict, *, full: bool) -> None:
    """Print a call, its verdict and its result, on two lines or in `full`."""
    line = Text(f"{call.index + 1:4d} ", style="dim").append(f"{readable(call.tool)} ", "bold")
    label = Text("     ").append(f"[{_outcome(verdict)}] ", style=_VERDICT_STYLES[verdict.status])
    if full:
        about = (formatting.local_time(call.asked_at), call.model, *_flags(call.recorded))
        line.append(readable("  ".join(filter(None, about))), style="dim")
        rule = f"(rule {verdict.rule})"
        label.append(f"{readable_line(verdict.evidence)}  ", style="").append(rule, style="dim")
        console.print(line, label, sep="\n", soft_wrap=True)
        for name, text in _argument_texts(call.arguments).items():
            _print_block(console, name, text)
        _print_block(console, "what the model wrote, before a hook rewrote it", call.requested)
        result = "no result was recorded" if call.result is None else call.result or "(empty)"
        _print_block(console, "result", result)
        return
    formatting.print_labelled(console, line, call.arguments)
    if call.result is None:
        console.print("     no result was recorded", style="dim")
    elif verdict.status == "ok":
        formatting.print_labelled(console, label, call.result or "(empty)")
    else:  # the evidence is more informative than the beginning of the result
        rule = f"  ({verdict.rule})"
        room = max(console.width - label.cell_len - len(rule), 20)
        label.append(formatting.one_line(verdict.evidence or call.result, room), style="")
        console.print(label.append(rule, style="dim"), soft_wrap=True)


def _argument_texts(arguments: str) -> dict[str, str]:
    """Return the arguments one by one, or together if they are not a JSON object."""
    try:
        decoded = msgspec.json.decode(arguments, type=dict[str, Any])
    except (ValueError, RecursionError):
        return {"arguments": arguments}
    return {
        f"argument {name}": value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in decoded.items()
    }


def _print_block(console: Console, title: str, text: str) -> None:
    """Print a text whole, indented below its title."""
    if text:
        if title:
            console.print(Text(f"     {readable(title)}", style="cyan"))
        body = readable(text).replace("\n", f"\n{_INDENT}")
        console.print(Text(f"{_INDENT}{body}"), soft_wrap=True)


def _outcome(verdict: Verdict) -> str:
    if verdict.by:
        return f"{verdict.status} {REFUSER_PHRASES[verdict.by]}"
    return f"{verdict.status}: {verdict.kind}" if verdict.kind else verdict.status


def _flags(recorded: ResultFlags | None) -> list[str]:
    if recorded is None:
        return []
    error = {True: "error", False: "ok", None: ""}[recorded.is_error]
    code = "" if recorded.exit_code is None else f"exit {recorded.exit_code}"
    return [*filter(None, (error, code, "interrupted" if recorded.interrupted else ""))]


def print_hits(console: Console, hits: Sequence[SearchHit], short_ids: Mapping[str, str]) -> None:
    """Print each hit with what opens it in `sessions show`, and the text around the match."""
    for hit in hits:
        is_result = hit.role == "tool" and hit.tool
        where = f"result of {hit.tool}" if is_result else hit.tool or hit.role
        line = Text.assemble(
            (short_ids[hit.session], "bold"),
            (f" --message {hit.message}", "cyan"),
            f"  {readable(where)}",
            (f"  {formatting.local_time(hit.at)}", "dim"),
        )
        console.print(line, soft_wrap=True)
        snippet = formatting.safe_text(hit.snippet)
        snippet.highlight_regex(r"\[[^\[\]]+\]", "bold yellow")
        console.print(Padding(snippet, (0, 0, 0, 4)))
