"""Learning from scratch compared with a naive pass over the same logs.

The naive pass is what one writes in an afternoon: `json.loads` for each line, tool calls and
results extracted, a result with one of six words counted as failed, equal calls counted once; on
one core. Journeyman runs as the command line does, including the start of its processes: `import`,
then `learn`, and both again with 1 % new sessions.

The logs are copies of recordings, from `--data` or else from the sample corpus. Each copy has new
UUIDs, and in a third of the longer words the last letter is replaced, so that equal texts in two
copies are rare and nothing is learned for free. Memory is the peak of the sum over all processes,
with shared pages counted once.

Run: python benchmarks/learn_speed.py [--data DIR] [--megabytes 100] [--workers N]
"""

import argparse
import gzip
import hashlib
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from journeyman.logs.log_file import LogFile
from journeyman.logs.registry import Readers
from journeyman.records.errors import NotALog
from journeyman.testing import write_corpus

_FAILED = ("error", "failed", "exception", "traceback", "denied", "not found")
_LONGEST_RECORDING = 8_000_000
_UUID = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_LONG_WORD = re.compile(rb"[a-z]{7,}")
_NAME = re.compile(rb'"([\w.-]{1,60})"')


class Recording(NamedTuple):
    """A log to copy, and its words that belong to the format and must stay."""

    name: str
    content: bytes
    fixed: frozenset[bytes]


def find_recordings(folder: Path) -> Iterator[Recording]:
    readers = Readers()
    for path in sorted(folder.rglob("*.json*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(content) <= _LONGEST_RECORDING and _is_known(readers, path):
            name = path.name.removesuffix(".gz")
            words = _LONG_WORD.findall(b" ".join(_NAME.findall(content)))
            yield Recording(name, content, frozenset((*words, *map(str.encode, _FAILED))))


def _is_known(readers: Readers, path: Path) -> bool:
    try:
        readers.reader_for(LogFile(path))
    except NotALog:
        return False
    return True


def varied(content: bytes, fixed: frozenset[bytes], copy: int) -> bytes:
    """A different recording of the same size."""
    words: dict[bytes, bytes] = {}

    def other_uuid(found: re.Match[bytes]) -> bytes:
        made = hashlib.md5(b"%d %b" % (copy, found[0])).hexdigest()
        return "-".join((made[:8], made[8:12], made[12:16], made[16:20], made[20:])).encode()

    def other_word(found: re.Match[bytes]) -> bytes:
        word = found[0]
        if word not in words:
            number = int.from_bytes(hashlib.md5(b"%d %b" % (copy, word)).digest()[:4])
            is_kept = word in fixed or number % 3
            # Only the last letter: the first may belong to an escape such as \\n.
            words[word] = word if is_kept else word[:-1] + b"%c" % (97 + number // 3 % 26)
        return words[word]

    return _LONG_WORD.sub(other_word, _UUID.sub(other_uuid, content))


def write_logs(recordings: list[Recording], folder: Path, size_bytes: int, first_copy: int) -> int:
    """Write copies of all recordings, round by round; return how many rounds were started."""
    folder.mkdir()
    written = 0
    for copy in itertools.count(first_copy):
        for name, content, fixed in recordings:
            if written >= size_bytes:
                return copy + 1
            made = varied(content, fixed, copy)
            file = varied(name.encode(), fixed, copy).decode()
            written += (folder / f"{copy:05d}-{file}").write_bytes(made)
    raise AssertionError


def naive_pass(logs: Iterable[Path]) -> tuple[int, int, int]:
    """Calls, distinct calls, and results that seem to have failed."""
    seen: set[tuple[str, str]] = set()
    calls = failures = 0
    for log in logs:
        with log.open("rb") as file:
            for line in file if log.suffix == ".jsonl" else [file.read()]:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                for call, result in _calls_and_results(record):
                    if call is not None:
                        seen.add(call)
                        calls += 1
                    else:
                        text = result.lower()
                        failures += any(word in text for word in _FAILED)
    return calls, len(seen), failures


def _calls_and_results(record: Any) -> Iterator[tuple[tuple[str, str] | None, str]]:
    messages = record if isinstance(record, list) else [record]
    for message in messages:
        if not isinstance(message, dict):
            continue
        if isinstance(message.get("function"), dict):
            function = message["function"]
            yield (str(function.get("name")), str(function.get("arguments"))), ""
        elif message.get("type") in ("tool_use", "function_call") or "arguments" in message:
            given = message.get("input", message.get("arguments"))
            yield (str(message.get("name")), json.dumps(given, sort_keys=True)), ""
        elif message.get("type") in ("tool_result", "function_call_output"):
            yield None, str(message.get("content", message.get("output")))
        elif message.get("role") == "tool":
            yield None, str(message.get("content"))
        for name in (
            "message",
            "payload",
            "content",
            "messages",
            "tool_calls",
            "traj",
            "simulations",
        ):
            if isinstance(message.get(name), dict | list):
                yield from _calls_and_results(message[name])


class Run(NamedTuple):
    """The resources that a command used, summed over its processes."""

    seconds: float
    cpu_s: float
    peak_mb: float
    report: dict[str, Any]


def run(home: Path, *arguments: object) -> Run:
    """Run a command, and measure the memory of its processes twenty times per second."""
    command = [sys.executable, "-m", "journeyman", *map(str, arguments), "--json"]
    environ = {**os.environ, "JOURNEYMAN_HOME": str(home)}
    before, began = _cpu_of_children_s(), time.perf_counter()
    peaks = [0.0]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.05):
                peaks.append(sum(map(_memory_mb, _family(process.pid))))

        watcher = threading.Thread(target=watch)
        watcher.start()
        answer, _ = process.communicate()
        seconds = time.perf_counter() - began
        ended.set()
        watcher.join()
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Run(seconds, _cpu_of_children_s() - before, max(peaks), json.loads(answer))


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def _memory_mb(pid: int) -> float:
    """The memory of a process, with its share of shared pages."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        pass
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="recordings to copy")
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="journeyman-bench-") as temporary:
        folder = Path(temporary)
        source = asked.data or write_corpus(folder / "corpus").folder
        recordings = list(find_recordings(source))
        size = asked.megabytes * 1_000_000
        rounds = write_logs(recordings, folder / "logs", size, 0)
        logs = sorted((folder / "logs").iterdir())
        megabytes = sum(log.stat().st_size for log in logs) / 1e6
        print(f"logs                {megabytes:,.0f} MB, {len(logs):,} files, {rounds} rounds")

        began, used = time.perf_counter(), time.process_time()
        calls, different, failures = naive_pass(logs)
        naive_s, naive_cpu_s = time.perf_counter() - began, time.process_time() - used
        print(
            f"naive pass          {naive_s:6.1f} s  {naive_cpu_s:6.1f} s CPU  "
            f"{megabytes / naive_s:5.1f} MB/s  {calls:,} calls, {different:,} distinct, "
            f"{failures:,} failed"
        )

        def show(name: str, one: Run, size_mb: float) -> None:
            print(
                f"{name:19s} {one.seconds:6.1f} s  {one.cpu_s:6.1f} s CPU  "
                f"{size_mb / one.seconds:5.1f} MB/s  peak {one.peak_mb:.0f} MB"
            )

        home = folder / "home"
        imported = run(home, "import", folder / "logs")
        show("import", imported, megabytes)
        learned = run(home, "learn", "--workers", asked.workers)
        show("learn", learned, megabytes)
        print(
            f"                    {imported.report['new']:,} sessions, "
            f"{learned.report['examples']:,} examples"
        )
        write_logs(recordings, folder / "logs" / "new", size // 100, rounds)
        new_import = run(home, "import", folder / "logs")
        show("import, 1 % new", new_import, megabytes)
        new_learned = run(home, "learn", "--workers", asked.workers)
        show("learn, 1 % new", new_learned, megabytes)
        first, again = imported.seconds + learned.seconds, new_import.seconds + new_learned.seconds
        peak = max(one.peak_mb for one in (imported, learned, new_import, new_learned))
        print(f"peak memory         {peak:.0f} MB")
        print(f"again with 1 % new / first time: {100 * again / first:.1f} %")
        print(f"learn / naive pass, in MB/s: {naive_s / learned.seconds:.3f}")
        print(f"import and learn / naive pass, in MB/s: {naive_s / first:.3f}")


if __name__ == "__main__":
    main()
