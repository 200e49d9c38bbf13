"""`journeyman judge`: calls in, verdicts out, line by line."""

import sys
from collections import Counter
from typing import BinaryIO

import click
import msgspec

from journeyman.cli import shown
from journeyman.outcomes.judge import UNREADABLE, verdict_on_line

_encode = msgspec.json.Encoder().encode
_MOST_NAMED = 5


@click.command(
    epilog="""\b
Examples:
  journeyman judge calls.jsonl
  journeyman judge calls.jsonl > verdicts.jsonl
  zcat calls.jsonl.gz | journeyman judge -"""
)
@click.argument("file", type=click.File("rb"), metavar="FILE.jsonl")
@click.pass_context
def judge(ctx: click.Context, file: BinaryIO) -> None:
    """Judge tool calls: what became of each, and on what evidence.

    Each line of the file is a call: {"tool": …, "arguments": …, "result_text": …}. For each, in
    order, one line of JSON comes out: status (ok, failed, invalid, refused, interrupted or
    unknown), kind, the rule that decided and what it saw. Other fields of a line are not looked at.
    A dash reads standard input.
    """
    statuses: Counter[str] = Counter()
    unreadable: list[int] = []
    for number, line in enumerate(file, start=1):
        verdict = verdict_on_line(line)
        statuses[verdict.status] += 1
        if verdict.rule == UNREADABLE and line.strip():
            unreadable.append(number)
        # Every field, so that a reader of the lines need not know which may be missing.
        told = {"status": verdict.status, "kind": verdict.kind, "rule": verdict.rule}
        evidence = verdict.evidence.encode("utf-8", "replace").decode()
        click.echo(_encode(told | {"evidence": evidence}))
    if sys.stderr.isatty():
        counts = ", ".join(f"{count:,} {status}" for status, count in statuses.most_common())
        click.echo(
            f"{shown.many(statuses.total(), 'call')}: {counts or 'nothing to judge'}", err=True
        )
    if unreadable:
        lines = ", ".join(map(str, unreadable[:_MOST_NAMED]))
        more = ", …" if len(unreadable) > _MOST_NAMED else ""
        said = shown.many(len(unreadable), "line")
        click.echo(f"{said} could not be read as a call: {lines}{more}.", err=True)
        ctx.exit(1)
