"""`journeyman judge`: reads calls and prints a verdict for each, line by line."""

from typing import BinaryIO

import click
import msgspec

from journeyman.cli import formatting
from journeyman.outcomes.judge import UNREADABLE, verdict_on_line

_encode = msgspec.json.Encoder().encode
_MAX_LINES_NAMED = 5


@click.command(
    epilog="""\b
Examples:
  journeyman judge calls.jsonl > verdicts.jsonl
  zcat calls.jsonl.gz | journeyman judge -"""
)
@click.argument("file", type=click.File("rb"), metavar="FILE.jsonl")
@click.pass_context
def judge(ctx: click.Context, file: BinaryIO) -> None:
    """Judge tool calls: the outcome of each, and the evidence for it.

    Each line of the file is a call: {"tool": …, "arguments": …, "result_text": …}. For each call,
    in order, one line of JSON is printed: status (ok, failed, invalid, refused, interrupted or
    unknown), kind, by whom it was refused (person, rule, hook, mode or nobody), the rule that
    decided and its evidence. Other fields of a line are ignored. A dash reads standard input.
    """
    unreadable = list[str]()
    for number, line in enumerate(file, start=1):
        verdict = verdict_on_line(line)
        if verdict.rule == UNREADABLE and line.strip():
            unreadable.append(str(number))
        # All fields, including empty ones, so that readers need not handle missing ones.
        fields = {"status": verdict.status, "kind": verdict.kind, "by": verdict.by}
        evidence = verdict.evidence.encode("utf-8", "replace").decode()
        click.echo(_encode(fields | {"rule": verdict.rule, "evidence": evidence}))
    if unreadable:
        lines = formatting.join_names(unreadable, _MAX_LINES_NAMED)
        count = formatting.pluralize(len(unreadable), "line")
        click.echo(f"{count} could not be read as a call: {lines}.", err=True)
        ctx.exit(1)
