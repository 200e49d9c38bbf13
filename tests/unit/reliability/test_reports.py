"""Reports are written to files completely or not at all."""

from pathlib import Path

import pytest
from tests.tables import table

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.records.errors import WrongInput
from journeyman.reliability.profile import Profile, profile
from journeyman.reliability.reports import write_chart, write_html_report


def judged_sessions(number: int = 3) -> list[JudgedSession]:
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


def full_profile() -> Profile:
    return profile(judged_sessions())


@table(("name", "beginning"), [("a.png", b"\x89PNG"), ("a.svg", b"<svg"), ("A.SVG", b"<svg")])
def test_file_name_decides_the_format(tmp_path: Path, name: str, beginning: bytes) -> None:
    write_chart(full_profile(), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


def test_existing_file_is_replaced_without_leftovers(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("old")
    write_chart(full_profile(), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg").read_text() != "old"


@table("name", ["a.pdf", "a", ".png"])
def test_other_suffix_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongInput, match=r"must end in \.png or \.svg\.$"):
        write_chart(full_profile(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_no_data_and_unwritable_paths(tmp_path: Path) -> None:
    # Nothing to draw.
    with pytest.raises(WrongInput, match="nothing to draw: There are no sessions"):
        write_chart(profile([]), tmp_path / "a.png")

    # A missing folder.
    with pytest.raises(WrongInput, match=r"chart cannot .*nowhere.* No such file"):
        write_chart(full_profile(), tmp_path / "nowhere" / "a.png")
    with pytest.raises(WrongInput, match=r"page cannot .*nowhere.* No such file"):
        write_html_report(
            full_profile(), judged_sessions(), tmp_path / "nowhere" / "a.html", made_at=0.0
        )

    # A path that cannot be written.
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(WrongInput, match=r"a\.svg: Is a directory"):
        write_chart(full_profile(), tmp_path / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@table(("number", "title"), [(1, "Reliability of 1 session of test"), (3, "of 3 sessions of test")])
def test_page_title_and_date(tmp_path: Path, number: int, title: str) -> None:
    sessions = judged_sessions(number)
    write_html_report(profile(sessions), sessions, tmp_path / "a.html", made_at=1_780_000_000.0)
    text = (tmp_path / "a.html").read_text()
    assert title in text
    assert "28 May 2026" in text
