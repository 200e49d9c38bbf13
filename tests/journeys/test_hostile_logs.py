"""Logs are hostile input: whatever a file contains, it costs no other file, no crash, no hang and
little memory, and what was imported from it can be judged, learned from and shown.
"""

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import pytest
from tests.contracts.test_readers import READERS, logs  # noqa: F401 - a fixture
from tests.hostile_logs import (
    damaged_archives,
    damaged_bytes,
    damaged_databases,
    damaged_values,
    small,
    write_large_files,
    write_special_files,
)
from tests.waiting import LONGEST_S

MAX_MEGABYTES = 500
_BATCH = 80
_MANY = 120

T = TypeVar("T")

PROGRAM = """
import json, logging, resource, sys
from journeyman import Journeyman
# Nothing may come near this; it keeps a miss from taking the machine down with it.
resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))
logging.basicConfig(level=logging.ERROR)
home, folder, control = sys.argv[1:]
with Journeyman(home=home, environ={"HOME": home}) as journeyman:
    report = journeyman.import_logs([folder])
    with open("/proc/self/status") as status:  # not ru_maxrss, which counts the parent's memory
        peak = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
    found = [one for one in journeyman.sessions.list() if one.session.log.endswith(control)]
    again = journeyman.import_logs([folder])
    journeyman.learn()
    journeyman.profile()
    journeyman.sessions.search("prompt")
print(json.dumps({
    "peak": peak, "control": sorted(one.messages for one in found), "read": report.logs_read,
    "new": report.new, "again": again.new,
    "problems": [one.reason for one in (*report.problems, *report.ignored)],
    "skipped": len(report.skipped),
}))
"""


class Imports:
    """Imports folders of hostile files next to a good one, each folder in a process of its own."""

    def __init__(self, folder: Path, control: Path) -> None:
        self._folder, self._control = folder, control
        self.counts = Counter[str]()
        self.peak = 0
        self.misses: list[str] = []

    def folder(self) -> Path:
        """A new folder with a good log."""
        self.counts["folders"] += 1
        made = self._folder / f"logs-{self.counts['folders']}"
        made.mkdir()
        (made / "zz-control.jsonl").write_bytes(self._control.read_bytes())
        return made

    def run(self, folder: Path, files: int) -> None:
        home = self._folder / f"home-{folder.name}"
        command = [sys.executable, "-c", PROGRAM, str(home), str(folder), "zz-control.jsonl"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LONGEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            self.misses.append(f"{folder}: takes more than {LONGEST_S} s")
            return
        self.counts["files"] += files
        if done.returncode or "Traceback" in done.stderr:
            self.misses.append(f"{folder}: exit {done.returncode}: {done.stderr[-3000:]}")
            return
        answer = json.loads(done.stdout)
        self.peak = max(self.peak, answer["peak"])
        self.counts["sessions"] += answer["new"]
        self.counts["skipped lines"] += answer["skipped"]
        self.counts["refused files"] += len(answer["problems"])
        if answer["peak"] > MAX_MEGABYTES:
            self.misses.append(f"{folder}: takes {answer['peak']} MB")
        if answer["control"] != [self.control_messages]:
            self.misses.append(f"{folder}: the good log is not imported: {answer['control']}")
        shutil.rmtree(home)
        shutil.rmtree(folder)

    @property
    def control_messages(self) -> int:
        return len(self._control.read_bytes().splitlines())

    def finish(self) -> None:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        print(f"\n{counts}; peak memory {self.peak} MB; {len(self.misses)} misses")
        assert not self.misses, "\n\n".join(self.misses)


@pytest.fixture
def imports(tmp_path: Path) -> Imports:
    control = tmp_path / "control.jsonl"
    messages = [{"role": "user", "content": f"prompt {number}"} for number in range(7)]
    control.write_text("".join(json.dumps(one) + "\n" for one in messages))
    return Imports(tmp_path, control)


def hostile_texts(samples: dict[Path, str], values: int) -> Iterator[tuple[str, bytes]]:
    """Variants of each reader's samples: with this number of bad values in their fields, and, if
    that is many, damaged in every other way. They are the same in every run.
    """
    chance = random.Random(19)
    for number, (sample, reader) in enumerate(one_of_each(samples).items()):
        suffix = "".join(sample.suffixes[-2:])
        if suffix.endswith(".db"):
            continue
        content = small(sample)
        damaged = damaged_bytes(content, chance)
        packed = damaged_archives(content)
        if values < _MANY:
            damaged, packed = islice(damaged, number % 9, None, 9), islice(packed, 1)
        for name, data in chain(damaged, damaged_values(content, chance, values)):
            yield f"{number}-{reader}-{name[-80:]}{suffix}", data
        for name, data in packed:
            yield f"{number}-{reader}-{name}{suffix}.gz", data


def one_of_each(samples: dict[Path, str]) -> dict[Path, str]:
    """At most two samples of each reader, with different suffixes."""
    chosen = {}
    for path, reader in samples.items():
        chosen.setdefault((reader, path.suffix), path)
    return {path: reader for (reader, _), path in chosen.items()}


def batches(files: Iterator[T]) -> Iterator[list[T]]:
    while batch := list(islice(files, _BATCH)):
        yield batch


def write(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    count = 0
    for name, content in files:
        (folder / name).write_bytes(content)
        count += 1
    return count


def test_every_reader_has_a_sample(logs: dict[Path, str]) -> None:  # noqa: F811
    assert set(logs.values()) == {reader.name for reader in READERS.all}


def test_some_malformed_logs(imports: Imports, logs: dict[Path, str]) -> None:  # noqa: F811
    folder = imports.folder()
    imports.run(folder, write(folder, hostile_texts(logs, 6)))
    imports.finish()


def test_special_files(imports: Imports, logs: dict[Path, str]) -> None:  # noqa: F811
    folder = imports.folder()
    good = {reader: small(path) for path, reader in logs.items() if path.suffix == ".jsonl"}
    imports.run(folder, write_special_files(folder, good))
    imports.finish()


@pytest.mark.soak
def test_large_values(imports: Imports) -> None:
    folder = imports.folder()
    imports.run(folder, write_large_files(folder))
    imports.finish()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_all_malformed_logs(imports: Imports, logs: dict[Path, str]) -> None:  # noqa: F811
    for files in batches(hostile_texts(logs, _MANY)):
        folder = imports.folder()
        imports.run(folder, write(folder, files))
    imports.finish()
    assert imports.counts["files"] >= 600


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_malformed_databases(
    imports: Imports,
    logs: dict[Path, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    chance = random.Random(19)
    databases = {reader: path for path, reader in logs.items() if path.suffix == ".db"}
    for reader, sample in databases.items():
        made = tmp_path / reader
        made.mkdir()
        for files in batches(damaged_databases(sample, made, chance, _MANY)):
            folder = imports.folder()
            for name, path in files:
                path.rename(folder / f"{reader}-{name}.db")
            imports.run(folder, len(files))
    imports.finish()
