"""Every row of every table of rules is a case: its example must be judged by this row."""

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables import table

from journeyman.outcomes import (
    commands,
    exits,
    failures,
    kinds,
    programs,
    statuses,
    structure,
    words,
    wrapping,
)
from journeyman.outcomes.judge import judge
from journeyman.outcomes.rule import Rule, _first_letters
from journeyman.outcomes.structure import FieldRule
from journeyman.records import Call, Recorded


def call(result: str | None, tool: str = "some_tool", command: str = "") -> Call:
    arguments = json.dumps({"command": command}) if command else "{}"
    return Call(id="c1", tool=tool, arguments=arguments, result=result)


def by_id(row: Rule | FieldRule) -> str:
    return row.id


@table(
    "row",
    [*words.AT_THE_HEAD, *words.AT_THE_END, *failures.MESSAGES, failures.NONE_FOUND],
    ids=by_id,
)
def test_the_words_of_a_harness(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)
    assert verdict.evidence


@table("row", [*programs.SHELL, *programs.SUMMARIES], ids=by_id)
def test_the_complaints_of_programs(row):
    verdict = judge(call(f"working…\n{row.example}", tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    assert row.kind in ("", verdict.kind)


@table(
    "row",
    [*structure.KEPT_FROM_RUNNING, *structure.REPORTED, structure.SUCCESS, structure.DATA],
    ids=by_id,
)
def test_the_fields_of_an_object(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)


@table("row", [*exits.AT_THE_HEAD, *exits.AT_THE_END], ids=lambda row: f"exit-{row.id}")
def test_the_places_of_an_exit_code(row):
    verdict = judge(call(row.example, tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (f"exits.{row.id}", "failed")
    assert judge(call(re.sub(r"(?<=[ >=])2(?=\b)", "0", row.example), "bash")).status == "ok"


@table("row", exits.MEANINGS, ids=lambda row: f"code-{row.code}")
def test_the_meaning_of_an_exit_code(row):
    judged = judge(Call(id="c1", tool="bash", result="", recorded=Recorded(exit_code=row.code)))
    assert (judged.status, judged.kind) == (row.status, row.kind)


@table(
    ("word", "row"),
    [(word, row) for row in statuses.STATUS_WORDS for word in row.words],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_words_of_a_recorded_status(word, row):
    judged = judge(Call(id="c1", tool="t", result=None, recorded=Recorded(status=word.upper())))
    assert judged.status == row.status
    assert row.kind in ("", judged.kind)


@table("row", wrapping.WRAPPINGS, ids=lambda row: f"wrapping-{row.id}")
def test_the_wrappings_of_a_result(row):
    assert wrapping.unwrapped(row.example).wrapping is row
    assert judge(call(row.example)).status == "failed"


@table("row", wrapping.HEADINGS, ids=lambda row: f"heading-{row.id}")
def test_the_headings_of_a_result(row):
    assert wrapping.without_heading(row.example) != row.example
    assert judge(call(row.example)).status == "failed"


@table("row", kinds.KINDS, ids=lambda row: f"kind-{row.kind}")
def test_the_kinds_of_failure(row):
    assert kinds.kind_of(row.example) == row.kind
    assert all(phrase == phrase.lower() for phrase in row.phrases)


@table("row", commands.ANSWERING, ids=lambda row: f"answers-{row.id}")
def test_programs_that_answer_by_their_exit_code(row):
    assert commands.answers_no(json.dumps({"command": row.example}), row.codes[0], "") is row
    assert commands.answers_no(json.dumps({"command": row.example}), 2, "") is None
    assert commands.answers_no(json.dumps({"command": f"{row.example}; make"}), 1, "") is None


def test_every_row_has_an_id_of_its_own_an_example_and_a_reason():
    rows = [
        *words.AT_THE_HEAD,
        *words.AT_THE_END,
        *failures.MESSAGES,
        *programs.SHELL,
        *programs.SUMMARIES,
    ]
    fields = [*structure.KEPT_FROM_RUNNING, *structure.REPORTED, structure.SUCCESS, structure.DATA]
    ids = [row.id for row in (*rows, *fields)]
    assert len(ids) == len(set(ids))
    assert all(row.example and row.reason for row in (*rows, *fields))


def test_every_field_that_a_rule_looks_at_is_known_to_speak():
    """An object without such a field is taken for data at once, so the list must be complete."""
    for row in (*structure.KEPT_FROM_RUNNING, *structure.REPORTED, structure.SUCCESS):
        assert not structure.SPEAKING.isdisjoint(json.loads(row.example)), row.id


def patterns_with_known_beginning():
    rows = [*words.AT_THE_HEAD, failures.NONE_FOUND, *programs.SHELL, *programs.SUMMARIES]
    patterns = [pattern for row in rows for pattern in row.patterns]
    return sorted({pattern for pattern in patterns if _first_letters(pattern)})


@settings(max_examples=200)
@given(st.data())
def test_what_fits_a_pattern_begins_as_the_pattern_says(data):
    """Or else a text would not be tried against the pattern."""
    pattern = data.draw(st.sampled_from(patterns_with_known_beginning()))
    text = data.draw(st.from_regex(re.compile(rf"\A(?:{pattern})")))
    assert text[0] in _first_letters(pattern)


@settings(max_examples=100)
@given(st.data())
def test_what_fits_a_row_for_the_end_has_one_of_its_words(data):
    """Or else a text would not be tried against the rows."""
    patterns = [pattern for row in words.AT_THE_END for pattern in row.patterns]
    pattern = data.draw(st.sampled_from(patterns))
    text = data.draw(st.from_regex(re.compile(pattern), fullmatch=True))
    assert any(word in text for word in words._IN_THE_END)


@table("heading", wrapping.HEADINGS, ids=lambda row: row.id)
def test_a_heading_begins_with_one_of_the_known_characters(heading):
    assert heading.example[0] in wrapping._HEADING_STARTS


@table(
    ("pattern", "letters"),
    [
        ("Error", "E"),
        ("E?rror", ""),
        (r"\[Old", "["),
        (r"\[?Old", ""),
        ("[Ff]ailed", "Ff"),
        ("[Ff]?ailed", ""),
        ("(?:An |an )error", "Aa"),
        ("(?:An |an )?error", ""),
        ("(?:[Cc]ommand|Tool) failed", "CcT"),
        (r"(?:\d|x)y", ""),
        (r"\d+ errors", ""),
        ("[\\w.]+ failed", ""),
        ("<error>", "<"),
        (r"-32\d", "-"),
    ],
)
def test_the_beginning_of_a_pattern(pattern, letters):
    assert _first_letters(pattern) == letters


def test_a_pattern_is_one_pattern():
    """Those that begin with a letter are tried only where it stands, so each must be whole."""
    rows = [*words.AT_THE_HEAD, *words.AT_THE_END, failures.NONE_FOUND]
    for row in (*rows, *programs.SHELL, *programs.SUMMARIES):
        for pattern in row.patterns:
            parsed = re._parser.parse(pattern)
            assert str(parsed[0][0]) != "BRANCH" or len(parsed) > 1, (row.id, pattern)
