from journeyman.logs.claude_chain import LineIds
from journeyman.logs.line_reader import Line


def line(offset, data=b"x\n"):
    return Line(1, offset, data, True)


def test_line_ids_detect_copies():
    line_ids = LineIds()
    assert line_ids.compare("a", line(0)) == "new"
    assert line_ids.compare("b", line(10)) == "new"
    assert line_ids.compare("a", line(20)) == "same"
    assert line_ids.compare("a", line(30, b"y\n")) == "other"

    # Line endings do not matter.
    line_ids = LineIds()
    line_ids.compare("a", line(0, b"x\r\n"))
    assert line_ids.compare("a", line(10, b"x")) == "same"


def test_only_lines_before_an_offset_are_stored():
    line_ids = LineIds()
    for offset, name in ((0, "a"), (10, "b"), (20, "\ud83d")):
        line_ids.compare(name, line(offset))
    later = LineIds(line_ids.before(20))
    assert [later.compare(name, line(99)) for name in ("a", "b", "\ud83d")] == [
        "same",
        "same",
        "new",
    ]
    assert LineIds(line_ids.before(None)).compare("\ud83d", line(99)) == "same"


def test_oldest_line_is_dropped_first():
    line_ids = LineIds(limit=2)
    for offset, name in enumerate("abc"):
        line_ids.compare(name, line(offset))
    assert line_ids.compare("b", line(10)) == "same"
    assert line_ids.compare("a", line(11)) == "new"
    assert len(line_ids.before(None)) == len(LineIds(line_ids.before(None)).before(None))
