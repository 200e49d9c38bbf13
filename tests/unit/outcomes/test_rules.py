"""Every row of every table of rules is a case: its example must be judged by this row."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.outcomes import commands, words, wrapping
from journeyman.outcomes.judge import judge
from journeyman.outcomes.rules import RULES, Rule, finder
from journeyman.records import Call, Recorded


def call(result: str | None, tool: str = "some_tool", command: str = "") -> Call:
    arguments = json.dumps({"command": command}) if command else "{}"
    return Call(id="c1", tool=tool, arguments=arguments, result=result)


ON_FIELDS = ("held_back", "reported", "success", "data")


def by_id(row: Rule) -> str:
    return row.id


@table("row", [*RULES["head"], *RULES["end"], *RULES["message"]], ids=by_id)
def test_the_words_of_a_harness(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)
    assert verdict.evidence


@table("row", [*RULES["shell"], *RULES["summary"]], ids=by_id)
def test_the_complaints_of_programs(row):
    verdict = judge(call(f"working…\n{row.example}", tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    assert row.kind in ("", verdict.kind)


@table("row", [row for name in ON_FIELDS for row in RULES[name]], ids=by_id)
def test_the_fields_of_an_object(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)


@table("row", [*RULES["exit_at_head"], *RULES["exit_at_end"]], ids=by_id)
def test_the_places_of_an_exit_code(row):
    verdict = judge(call(row.example, tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    assert judge(call(re.sub(r"(?<=[ >=])2(?=\b)", "0", row.example), "bash")).status == "ok"


@table("row", RULES["exit_meaning"], ids=lambda row: row.id)
def test_the_meaning_of_an_exit_code(row):
    judged = judge(Call(id="c1", tool="bash", result="", recorded=Recorded(exit_code=row.codes[0])))
    assert (judged.status, judged.kind) == (row.status, row.kind)


@table(
    ("word", "row"),
    [(word, row) for row in RULES["status"] for word in row.phrases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_words_of_a_recorded_status(word, row):
    judged = judge(Call(id="c1", tool="t", result=None, recorded=Recorded(status=word.upper())))
    assert judged.status == row.status
    assert row.kind in ("", judged.kind)


@table("row", RULES["wrapping"], ids=by_id)
def test_the_wrappings_of_a_result(row):
    assert wrapping.unwrapped(row.example).wrapping is row
    assert judge(call(row.example)).status == "failed"


@table("row", RULES["heading"], ids=lambda row: f"heading-{row.id}")
def test_the_headings_of_a_result(row):
    assert wrapping.without_heading(row.example) != row.example
    assert judge(call(row.example)).status == "failed"


@table("row", RULES["kind"], ids=lambda row: f"kind-{row.kind}")
def test_the_kinds_of_failure(row):
    assert words.kind_of(row.example) == row.kind
    assert all(phrase == phrase.lower() for phrase in row.phrases)


@table("row", RULES["answering"], ids=lambda row: f"answers-{row.id}")
def test_programs_that_answer_by_their_exit_code(row):
    assert commands.answers_no(json.dumps({"command": row.example}), row.codes[0], "") is row
    assert commands.answers_no(json.dumps({"command": row.example}), 2, "") is None
    assert commands.answers_no(json.dumps({"command": f"{row.example}; make"}), 1, "") is None


AT_THE_START = [*RULES["head"], *RULES["shell"], RULES["message"][-1]]
SEARCHES = [
    (finder(AT_THE_START, at_start=True), AT_THE_START),
    (finder(RULES["summary"], on_lines=True), RULES["summary"]),
    (words.near_the_end, RULES["end"]),
]


@given(st.data())
def test_what_fits_a_pattern_is_found(data):
    """However the search finds out fast which texts need not be tried."""
    find, rows = data.draw(st.sampled_from(SEARCHES))
    pattern = data.draw(st.sampled_from([one for row in rows for one in row.patterns]))
    assert find(data.draw(st.from_regex(re.compile(pattern), fullmatch=True)))
