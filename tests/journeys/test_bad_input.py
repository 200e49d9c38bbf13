"""Bad input gets a clear message and does not affect the rest of an import."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.program import Command
from tests.tables import table

from journeyman.testing import Corpus


def claude_line(number: int, session: str = "s1", **fields: object) -> dict[str, object]:
    return {
        "type": "user",
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": session,
        "timestamp": f"2026-10-01T10:00:{number:02d}Z",
        "message": {"role": "user", "content": f"prompt {number}"},
        **fields,
    }


def write_lines(path: Path, lines: list[object]) -> Path:
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


@table(
    ("bad", "said"),
    [
        (json.dumps(claude_line(5)).encode()[:60], "not valid JSON"),
        (json.dumps(claude_line(5)).encode().replace(b"prompt", b"\xff\xfe"), "UTF-8"),
        (b"\x00\x01\x02 binary \x03", "not valid JSON"),
        (b'["a list"]', "expected shape"),
        (b"42", "expected shape"),
        (json.dumps(claude_line(5, message=None)).encode(), "has no message"),
        (json.dumps(claude_line(5, message={"content": 7})).encode(), "expected shape"),
        (b'{"a":' * 100_000, "levels deep"),
        (json.dumps(claude_line(5, pad="x" * 50_000_000)).encode(), "bytes"),
    ],
    ids=[
        "truncated line",
        "invalid UTF-8",
        "binary in text",
        "a list",
        "a number",
        "no message",
        "content of a wrong type",
        "deeply nested",
        "a 50 MB line",
    ],
)
def test_only_the_bad_line_is_skipped(tmp_path: Path, bad: bytes, said: str) -> None:
    command = Command(Path(tempfile.mkdtemp(dir=tmp_path)))
    lines = [claude_line(1), claude_line(2), bad, claude_line(3)]
    log = write_lines(command.home / "log.jsonl", lines)
    report = command.json("import", log)
    assert report["skipped_lines"] == 1
    (skipped,) = report["skipped"]
    assert (skipped["log"], skipped["line"]) == (str(log), 3)
    assert said in skipped["reason"]
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 3
    assert "log.jsonl:3" in command("import", log, "--reread").stdout


def test_a_truncated_last_line_is_read_once_complete(command: Command) -> None:
    log = write_lines(command.home / "log.jsonl", [claude_line(1), claude_line(2)])
    whole = log.read_bytes()
    log.write_bytes(whole[:-20])
    report = command.json("import", log)
    assert "cut off" in report["skipped"][0]["reason"]
    log.write_bytes(whole)
    assert command.json("import", log)["skipped"] == []
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 2


@table(
    ("content", "said"),
    [
        (b"", "is empty"),
        (random.Random(1).randbytes(5000), "binary data"),
        (b"just some words\n", "no reader recognises"),
        (b"{}", "no reader recognises"),
        (b"[]", "no reader recognises"),
        (b"[1, 2", "no reader recognises"),
    ],
)
def test_a_file_that_is_not_a_log(
    tmp_path: Path, corpus: Corpus, content: bytes, said: str
) -> None:
    command = Command(Path(tempfile.mkdtemp(dir=tmp_path)))
    folder = command.home / "logs"
    folder.mkdir()
    bad, good = folder / "bad.jsonl", folder / "good.jsonl"
    bad.write_bytes(content)
    good.write_bytes(corpus.logs("chat")[0].read_bytes())
    named = command.json("import", bad, code=1)
    assert said in named["problems"][0]["reason"]
    in_folder = command.json("import", folder)
    assert said in in_folder["ignored"][0]["reason"]
    assert in_folder["new"] == len(corpus.of("chat"))


def test_a_missing_path(command: Command, corpus: Corpus) -> None:
    report = command.json("import", command.home / "nothing", corpus.logs("chat")[0], code=1)
    assert "No such file" in report["problems"][0]["reason"]
    assert report["new"] == len(corpus.of("chat"))


def test_duplicate_ids_stay_separate(command: Command) -> None:
    other = claude_line(1, message={"role": "user", "content": "something else"})
    lines = [claude_line(1), claude_line(1), other, claude_line(2)]
    report = command.json("import", write_lines(command.home / "log.jsonl", lines))
    assert "used twice" in report["skipped"][0]["reason"]
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 3
    chats = [{"id": "same", "messages": [{"role": "user", "content": str(n)}]} for n in range(2)]
    report = command.json("import", write_lines(command.home / "chats.jsonl", chats))
    assert report["new"] == 2


def test_a_cycle_in_parent_links(command: Command) -> None:
    lines = [claude_line(1, parentUuid="u2"), claude_line(2, parentUuid="u1")]
    command("import", write_lines(command.home / "log.jsonl", lines))
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 2


def test_a_folder_that_cannot_be_read(command: Command, corpus: Corpus) -> None:
    folder = command.home / "logs"
    (folder / "closed").mkdir(parents=True)
    good = folder / "good.jsonl"
    good.write_bytes(corpus.logs("chat")[0].read_bytes())
    program = [sys.executable, "-m", "journeyman", "import", str(folder), "--json"]
    if os.getuid() == 0:
        # Root can read everything unless these capabilities are dropped.
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("needs setpriv to test this as root")
        program = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *program]
    (folder / "closed").chmod(0)
    done = subprocess.run(program, env=command.environ, capture_output=True, text=True, check=False)
    (folder / "closed").chmod(0o700)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["new"] == len(corpus.of("chat"))
    (problem,) = report["problems"]
    assert problem["path"] == str(folder / "closed")
    assert "Permission denied" in problem["reason"]


def test_a_file_name_that_is_not_valid_text(command: Command, corpus: Corpus) -> None:
    odd = os.fsencode(command.home) + b"/odd\xff.jsonl"
    with open(odd, "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(corpus.logs("chat")[0].read_bytes())
    report = command.json("import", command.home)
    assert report["new"] == len(corpus.of("chat"))
    assert command.json("import", command.home)["unchanged"] == len(corpus.of("chat"))
    missing = os.fsdecode(b"nothing\xff")
    assert "No such file" in command.json("import", missing, code=1)["problems"][0]["reason"]


def test_a_file_name_that_is_too_long(command: Command, corpus: Corpus) -> None:
    report = command.json("import", "a" * 300, corpus.logs("chat")[0], code=1)
    assert "too long" in report["problems"][0]["reason"]
    assert report["new"] == len(corpus.of("chat"))


def test_a_document_with_invalid_utf8(command: Command) -> None:
    log = command.home / "chat.json"
    log.write_bytes(b'[{"role":"user","content":"caf\xe9"},{"role":"user","content":"more"}]')
    report = command.json("import", log)
    assert (report["new"], report["skipped"]) == (1, [])
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 2


def test_a_first_line_of_one_megabyte(command: Command) -> None:
    first = claude_line(1, message={"role": "user", "content": "x" * 1_000_000})
    log = write_lines(command.home / "log.jsonl", [first, claude_line(2)])
    command("import", log)
    (one,) = command.json("sessions", "list")
    assert (one["session"]["source"], one["messages"]) == ("claude_code", 2)


def test_a_log_that_was_truncated(command: Command) -> None:
    log = write_lines(command.home / "log.jsonl", [claude_line(n) for n in range(1, 9)])
    command("import", log)
    write_lines(log, [claude_line(n) for n in range(1, 3)])
    report = command.json("import", log)
    assert report["read_bytes"] >= 0
    (one,) = command.json("sessions", "list")
    assert one["messages"] == 2


def test_reading_hermes_creates_no_files_next_to_its_database(
    command: Command, corpus: Corpus
) -> None:
    folder = command.home / "hermes"
    folder.mkdir()
    copy = folder / "state.db"
    copy.write_bytes(corpus.logs("hermes")[0].read_bytes())
    hermes = sqlite3.connect(copy)
    hermes.execute("PRAGMA journal_mode=WAL")
    hermes.close()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert command.json("import", copy)["new"] == len(corpus.of("hermes"))
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert command.json("import", copy)["logs_unchanged"] == 1


def test_a_locked_store(command: Command, corpus: Corpus) -> None:
    command("import", corpus.logs("chat")[0])
    store = sqlite3.connect(command.home / ".journeyman" / "journeyman.db")
    store.execute("BEGIN IMMEDIATE")
    log = corpus.logs("codex")[0]
    done = command("import", log, code=1, JOURNEYMAN_BUSY_TIMEOUT_S="0.2")
    assert "Another process is writing" in done.stderr
    assert len(command.json("sessions", "list")) == len(corpus.of("chat"))
    store.rollback()
    store.close()
    command("import", log)


@pytest.mark.soak  # takes as long as the timeout of the reader
def test_a_locked_hermes_database(command: Command, corpus: Corpus) -> None:
    copy = command.home / "state.db"
    copy.write_bytes(corpus.logs("hermes")[0].read_bytes())
    hermes = sqlite3.connect(copy, isolation_level=None)
    hermes.execute("PRAGMA journal_mode=DELETE")
    hermes.execute("BEGIN EXCLUSIVE")
    chat = corpus.logs("chat")[0]
    report = command.json("import", copy, chat, code=1)
    assert "locked" in report["problems"][0]["reason"]
    assert report["new"] == len(corpus.of("chat"))
    hermes.execute("ROLLBACK")
    hermes.close()
    assert command.json("import", copy)["new"] == len(corpus.of("hermes"))


def test_a_sqlite_file_of_another_program(command: Command) -> None:
    other = sqlite3.connect(command.home / "other.db")
    other.execute("CREATE TABLE songs (title TEXT)")
    other.commit()
    other.close()
    report = command.json("import", command.home / "other.db", code=1)
    assert "SQLite file of another program" in report["problems"][0]["reason"]


def test_a_damaged_hermes_database(command: Command, corpus: Corpus) -> None:
    copy = command.home / "state.db"
    copy.write_bytes(corpus.logs("hermes")[0].read_bytes()[:50_000])
    report = command.json("import", copy, code=1)
    assert report["problems"][0]["path"] == str(copy)
    assert command.json("sessions", "list") == []


@table("version", [12, 30])
def test_hermes_databases_old_and_new(tmp_path: Path, version: int) -> None:
    command = Command(Path(tempfile.mkdtemp(dir=tmp_path)))
    file = command.home / "state.db"
    database = sqlite3.connect(file)
    newer = "" if version == 12 else ", active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0"
    database.executescript(f"""
        CREATE TABLE schema_version (version INTEGER);
        INSERT INTO schema_version VALUES ({version});
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT,
            parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, title TEXT,
            input_tokens INTEGER, output_tokens INTEGER);
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT,
            content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL
            {newer});
        INSERT INTO sessions VALUES
            ('20261001_100000_abcdef', 'cli', 'm', NULL, NULL, 1.0, 9.0, 'cli_close', 'T', 5, 6);
        INSERT INTO messages (session_id, role, content, timestamp)
            VALUES ('20261001_100000_abcdef', 'user', 'hello', 2.0);
    """)
    database.close()
    assert command.json("import", file)["new"] == 1
    (one,) = command.json("sessions", "list")
    assert (one["messages"], one["tokens"]["input_tokens"]) == (1, 5)
    assert one["session"]["end_reason"] == "cli_close"
