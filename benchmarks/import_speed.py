"""Import of a large Claude Code log against one bare `json.loads` pass over the same lines.

The log is made from the sample corpus: its transcripts repeated under fresh ids. The import runs
in a process of its own, so that its peak memory is its own; it includes the search index and the
commit. Run: python benchmarks/import_speed.py [--megabytes 500]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from journeyman.testing import write_large_claude_log

_IMPORT = """
import json, resource, sys, time
from journeyman import Journeyman
with Journeyman(home=sys.argv[2]) as journeyman:
    began = time.perf_counter()
    report = journeyman.import_logs([sys.argv[1]])
    first = time.perf_counter() - began
    began = time.perf_counter()
    again = journeyman.import_logs([sys.argv[1]])
    second = time.perf_counter() - began
    found = len(journeyman.sessions.search("test", limit=5))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([first, second, report.new, again.unchanged, found, peak]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as folder:
        log = Path(folder, "large.jsonl")
        sessions = write_large_claude_log(log, megabytes * 1_000_000)
        lines = 0
        began = time.perf_counter()
        with log.open("rb") as file:
            for line in file:
                json.loads(line)
                lines += 1
        bare = time.perf_counter() - began
        print(f"log            {log.stat().st_size / 1e6:,.0f} MB, {lines:,} lines")
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, str(log), str(Path(folder, "home"))],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    first, second, new, unchanged, found, peak = json.loads(done.stdout)
    assert new == unchanged == sessions, f"{new} new, {unchanged} unchanged, {sessions} written"
    assert found, "the imported text is not found by searching"
    print(f"json.loads     {bare:.2f} s")
    print(f"import         {first:.2f} s, {new:,} sessions, peak memory {peak:.0f} MB")
    print(f"import again   {second:.3f} s")
    print(f"import / json.loads: {first / bare:.2f}")


if __name__ == "__main__":
    main()
