"""Makes malformed logs out of good ones: every sample is damaged as bytes, as JSON, value by value,
or as a database. A new reader is covered as soon as there is a sample of its logs.
"""

import gzip
import json
import os
import random
import re
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

_LINES, _ITEMS, _ROWS = 40, 8, 20
"""What is kept of a sample, so that thousands of variants are read quickly."""

_DEEP = 40_000
NUMBERS = ("-1", "-0.0", "1e308", "1e999", "NaN", "-Infinity", "9" * 25, "9" * 400, "9" * 5000)
TEXTS = (
    *('""', r'"\u0000"', r'"\ud800"', '"../../../etc/passwd"', '"{"', '"' + "A" * 200_000 + '"'),
    *('"2026-13-45T99:99:99Z"', '"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"'),
    # JSON inside a string is decoded later, by readers, the judge and the redaction.
    *(json.dumps("[" * depth + "]" * depth) for depth in (100, 600, _DEEP)),
    *(json.dumps('{"command":' * 600), json.dumps(f'{{"command": {"9" * 5000}}}')),
    *(json.dumps('{"a": NaN}'), json.dumps('{"a": 1, "a": 2}'), json.dumps("<think>" * 5_000)),
    *(json.dumps("```bash\n" * 5_000), json.dumps("a@" * 10_000), json.dumps(" " * 50_000 + "x")),
)
CONTAINERS = (
    *("[]", "{}", "[null]", "[[]]", '{"type": "text"}', '[1, "a", null, {}, true]'),
    *('{"a": 1, "a": 2}', '{"": ""}', "[" + "{}," * 5_000 + "{}]"),
    *("[" * depth + "]" * depth for depth in (100, 450, 600, _DEEP)),
    *('{"content":[' * depth + "1" + "]}" * depth for depth in (100, 240, 400)),
)
VALUES = ("null", "true", "0", *NUMBERS, *TEXTS, *CONTAINERS)


def small(sample: Path) -> bytes:
    """Return a sample with a few of its lines or elements."""
    content = sample.read_bytes()
    lines = content.split(b"\n")
    if len(lines) > 2:
        return b"\n".join(lines[:_LINES]) + b"\n"
    return json.dumps(_cut(json.loads(content))).encode() + b"\n"


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(item) for item in value[:_ITEMS]]
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return value


def damaged_bytes(content: bytes, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield variants of a text, whatever it contains."""
    size = len(content)
    for part in (3, 2):
        yield f"cut-{part}", content[: size // part]
    yield "cut-end", content[:-2]
    yield "late-start", content[size // 3 :]
    yield "doubled", content * 2
    yield "byte-order-mark", b"\xef\xbb\xbf" + content
    for encoding in ("utf-16", "utf-16-be", "utf-32"):
        yield encoding, content.decode("utf-8").encode(encoding, "surrogatepass")
    yield "crlf", content.replace(b"\n", b"\r\n")
    yield "no-line-breaks", content.replace(b"\n", b" ")
    yield "all-nul", bytes(5_000)
    yield "nul-tail", content + bytes(100_000)
    yield "deep-tail", content + b"[" * _DEEP + b"]" * _DEEP + b"\n" + content
    yield "deep-open-tail", content + b'{"a":[' * _DEEP
    yield "digits-tail", content + b'{"n": ' + b"7" * 5_000 + b"}\n" + content
    yield "bad-text", content.replace(b"e", b"\xff", 3)
    yield "surrogate", content.replace(b"e", rb"\ud83d", 3)
    yield "escapes", content.replace(b"\\", b"\\\\")
    yield "quotes", content.replace(b'"', b"'", 9)
    yield "constants", content.replace(b":", b":NaN,", 1)
    yield "doubled-keys", re.sub(rb'("\w+"): ?("[^"\\]*")', rb"\1:0,\1:\2", content)
    lines = content.split(b"\n")
    chance.shuffle(lines)
    yield "shuffled", b"\n".join(lines)
    for number in range(6):
        noise = bytearray(content)
        for _ in range(1 + size // 500):
            noise[chance.randrange(size)] = chance.randrange(256)
        yield f"noise-{number}", bytes(noise)
        start = chance.randrange(size)
        yield f"gap-{number}", content[:start] + content[start + chance.randrange(200) :]


def damaged_archives(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield compressed variants."""
    packed = gzip.compress(content)
    yield "cut", packed[: len(packed) // 2]
    yield "tail", packed + b"no more gzip"
    yield "noise", packed[:50] + b"\x00" * 20 + packed[70:]
    yield "twice", gzip.compress(packed)
    zeros = gzip.compress(bytes(50_000_000), 9)
    yield "bomb", packed + zeros * 20
    yield "line-bomb", gzip.compress(content + b'{"a":"' + b"a" * 90_000_000, 9)


def damaged_values(
    content: bytes, chance: random.Random, count: int
) -> Iterator[tuple[str, bytes]]:
    """Yield variants in which one field has a bad value wherever it occurs: this number of the
    pairs of a field and a value.
    """
    try:
        documents = [json.loads(content)]
    except ValueError:
        documents = [json.loads(line) for line in content.splitlines() if line.strip()]
    fields = dict.fromkeys(field for one in documents for field in _fields(one, ()))
    pairs = [(field, number) for field in fields for number in range(len(VALUES))]
    for field, number in chance.sample(pairs, min(len(pairs), count)):
        changed = "\n".join(json.dumps(_replaced(one, field)) for one in documents) + "\n"
        text = changed.replace(json.dumps(_PLACEHOLDER), VALUES[number])
        yield f"{'.'.join(field)}-{number}".replace("/", "_"), text.encode()


_PLACEHOLDER = "@hostile value@"


def _fields(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _fields(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _fields(item, (*path, "item"))


def _replaced(value: Any, path: tuple[str, ...]) -> Any:
    if not path:
        return _PLACEHOLDER
    if isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: _replaced(value[path[0]], path[1:])}
    if isinstance(value, list) and path[0] == "item":
        return [_replaced(item, path[1:]) for item in value]
    return value


def _set_cell(database: sqlite3.Connection, *, update: str, value: str | tuple[object]) -> None:
    if isinstance(value, str):
        database.execute(update + value)
    else:
        database.execute(f"{update} ?", value)


def damaged_databases(
    sample: Path, folder: Path, chance: random.Random, count: int
) -> Iterator[tuple[str, Path]]:
    """Yield variants of a database, as files in the folder: with this number of bad values in their
    columns, and damaged in other ways. Only a few rows of the sample are kept.
    """
    base = folder / "base"
    shutil.copyfile(sample, base)
    with sqlite3.connect(base, isolation_level=None) as database:
        names = [
            row[0]
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
                " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%fts%'"
            )
        ]
        columns = {
            name: [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
            for name in names
        }
        for name in names:
            database.execute(f"DELETE FROM {name} WHERE rowid > {_ROWS}")
        for (trigger,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("VACUUM")
    database.close()
    content = base.read_bytes()

    def variant(name: str, change: Callable[[sqlite3.Connection], object]) -> tuple[str, Path]:
        path = folder / f"{name}.db"
        path.write_bytes(content)
        changed = sqlite3.connect(path, isolation_level=None)
        try:
            changed.execute("PRAGMA foreign_keys = OFF")
            changed.execute("PRAGMA ignore_check_constraints = ON")
            change(changed)
        except sqlite3.Error:
            pass  # a constraint forbids this value: the variant is the sample itself
        finally:
            changed.close()
        return name, path

    def plain(name: str, data: bytes) -> tuple[str, Path]:
        (folder / f"{name}.db").write_bytes(data)
        return name, folder / f"{name}.db"

    for part in (2, 3, 10):
        yield plain(f"cut-{part}", content[: len(content) // part])
    yield plain("header-only", content[:100])
    yield plain("header-damaged", content[:16] + b"\xff" * 84 + content[100:])
    for number in range(12):
        noise = bytearray(content)
        for _ in range(20):
            noise[chance.randrange(100, len(noise))] = chance.randrange(256)
        yield plain(f"noise-{number}", bytes(noise))
    for table in names:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
        listed = ", ".join(f"x AS {column}" for column in columns[table])
        yield variant(
            f"endless-{table}",
            lambda one, table=table, view=f"{endless} {listed} FROM n": one.executescript(
                f"ALTER TABLE {table} RENAME TO moved; CREATE VIEW {table} AS {view};"
            ),
        )
        yield variant(f"without-{table}", lambda one, t=table: one.execute(f"DROP TABLE {t}"))
        yield variant(
            f"generated-{table}",
            lambda one, t=table: one.execute(
                f"ALTER TABLE {t} ADD COLUMN huge AS (hex(zeroblob(900000000)))"
            ),
        )
    pairs = [(t, c, n) for t in names for c in columns[t] for n in range(len(_CELLS))]
    for table, column, number in chance.sample(pairs, min(len(pairs), count)):
        update = f"UPDATE {table} SET {column} = "
        yield variant(
            f"{table}.{column}-{number}", partial(_set_cell, update=update, value=_CELLS[number])
        )
    base.unlink()


_CELLS: tuple[str | tuple[object], ...] = (
    *("NULL", "-1", "9e999", "-9e999", "9223372036854775807", "'text'", "x'ff00fe'"),
    *(
        "zeroblob(1000)",
        "CASE rowid WHEN 1 THEN zeroblob(40000000) END",
        "'a' || char(0) || 'b'",
        "CAST(x'ff41' AS TEXT)",
    ),
    *((json.loads(value),) for value in TEXTS if "ud800" not in value),
    *((value,) for value in (*NUMBERS, *CONTAINERS)),
)


def write_special_files(folder: Path, good: Mapping[str, bytes]) -> int:
    """Write files that are no regular files, or unusual ones, and return their number."""
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "pipe.db")
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        one.bind("socket.jsonl")
        os.chdir(here)
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "terminal.json").symlink_to("/dev/tty")
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "loop.db").symlink_to("loop.db")
    (folder / "nowhere.jsonl").symlink_to("nothing")
    (folder / "around").symlink_to(folder)
    (folder / "folder.jsonl").mkdir()
    (folder / "folder.db").mkdir()
    for name, content in good.items():
        with (folder / f"sparse-{name}.jsonl").open("wb") as file:
            file.write(content)
            file.truncate(200_000_000_000)
    with (folder / "holes.jsonl").open("wb") as file:
        file.truncate(200_000_000_000)
    with (folder / "holes.db").open("wb") as file:
        file.truncate(200_000_000_000)
    return sum(1 for _ in folder.iterdir())


def write_large_files(folder: Path) -> int:
    """Write logs whose values take more memory than their text, and return their number."""
    message = b'{"role": "user", "content": %s}'
    many = {
        "long-line.jsonl": message % (b'"' + b"a" * 100_000_000 + b'"') + b"\n",
        "long-text.jsonl": (message % (b'"\\ud83d\\ude00' + b"a" * 30_000_000 + b'"') + b"\n") * 2,
        "long-text.json": b"[" + message % ('"😀'.encode() + b"a" * 31_000_000 + b'"') + b"]",
        "escapes.json": b"[" + message % (b'"' + rb"\n" * 15_000_000 + b'"') + b"]",
        "objects.jsonl": message % (b"[" + b"{}," * 9_000_000 + b"{}]") + b"\n",
        "objects.json": b"[" + message % (b"[" + b'{"a":1},' * 3_500_000 + b"{}]") + b"]",
        "numbers.json": b"[" + b"1.5," * 7_000_000 + b"1]",
        "keys.json": b"{" + b",".join(b'"k%d":{}' % n for n in range(2_000_000)) + b"}",
        "tiny.json": b"[" + b",".join([message % b'"a"'] * 300_000) + b"]",
        "tiny.jsonl": (message % b'"a"' + b"\n") * 300_000,
        "deep.json": b"[" * 40_000 + b"]" * 40_000,
        "deep-messages.json": b'{"messages":' * 40_000,
        "digits.json": b"[" + message % (b"1" * 4_301) + b"," + message % b'"good"' + b"]",
        "blank.jsonl": b"\n" * 30_000_000,
    }
    for name, content in many.items():
        (folder / name).write_bytes(content)
    return len(many)
