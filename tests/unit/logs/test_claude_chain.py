from journeyman.logs.claude_chain import Copies
from journeyman.logs.lines import Line


def line(offset, data=b"x\n"):
    return Line(1, offset, data, True)


def test_what_is_a_copy():
    # New the same and another.
    copies = Copies()
    assert copies.compare("a", line(0)) == "new"
    assert copies.compare("b", line(10)) == "new"
    assert copies.compare("a", line(20)) == "same"
    assert copies.compare("a", line(30, b"y\n")) == "other"

    # The end of a line makes no difference.
    copies = Copies()
    copies.compare("a", line(0, b"x\r\n"))
    assert copies.compare("a", line(10, b"x")) == "same"


def test_remembered_are_the_lines_before_an_offset():
    copies = Copies()
    for offset, name in ((0, "a"), (10, "b"), (20, "\ud83d")):
        copies.compare(name, line(offset))
    later = Copies(copies.before(20))
    assert [later.compare(name, line(99)) for name in ("a", "b", "\ud83d")] == [
        "same",
        "same",
        "new",
    ]
    assert Copies(copies.before(None)).compare("\ud83d", line(99)) == "same"


def test_the_oldest_is_forgotten_first():
    copies = Copies(limit=2)
    for offset, name in enumerate("abc"):
        copies.compare(name, line(offset))
    assert copies.compare("b", line(10)) == "same"
    assert copies.compare("a", line(11)) == "new"
    assert len(copies.before(None)) == len(Copies(copies.before(None)).before(None))
