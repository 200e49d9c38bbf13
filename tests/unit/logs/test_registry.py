import gzip
from importlib.metadata import EntryPoint

import pytest
from tests.tables import table

from journeyman.logs.log_file import LogFile
from journeyman.logs.registry import GROUP, Readers
from journeyman.records.errors import LogUnreadable, NotALog


class DiaryReader:
    """A reader as another package would provide it."""

    name = "diary"
    about = "Diaries"

    def recognises(self, log):
        return log.head.startswith(b"Dear diary")

    def read(self, log, since):
        return iter(())


class Broken:
    def __init__(self):
        raise RuntimeError("needs a licence, not sk-proj-" + "Zq7Lw2Xr9" * 5)


class NotAReader:
    name = "nobody"


def plugin(value: str) -> EntryPoint:
    """Return an entry point for an object in this file."""
    return EntryPoint(name="x", value=f"{__name__}:{value}", group=GROUP)


@pytest.fixture
def log(tmp_path):
    def log(data: bytes, name: str = "file.jsonl") -> LogFile:
        (tmp_path / name).write_bytes(data)
        return LogFile(tmp_path / name)

    return log


class TestRecognition:
    def test_empty_binary_and_damaged_files(self, log):
        # Empty.
        with pytest.raises(NotALog, match=r"file\.jsonl is empty\."):
            Readers([]).reader_for(log(b""))

        # Binary.
        with pytest.raises(NotALog, match="binary data"):
            Readers([]).reader_for(log(b"\x7fELF\x00\x01\x02", "file.db"))

        # Compressed and damaged.
        packed = bytearray(gzip.compress(bytes(range(256)) * 40, mtime=0))
        packed[10:20] = b"\xff" * 10
        with pytest.raises(LogUnreadable):
            Readers([]).reader_for(log(bytes(packed), "file.jsonl.gz"))

    @table(
        ("data", "name"),
        [
            (b'{"type":"user","sessionId":"s","uuid":"u","message":{}}\n', "claude_code"),
            (b'{"type":"summary","summary":"Fixed it","leafUuid":"u"}\n', "claude_code"),
            (b'{"journeyman":1,"session":{},"messages":[]}\n', "journeyman"),
            (b'{"messages":[{"role":"user","content":"hi"}]}\n', "openai"),
        ],
    )
    def test_each_format_is_recognised(self, log, data, name):
        assert Readers([]).reader_for(log(data)).name == name


class TestPlugins:
    def test_valid_plugin(self, log):
        readers = Readers([plugin("DiaryReader")])
        assert readers.problems == []
        assert readers.named("diary").about == "Diaries"
        assert readers.reader_for(log(b"Dear diary,\n")).name == "diary"

    @table(
        ("value", "reason"),
        [
            ("Broken", "could not be loaded: needs a licence, not [hidden: "),
            ("Missing", "could not be loaded"),
            ("NotAReader", "not a reader"),
            ("plugin", "could not be loaded"),
        ],
    )
    def test_invalid_plugin_is_reported_and_others_work(self, log, value, reason):
        readers = Readers([plugin(value), plugin("DiaryReader")])
        (problem,) = readers.problems
        assert problem.path == f"{__name__}:{value}"
        assert reason in problem.reason
        assert readers.reader_for(log(b"Dear diary,\n")).name == "diary"
