"""Reports as files: whole or not at all."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.records.errors import WrongInput
from journeyman.reliability.profile import Profile, profile
from journeyman.reports import draw, write_page


def judged(number: int = 3) -> list[JudgedSession]:
    verdicts = [Verdict(status="ok", rule="r"), Verdict(status="failed", rule="r", evidence="no")]
    calls = tuple(
        JudgedCall(call_id=str(at), tool="Bash", verdict=verdicts[at % 2], index=at)
        for at in range(12)
    )
    return [
        JudgedSession(
            id=SessionId(f"s{at}"), source="test", model="m", messages=30, tags=(), calls=calls
        )
        for at in range(number)
    ]


def full() -> Profile:
    return profile(judged())


@table(("name", "beginning"), [("a.png", b"\x89PNG"), ("a.svg", b"<svg"), ("A.SVG", b"<svg")])
def test_a_chart_as_the_name_ends(tmp_path: Path, name: str, beginning: bytes) -> None:
    draw(full(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_an_old_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("old")
    draw(full(), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg").read_text() != "old"


@table("name", ["a.pdf", "a", ".png"])
def test_another_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongInput, match=r"must end in \.png or \.svg\.$"):
        draw(full(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_to_draw_and_nowhere_to(tmp_path: Path) -> None:
    # Nothing to draw.
    with pytest.raises(WrongInput, match="nothing to draw: There are no sessions"):
        draw(profile([]), tmp_path / "a.png")

    # A folder that is not there.
    with pytest.raises(WrongInput, match=r"chart cannot .*nowhere.* No such file"):
        draw(full(), tmp_path / "nowhere" / "a.png")
    with pytest.raises(WrongInput, match=r"page cannot .*nowhere.* No such file"):
        write_page(full(), judged(), tmp_path / "nowhere" / "a.html", made_at=0.0)

    # A place that cannot be written to.
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(WrongInput, match=r"a\.svg: Is a directory"):
        draw(full(), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@table(("number", "title"), [(1, "Reliability of 1 session of test"), (3, "of 3 sessions of test")])
def test_a_page_says_what_it_is_of(tmp_path: Path, number: int, title: str) -> None:
    sessions = judged(number)
    write_page(profile(sessions), sessions, tmp_path / "a.html", made_at=1_780_000_000.0)
    text = (tmp_path / "a.html").read_text()
    assert title in text
    assert "28 May 2026" in text
