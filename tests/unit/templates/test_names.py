"""Names of templates and tags: what can be typed, seen and stored."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.records.errors import BadTemplate
from journeyman.templates.names import checked_name, checked_tag, name_for, named


@table(
    "name",
    [
        "web",
        "x" * 80,
        "Web search 2",
        "v1.2_final-b",
        "1st",
        "поиск",
        "検索",
        "हिन्दी",
        "com10",
        "console",
    ],
)
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert checked_name(name) == name


@table(
    "name",
    [
        "",
        "x" * 81,
        "web:search",
        "-web",
        "web..search",
        "web\x00",
        " web",
        "web ",
        ".web",
        "web.",
        "..",
        "a/b",
        "a\\b",
        "web\n",
        "web\u200b",
        "web\u2066",
        "web\ufe0f",
        "web\u3164",
        "a\u00a0b",
        "\u0301web",
        "half \ud800",
        "nul",
        "NUL.tar.gz",
        "aux .txt",
        "Com1",
        "lpt9.x",
        "web@3",
        "a,b",
        "🙂",
    ],
    ids=ascii,
)
def test_a_name_that_cannot_be_used(name: str) -> None:
    with pytest.raises(BadTemplate, match="A name has 1 to 80 letters"):
        checked_name(name)


def test_errors_that_can_be_read() -> None:
    # What cannot be seen is spelled out in the error.
    with pytest.raises(BadTemplate, match=r"web\\u202e"):
        checked_name("web\u202e")

    # A very long name does not fill the screen.
    with pytest.raises(BadTemplate) as refused:
        checked_name("x" * 100_000)
    assert len(str(refused.value)) < 500

    # Names that look the same are the same.
    assert checked_name(unicodedata.normalize("NFD", "café")) == "café"

    # There is always a name.
    assert name_for("", "") == "template"


@table(
    ("reference", "expected"),
    [("web", ("web", None)), ("web@3", ("web", 3)), ("web search@12", ("web search", 12))],
)
def test_a_name_with_a_version(reference: str, expected: tuple[str, int | None]) -> None:
    assert named(reference) == expected


@table(
    "reference",
    [
        *("web@x", "web@0", "web@", "web@-1", "web@03", "web@1.5", "web@٣", "web@9999999999"),
        *("@3", "a@b@3", "", "web@3 ", "web@3\n"),
    ],
    ids=ascii,
)
def test_a_reference_that_names_nothing(reference: str) -> None:
    with pytest.raises(BadTemplate):
        named(reference)


@table(
    ("title", "expected"),
    [
        ("Cancel reservation EHGLP3", "cancel-reservation-ehglp3"),
        ("Don't panic: fix `src/app.py`!", "dont-panic-fix-src-app-py"),
        ("Найти рейс в Осло", "найти-рейс-в-осло"),
        ("हिन्दी में खोज", "हिन्दी-में-खोज"),
        ("The quick brown fox jumps over the lazy dog", "the-quick-brown-fox-jumps-over-the-lazy"),
        ("x" * 100, "x" * 40),
        ("", "session-7"),
        ("🙂 … !", "session-7"),
        ("CON", "session-7"),
    ],
)
def test_a_name_made_of_a_title(title: str, expected: str) -> None:
    assert name_for(title, "Session 7") == expected


@given(st.text(max_size=60), st.text(max_size=20))
def test_a_made_name_can_be_used(title: str, fallback: str) -> None:
    made = name_for(title, fallback)
    assert checked_name(made) == made
    assert len(made) <= 40


@table(
    ("tag", "expected"),
    [(" web ", "web"), ("two words", "two words"), ("c++", "c++"), ("x" * 40, "x" * 40)],
)
def test_a_tag_is_trimmed(tag: str, expected: str) -> None:
    assert checked_tag(tag) == expected


@table(
    "tag",
    ["", "  ", "x" * 41, "a,b", "a\x00b", "a\nb", "a\u200bb", "a\u202eb", "a\u3164"],
    ids=ascii,
)
def test_a_tag_that_cannot_be_used(tag: str) -> None:
    with pytest.raises(BadTemplate, match="cannot be a tag"):
        checked_tag(tag)
