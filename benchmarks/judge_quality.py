"""How well the judge recognises failures, and what it costs, compared with a naive word rule.

    python benchmarks/judge_quality.py LABELLED.jsonl[.gz] [--errors]

Each line is a call with the recorder's own flag: {"source", "tool", "arguments", "result_text",
"is_error"}. The judge sees the tool, the arguments and the text, never the flag. A failure is any
verdict but ok and unknown, and an exit code that only answers "no". The naive rule calls a result a
failure if it contains one of six words. Recorders flag refused and cancelled calls as errors too.
These are known by Claude Code's fixed wordings, compared with the judge's verdicts, and left out of
a second score, which counts only failures. Both rules run on the same calls in the same run; the
ratio of their times is printed last.

The flag says nothing about a test, lint or build whose exit code the command hides, so those calls
are left out above. They are measured twice: on the labels of `hidden_runs.tsv`, assigned by hand
from a reading of each result, for the sessions in the folder of LABELLED; and on runs with a known
exit code, as if the command had ended in `| tail`. The rules were written with one half of the
labels in view, not the other.
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

from journeyman.outcomes.commands import hidden_run
from journeyman.outcomes.judge import judge
from journeyman.records import Call, ResultFlags

_WORDS = ("error", "failed", "exception", "traceback", "denied", "not found")
_HEADERS = re.compile(r"\A(?:Exit code -?\d+(?:\n|\Z)|<returncode>-?\d+</returncode>\n?)")
_NOT_FAILED = {
    "refused": ("The user doesn't want to ", "Permission for this tool use was denied"),
    "interrupted": ("<tool_use_error>Sibling tool call errored",),
}
"""How Claude Code begins the results of calls that did not run, by the verdict on them."""

_OUTPUT_TAGS = re.compile(r"\A<output>\n|</output>\s*\Z")
_ROUNDS = 15


def naive(call: Call) -> bool:
    words = (call.result or "").lower()
    return any(word in words for word in _WORDS)


def judged(call: Call) -> bool:
    verdict = judge(call)
    return verdict.status not in ("ok", "unknown") or verdict.kind == "no_match"


def judge_once(call: Call) -> bool:
    return judge(call).status not in ("ok", "unknown")


def failed(call: Call) -> bool:
    return judged(call) and judge(call).status not in ("refused", "interrupted")


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
        if judged(call) != row["is_error"]:
            missed = "missed" if row["is_error"] else "false "
            seen = f"{call.arguments[:120]} | {(call.result or '')[-160:]!r}"
            print(f"  {missed} {row['source'][:12]} {call.tool} {verdict.rule} {seen}")


_LABELS = Path(__file__).with_name("hidden_runs.tsv")


def session_calls(path: Path) -> dict[str, Call]:
    """Return the commands of a Claude Code transcript by id, with the recorder's flag."""
    calls: dict[str, Call] = {}
    for entry in read(path):
        content = (entry.get("message") or {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                arguments = msgspec.json.encode(block["input"]).decode()
                calls[block["id"]] = Call(id="", tool=block["name"], arguments=arguments)
            elif block.get("type") == "tool_result" and block["tool_use_id"] in calls:
                said = block.get("content") or ""
                text = said if isinstance(said, str) else "\n".join(one["text"] for one in said)
                flags = ResultFlags(is_error=bool(block.get("is_error")))
                whole = msgspec.structs.replace(
                    calls[block["tool_use_id"]], result=text, recorded=flags
                )
                calls[block["tool_use_id"]] = whole
    return calls


def show_hidden(folder: Path, calls: Sequence[Call], rows: Sequence[dict[str, Any]]) -> None:
    """Compare the verdicts on runs with a hidden exit code with the labels by hand."""
    print("\nruns with a hidden exit code, labelled by hand")
    labels = [line.split("\t") for line in _LABELS.read_text().splitlines()[1:]]
    for flagged in (True, False):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for half, file, session, key, label in labels:
            if file == "labelled_calls":
                flags = ResultFlags(is_error=rows[int(key)]["is_error"])
                call = msgspec.structs.replace(calls[int(key)], recorded=flags)
            else:
                paths = list((folder / file).glob(f"*{session}*"))
                if not paths:
                    continue
                call = session_calls(paths[0])[key]
            said = judge(call if flagged else msgspec.structs.replace(call, recorded=None)).status
            counts[half]["hit"] += said == label == "failed"
            counts[half]["false"] += said == "failed" != label
            counts[half]["missed"] += label == "failed" != said
            counts[half]["same"] += said == label
            counts[half]["all"] += 1
        for half, count in counts.items():
            precision = count["hit"] / max(1, count["hit"] + count["false"])
            recall = count["hit"] / max(1, count["hit"] + count["missed"])
            name = "with flags" if flagged else "text alone"
            print(f"  {name:12} {half:6} precision {precision:.3f}  recall {recall:.3f}", end="  ")
            print(f"same label {count['same']} of {count['all']}")


def show_as_if_piped(bare: Sequence[Call], rows: Sequence[dict[str, Any]]) -> None:
    """Score runs with a known exit code as if the command had ended in `| tail`."""
    for lines in (20, 5):
        piped, flags = [], []
        for call, row in zip(bare, rows, strict=True):
            command = str(row["arguments"].get("command", "")) + f" 2>&1 | tail -{lines}"
            arguments = msgspec.json.encode({"command": command}).decode()
            if hidden_run(call.arguments) or not hidden_run(arguments) or not_failed(row):
                continue
            text = _OUTPUT_TAGS.sub("", call.result or "").rstrip().splitlines()[-lines:]
            piped.append(msgspec.structs.replace(call, arguments=arguments, result="\n".join(text)))
            flags.append(row)
        score = scores([failed(call) for call in piped], flags)["all"]
        print(f"  as if piped into tail -{lines}: {len(piped)} runs  {score}")


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
    every_row = read(given.labelled)
    every_call = [as_call(row) for row in every_row]
    pairs = zip(every_call, every_row, strict=True)
    shown = [(call, row) for call, row in pairs if not hidden_run(call.arguments)]
    calls, rows = [call for call, _ in shown], [row for _, row in shown]
    failures = sum(row["is_error"] for row in rows)
    print(f"{len(rows):,} calls, {failures:,} of them failures by the recorder's flag, without")
    print(f"{len(every_row) - len(rows):,} runs with a hidden exit code\n")
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
    show_hidden(given.labelled.parent, every_call, every_row)
    show_as_if_piped(bare, rows)
    ours, theirs = seconds((judge_once, naive), every_call)
    each = 1e6 / len(every_call)
    print(f"\njudge {ours * each:.1f} µs per call, naive words {theirs * each:.1f} µs per call")
    print(f"ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
