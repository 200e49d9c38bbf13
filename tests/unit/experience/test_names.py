"""Valid names of templates and tags."""

import pytest
from tests.tables import table

from journeyman.experience.template_files import (
    checked_tags,
    checked_template_name,
    parse_reference,
)
from journeyman.records.errors import BadTemplate


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
        "console",
    ],
)
def test_valid_names_are_unchanged(name: str) -> None:
    assert checked_template_name(name) == name


@table(
    "name",
    [
        "",
        "x" * 81,
        "web:search",
        "-web",
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
        "a\u00a0b",
        "\u0301web",
        "half \ud800",
        "web@3",
        "a,b",
        "🙂",
    ],
    ids=ascii,
)
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(BadTemplate, match="A name has 1 to 80 characters"):
        checked_template_name(name)


@table(
    ("reference", "expected"),
    [("web", ("web", None)), ("web@3", ("web", 3)), ("web search@12", ("web search", 12))],
)
def test_references_with_a_version(reference: str, expected: tuple[str, int | None]) -> None:
    assert parse_reference(reference) == expected


@table(
    "reference",
    [
        *("web@x", "web@0", "web@", "web@-1", "web@03", "web@1.5", "web@٣", "web@9999999999"),
        *("@3", "a@b@3", "", "web@3 ", "web@3\n"),
    ],
    ids=ascii,
)
def test_invalid_references_are_refused(reference: str) -> None:
    with pytest.raises(BadTemplate):
        parse_reference(reference)


@table(
    ("tag", "expected"),
    [(" web ", "web"), ("two words", "two words"), ("c++", "c++"), ("x" * 40, "x" * 40)],
)
def test_tags_are_trimmed(tag: str, expected: str) -> None:
    assert checked_tags([tag]) == (expected,)


@table(
    "tag",
    ["", "  ", "x" * 41, "a,b", "a\x00b", "a\nb", "a\u200bb", "a\u202eb"],
    ids=ascii,
)
def test_invalid_tags_are_refused(tag: str) -> None:
    with pytest.raises(BadTemplate, match="cannot be a tag"):
        checked_tags([tag])
