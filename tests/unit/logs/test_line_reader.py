import gzip

import pytest
from tests.tables import table

from journeyman.logs.line_reader import BadLine, Line, LineDecoder, Lines
from journeyman.logs.log_file import MAX_VALUE_BYTES, LogFile
from journeyman.records import LogState, Skip


@pytest.fixture
def log(tmp_path):
    """Write a log file."""

    def log(data: bytes, name: str = "log.jsonl") -> LogFile:
        (tmp_path / name).write_bytes(data)
        return LogFile(tmp_path / name)

    return log


def numbers_and_data(lines):
    """Return the number, offset and data of each line; a skip unchanged."""
    return [one if isinstance(one, Skip) else one[:3] for one in lines]


def state_of(log: LogFile, **how) -> LogState:
    lines = Lines(log, None, **how)
    list(lines)
    return lines.state("test")


class TestLinePositions:
    def test_numbers_and_offsets(self, log):
        lines = Lines(log(b'{"a":1}\n{"b":2}\n'), None)
        assert numbers_and_data(lines) == [(1, 0, b'{"a":1}\n'), (2, 8, b'{"b":2}\n')]
        assert (lines.offset, lines.count, lines.resumed) == (16, 2, False)

        # Empty lines are counted but not returned.
        lines = Lines(log(b"\n  \n1\n\r\n\n2\n"), None)
        assert numbers_and_data(lines) == [(3, 4, b"1\n"), (6, 9, b"2\n")]
        assert (lines.offset, lines.count) == (11, 6)

        # Windows line endings.
        lines = Lines(log(b"[1]\r\n[2]\r\n"), None)
        found = list(lines)
        assert [line.offset for line in found] == [0, 5]
        assert [LineDecoder(list[int]).decode(line) for line in found] == [[1], [2]]

        # An unterminated last line is returned but not counted.
        lines = Lines(log(b"1\n2"), None)
        assert list(lines) == [Line(1, 0, b"1\n", True), Line(2, 2, b"2", False)]
        assert (lines.offset, lines.count) == (2, 1)

        # An empty file.
        lines = Lines(log(b""), None)
        assert list(lines) == []
        assert lines.state("test").offset == 0


def test_a_long_line_is_reported_and_the_rest_is_read(log):
    length = MAX_VALUE_BYTES + 1
    skip, line = Lines(log(b"x" * length + b"\n12\n"), None)
    assert skip.line == 1
    assert f"the line has {length + 1:,} bytes" in skip.reason
    assert line == Line(2, length + 1, b"12\n", True)


class TestIncrementalReading:
    def test_only_new_lines_are_read(self, log):
        # Unchanged.
        file = log(b"1\n2\n")
        lines = Lines(file, state_of(file))
        assert list(lines) == []
        assert lines.resumed
        assert (lines.offset, lines.count) == (4, 2)

        # Appended.
        state = state_of(log(b"1\n2\n"))
        lines = Lines(log(b"1\n2\n3\n"), state)
        assert numbers_and_data(lines) == [(3, 4, b"3\n")]
        assert lines.resumed

        # A line that was unterminated before.
        state = state_of(log(b"1\n2"))
        assert numbers_and_data(Lines(log(b"1\n23\n"), state)) == [(2, 2, b"23\n")]

        # From an earlier offset on request.
        state = state_of(log(b"1\n2\n"))
        lines = Lines(log(b"1\n2\n3\n"), state, back_to=(2, 1))
        assert numbers_and_data(lines) == [(2, 2, b"2\n"), (3, 4, b"3\n")]

    @table(
        "data",
        [
            pytest.param(b"9\n2\n3\n", id="rewritten"),
            pytest.param(b"1\n", id="truncated"),
            pytest.param(b"7\n", id="replaced by a shorter log"),
            pytest.param(b"7\n8\n", id="replaced by a log of equal length"),
        ],
    )
    def test_changed_log_is_read_from_the_start(self, log, data):
        state = state_of(log(b"1\n2\n"))
        lines = Lines(log(data), state, back_to=(2, 1))
        assert [line.number for line in lines] == list(range(1, data.count(b"\n") + 1))
        assert not lines.resumed


class TestCompressedLog:
    def test_complete_truncated_and_damaged(self, log):
        # Read completely each time.
        file = log(gzip.compress(b"1\n2\n"), "log.jsonl.gz")
        state = state_of(file)
        lines = Lines(file, state)
        assert numbers_and_data(lines) == [(1, 0, b"1\n"), (2, 2, b"2\n")]
        assert not lines.resumed

        # Truncated.
        content = b"".join(b'{"line": %d}\n' % number for number in range(20_000))
        packed = gzip.compress(content, mtime=0)
        lines = Lines(log(packed[: len(packed) // 2], "log.jsonl.gz"), None)
        *read, last = lines
        assert read
        assert all(isinstance(line, Line) for line in read)
        assert isinstance(last, Skip)
        assert "ends unexpectedly" in last.reason

        # Damaged.
        packed = bytearray(gzip.compress(b"1\n" * 100, mtime=0))
        packed[-6] ^= 0xFF
        *_, last = Lines(log(bytes(packed), "log.jsonl.gz"), None)
        assert isinstance(last, Skip)


class TestLineDecoder:
    def decode(self, data: bytes, shape=dict[str, object], *, whole=True):
        return LineDecoder(shape).decode(Line(1, 0, data, whole))

    def reason(self, data: bytes, shape=dict[str, object], *, whole=True) -> str:
        with pytest.raises(BadLine) as caught:
            self.decode(data, shape, whole=whole)
        return str(caught.value)

    @table(
        ("data", "expected"),
        [
            pytest.param(rb'{"a":"\ud83d"}', "?", id="high surrogate"),
            pytest.param(rb'{"a":"\ude00 b"}', "? b", id="low surrogate"),
            pytest.param(
                rb'{"a":"x\ud83d\ud83d\ude00"}', "x?😀", id="lone surrogate before a pair"
            ),
            pytest.param(b'{"a":NaN}', None, id="NaN"),
            pytest.param(b'{"a":-Infinity}', None, id="infinity"),
            pytest.param(b'\xef\xbb\xbf{"a":1}', 1, id="byte order mark"),
        ],
    )
    def test_values_that_need_the_standard_library_parser(self, data, expected):
        assert self.decode(data) == {"a": expected}

    def test_undecodable_lines_give_a_reason(self):
        # Invalid UTF-8.
        assert self.reason(b'{"a":"\xff"}\n').startswith("not valid UTF-8")

        # Invalid UTF-8 at the end of an unterminated line counts as truncation.
        cut = '{"a":"ö'.encode()[:-1]
        assert "cut off" in self.reason(cut, whole=False)

        # Not JSON.
        assert self.reason(b"hello\n").startswith("not valid JSON")

        # Truncated.
        assert "cut off" in self.reason(b'{"a": [1, 2', whole=False)

        # Unexpected shape.
        assert self.reason(b"[1]\n").startswith("not the expected shape")
        assert self.reason(b"[NaN]\n").startswith("not the expected shape")

        # Nested too deeply.
        assert "deep" in self.reason(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")

        # A number that is too long.
        assert "out of range" in self.reason(b'{"a":' + b"9" * 5000 + b"}\n")
