"""Import of a large Claude Code log compared with one bare `json.loads` pass over the same lines.

The log is generated from the sample corpus: its transcripts, repeated with new ids. The import runs
in a separate process, so that its peak memory is measured alone; it includes the search index and
the commit. Run: python benchmarks/import_speed.py [--megabytes 500]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from journeyman.testing import write_corpus

_SPREAD = 2_654_435_761
"""Odd, so that multiplying by it modulo 2**32 never gives the same stamp twice."""

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


def write_large_claude_log(path: Path, size_bytes: int) -> int:
    """Write complete sessions until the file has at least this size, and return their number.

    Every id of a session contains the first eight characters of its own id, so a copy with new ids
    is a single text replacement.
    """
    sample = write_corpus(path.parent / "samples").of("claude_code")
    texts = [(one.log.read_bytes(), one.id[:8].encode()) for one in sample]
    written = sessions = 0
    with path.open("wb") as file:
        while written < size_bytes:
            text, stamp = texts[sessions % len(texts)]
            sessions += 1
            fresh = b"%08x" % (sessions * _SPREAD % 2**32)
            written += file.write(text.replace(stamp, fresh))
    return sessions


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
