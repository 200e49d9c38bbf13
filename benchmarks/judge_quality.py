"""How well the judge recognises failures, and what it costs, compared with a naive word rule.

    python benchmarks/judge_quality.py LABELLED.jsonl[.gz] [--errors]

Each line is a call with the recorder's own flag: {"source", "tool", "arguments", "result_text",
"is_error"}. The judge sees the tool, the arguments and the text, never the flag. A failure is any
verdict but ok and unknown. The naive rule calls a result a failure if it contains one of six words.
Recorders flag refused and cancelled calls as errors too. These are known by Claude Code's fixed
wordings, compared with the judge's verdicts, and left out of a second score, which counts only
failures. Both rules run on the same calls in the same run; the ratio of their times is printed
last.
"""

import argparse
import gzip
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from journeyman.outcomes.judge import judge
from journeyman.records import Call

_WORDS = ("error", "failed", "exception", "traceback", "denied", "not found")
_HEADERS = re.compile(r"\A(?:Exit code -?\d+(?:\n|\Z)|<returncode>-?\d+</returncode>\n?)")
_NOT_FAILED = {
    "refused": ("The user doesn't want to ", "Permission for this tool use was denied"),
    "interrupted": ("<tool_use_error>Sibling tool call errored",),
}
"""How Claude Code begins the results of calls that did not run, by the verdict on them."""

_ROUNDS = 15


def naive(call: Call) -> bool:
    words = (call.result or "").lower()
    return any(word in words for word in _WORDS)


def judged(call: Call) -> bool:
    return judge(call).status not in ("ok", "unknown")


def failed(call: Call) -> bool:
    return judge(call).status in ("failed", "invalid")


def not_failed(row: dict[str, Any]) -> str:
    """Return the verdict on a flagged call that did not run, or an empty text for any other."""
    if not row["is_error"]:
        return ""
    text = row["result_text"]
    return next((status for status, heads in _NOT_FAILED.items() if text.startswith(heads)), "")


def read(path: Path) -> list[dict[str, Any]]:
    written = path.read_bytes()
    text = gzip.decompress(written) if path.suffix == ".gz" else written
    return [json.loads(line) for line in text.splitlines()]


def as_call(row: dict[str, Any]) -> Call:
    arguments = msgspec.json.encode(row["arguments"]).decode()
    return Call(id="", tool=row["tool"], arguments=arguments, result=row["result_text"])


def scores(said: Sequence[bool], rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for failed, row in zip(said, rows, strict=True):
        at = 0 if failed and row["is_error"] else 1 if failed else 2 if row["is_error"] else None
        for source in ("all", row["source"]):
            if at is not None:
                counts[source][at] += 1
    shown = {}
    for source, (hits, false, missed) in counts.items():
        precision = hits / (hits + false) if hits + false else 0.0
        recall = hits / (hits + missed) if hits + missed else 0.0
        f1 = 2 * hits / (2 * hits + false + missed) if hits else 0.0
        shown[source] = f"precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.4f}"
    return shown


def seconds(rules: Sequence[Callable[[Call], bool]], calls: Sequence[Call]) -> list[float]:
    """Return the processor time of each rule on all calls: the best of several rounds, in turns, so
    that other work on the machine affects all rules alike.
    """
    best = [float("inf")] * len(rules)
    for _ in range(_ROUNDS):
        for index, rule in enumerate(rules):
            started = time.process_time()
            for call in calls:
                rule(call)
            best[index] = min(best[index], time.process_time() - started)
    return best


def show(title: str, calls: Sequence[Call], rows: Sequence[dict[str, Any]]) -> None:
    print(title)
    for name, rule in (("judge", judged), ("naive words", naive)):
        for source, score in scores([rule(call) for call in calls], rows).items():
            print(f"  {name:12} {source:36} {score}")


def show_apart(calls: Sequence[Call], rows: Sequence[dict[str, Any]]) -> None:
    """Compare refused and cancelled calls by status, and score the rest by failures alone."""
    print("\nrefused and cancelled calls counted apart")
    wordings = [not_failed(row) for row in rows]
    verdicts = [judge(call) for call in calls]
    for status in _NOT_FAILED:
        known = [
            verdict for verdict, name in zip(verdicts, wordings, strict=True) if name == status
        ]
        found = sum(verdict.status == status for verdict in known)
        by = Counter(verdict.by or "not said" for verdict in known if verdict.status == "refused")
        others = sum(verdict.status == status for verdict in verdicts) - found
        who = ", by " + ", ".join(f"{name} {count}" for name, count in by.items()) if by else ""
        print(f"  {status}: {found} of {len(known)}{who}; {others} further calls judged so")
    rest = [(call, row) for call, row, name in zip(calls, rows, wordings, strict=True) if not name]
    said = [failed(call) for call, _ in rest]
    for source, score in scores(said, [row for _, row in rest]).items():
        print(f"  {'failures':12} {source:36} {score}")


def show_errors(calls: Sequence[Call], rows: Sequence[dict[str, Any]]) -> None:
    for call, row in zip(calls, rows, strict=True):
        verdict = judge(call)
        if (verdict.status not in ("ok", "unknown")) != row["is_error"]:
            missed = "missed" if row["is_error"] else "false "
            seen = f"{call.arguments[:120]} | {(call.result or '')[-160:]!r}"
            print(f"  {missed} {row['source'][:12]} {call.tool} {verdict.rule} {seen}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("labelled", type=Path, nargs="?", help="labelled calls, one per line")
    parser.add_argument("--errors", action="store_true", help="list misjudged calls")
    given = parser.parse_args()
    if given.labelled is None:
        print("Nothing was measured: pass a file of labelled calls.")
        return
    if not given.labelled.exists():
        sys.exit(f"{given.labelled} does not exist: pass a file of labelled calls.")
    rows = read(given.labelled)
    calls = [as_call(row) for row in rows]
    failures = sum(row["is_error"] for row in rows)
    print(f"{len(rows):,} calls, {failures:,} of them failures by the recorder's flag\n")
    show("as recorded", calls, rows)
    show_apart(calls, rows)
    bare = [
        msgspec.structs.replace(call, result=_HEADERS.sub("", call.result or "")) for call in calls
    ]
    show("\nwith the harness's exit-code headers removed", bare, rows)
    if given.errors:
        print("\nmisjudged as recorded")
        show_errors(calls, rows)
        print("\nmisjudged without headers")
        show_errors(bare, rows)
    ours, theirs = seconds((judged, naive), calls)
    each = 1e6 / len(calls)
    print(f"\njudge {ours * each:.1f} µs per call, naive words {theirs * each:.1f} µs per call")
    print(f"ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
