"""How often the gate for hosts would have asked in recorded sessions, and about what.

    python benchmarks/gate_replay.py FOLDER…

Each folder holds Claude Code transcripts (`.jsonl` or `.jsonl.gz`). Prints every call that would
have been held with its rule, then their share: the ratio to asking about every gated call.
"""

import argparse
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from journeyman import Journeyman
from journeyman.plugin.gate import GateCall, HostGate

GATED = frozenset({"Bash", "Edit", "Write", "MultiEdit", "NotebookEdit"})
_HOME = re.compile(r"/(?:Users|home)/[^/]+")


def recorded_calls(path: Path) -> Iterator[tuple[str, GateCall]]:
    """Yield the gated calls of a transcript, each with the home folder of its user."""
    seen = set()
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            try:
                entry: dict[str, Any] = json.loads(line)
            except ValueError:  # a line that the recorder broke
                continue
            content = (entry.get("message") or {}).get("content")
            for block in content if isinstance(content, list) else ():
                if not isinstance(block, dict) or block.get("name") not in GATED:
                    continue
                if block["id"] in seen:
                    continue
                seen.add(block["id"])
                cwd = entry.get("cwd", "")
                home = _HOME.match(cwd)
                call = GateCall(
                    session=path.stem, tool=block["name"], arguments=block["input"], cwd=cwd
                )
                yield (home[0] if home else "/root"), call


def main() -> None:
    """Replay the folders and print what was held."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--width", type=int, default=160)
    arguments = parser.parse_args()
    with TemporaryDirectory() as home, Journeyman(home=Path(home), environ={}) as journeyman:
        gate = HostGate(journeyman, Event())
        for folder in arguments.folders:
            gated, held = 0, Counter[str]()
            for path in sorted(folder.rglob("*.jsonl*")):
                for user_home, call in recorded_calls(path):
                    os.environ["HOME"] = user_home
                    gated += 1
                    decision, _ = gate.assess("claude-code", call)
                    if decision.answer != "allow":
                        held[decision.rule] += 1
                        about = call.arguments.get("command") or call.arguments.get("file_path")
                        print(f"{decision.rule}: {' '.join(str(about).split())[: arguments.width]}")
            total = sum(held.values())
            print(f"{folder.name}: {gated} gated calls, {total} held by {dict(held)}")
            print(f"ratio to asking about each: {total / max(gated, 1):.4f}")


if __name__ == "__main__":
    main()
