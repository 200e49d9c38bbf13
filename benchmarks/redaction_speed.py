"""Speed of redaction compared with the previous engine, taken from the history of the repository.

Both engines redact the same texts: requests, arguments and results of recorded sessions, cut to the
part that learning reads. They run in separate processes, in turn, and the best of several rounds
counts. Run: python benchmarks/redaction_speed.py [--data DIR] [--before REVISION]
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from journeyman import Journeyman
from journeyman.records import join_calls
from journeyman.testing import write_corpus

_BEFORE = "8916d41"
"""The last revision with the previous engine."""

_LONGEST = 4_096
_SIZES = ((0, 50), (50, 500), (500, _LONGEST + 1))
_ROUNDS = 5
_REDACT = """
import json, sys, time
from journeyman.redaction.redactor import Redactor
texts = json.load(open(sys.argv[1]))
for text in texts[:200]:
    Redactor().text(text[::-1])  # another text, so that nothing is known when it counts
taken = []
for text in texts:
    began = time.process_time_ns()
    Redactor().text(text)
    taken.append(time.process_time_ns() - began)
print(json.dumps(taken))
"""


def collect_texts(folder: Path, data: Path | None) -> list[str]:
    """Distinct texts of recorded sessions, as learning reads them."""
    logs = data
    if logs is None:
        logs = folder / "logs"
        write_corpus(logs)
    found: dict[str, None] = {}
    with Journeyman(home=folder / "home") as journeyman:
        journeyman.import_logs([logs])
        for overview in journeyman.sessions.list(limit=1_000_000):
            messages = list(journeyman.sessions.messages(overview.session.id))
            found |= dict.fromkeys(one.text[:_LONGEST] for one in messages if one.role == "user")
            for call in join_calls(messages):
                found |= dict.fromkeys((call.arguments[:_LONGEST], (call.result or "")[:_LONGEST]))
    texts = [text for text in found if text]
    return texts[:: max(1, len(texts) // 4_000)]


def unpack_source(revision: str, folder: Path) -> Path:
    """Unpack the source of a revision."""
    done = subprocess.run(
        ["git", "archive", revision, "src"],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def measure(source: Path, texts: Path) -> list[int]:
    """Nanoseconds of processor time for each of the texts."""
    done = subprocess.run(
        [sys.executable, "-c", _REDACT, str(texts)],
        env={"PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        check=True,
    )
    taken: list[int] = json.loads(done.stdout)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="Recorded sessions; the sample corpus if omitted."
    )
    parser.add_argument("--before", default=_BEFORE, help="The revision to compare with.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as name:
        folder = Path(name)
        texts = collect_texts(folder, arguments.data)
        file = folder / "texts.json"
        file.write_text(json.dumps(texts))
        sources = {
            "before": unpack_source(arguments.before, folder / "before"),
            "now": Path(__file__).parent.parent / "src",
        }
        best: dict[str, list[int]] = {}
        for _ in range(_ROUNDS):
            for engine, source in sources.items():
                taken = measure(source, file)
                best[engine] = list(map(min, best.get(engine, taken), taken))
    print(f"{len(texts):,} texts, {sum(map(len, texts)) / 1e6:.1f} MB, best of {_ROUNDS} rounds")
    print("characters      texts   before      now")
    for least, most in _SIZES:
        chosen = [at for at, text in enumerate(texts) if least <= len(text) < most]
        if chosen:
            before, now = (sum(best[one][at] for at in chosen) for one in ("before", "now"))
            print(
                f"{least:5} to {most - 1:5} {len(chosen):7,} {before / len(chosen) / 1e3:5.0f} µs"
                f" {now / len(chosen) / 1e3:5.0f} µs  {before / now:.1f} times as fast"
            )
    before, now = sum(best["before"]), sum(best["now"])
    characters = sum(map(len, texts))
    print(f"before {characters / before * 1e3:.1f} MB/s, now {characters / now * 1e3:.1f} MB/s")
    print(f"speed now / before: {before / now:.1f}")


if __name__ == "__main__":
    main()
