"""Every row of rules.toml is a test case: this row must judge its example."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.outcomes import commands, envelope, phrases
from journeyman.outcomes.judge import judge
from journeyman.outcomes.rules import RULES, Rule, finder
from journeyman.records import Call, ResultFlags


def call(result: str | None, tool: str = "some_tool", command: str = "") -> Call:
    arguments = json.dumps({"command": command}) if command else "{}"
    return Call(id="c1", tool=tool, arguments=arguments, result=result)


ON_FIELDS = ("held_back", "reported", "success", "data")
NAMED_REFUSERS = [row for rows in RULES.values() for row in rows if row.by and row.example]


def by_id(row: Rule) -> str:
    return row.id


@table("row", [*RULES["head"], *RULES["end"], *RULES["message"]], ids=by_id)
def test_harness_phrases(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)
    assert verdict.evidence


@table("row", RULES["whole"], ids=by_id)
def test_bare_failures(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    shown = judge(call(row.example, tool="read_file"))
    assert shown.status == ("ok" if row.general else "failed")


@table("row", RULES["error_alone"], ids=by_id)
def test_an_error_alone(row):
    verdict = judge(call(row.example, tool="terminal", command="echo hello"))
    assert (verdict.rule, verdict.status, verdict.by) == (row.id, "refused", "hook")
    assert judge(call(row.example, tool="some_tool")).status == "failed"


@table("row", NAMED_REFUSERS, ids=by_id)
def test_who_refused(row):
    verdict = judge(call(row.example, tool="terminal"))
    assert (verdict.status, verdict.by) == ("refused", row.by)


@table("row", [*RULES["shell"], *RULES["summary"]], ids=by_id)
def test_program_errors(row):
    verdict = judge(call(f"working…\n{row.example}", tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    assert row.kind in ("", verdict.kind)


WORDS_OF_RUNS = [
    (row, line)
    for row in (*RULES["summary"], *RULES["passed"])
    for line in (row.examples and (*row.examples, row.example or row.examples[0]))
]


@table(("row", "line"), WORDS_OF_RUNS)
def test_what_runs_say(row, line):
    """What a program says of its failure or success counts behind a pipe, line by line."""
    verdict = judge(call(f"x\n{line}", tool="bash", command="make test | tail"))
    assert (verdict.rule, verdict.status) == (row.id, row.status)


RUNS = (
    *(row.example for row in RULES["runner"]),
    *("python3 -m unittest", "uv run --extra dev pytest", "timeout 60 go test .", "make", "npx tsc",
      "CI=1 npm test", "pnpm --filter web run test:unit", "./gradlew test", "cargo +nightly clippy",
      "./scripts/run-tests.sh", "python tests/runtests.py a", "docker compose run web pytest"),
)  # fmt: skip


@table("run", RUNS)
def test_runs_are_recognised(run):
    hidden = (f"{run} 2>&1 | tail -5", f"cd a && {run} || true", f"{run}; echo done", f"{run}\nls")
    shown = (run, f"cd a && {run} && echo done", f"set -o pipefail; {run} | tail", f"cat a | {run}")
    for command in (*hidden, *shown):
        arguments = json.dumps({"command": command})
        assert (commands.hidden_run(arguments) is not None) == (command in hidden), command


@table("row", [row for name in ON_FIELDS for row in RULES[name]], ids=by_id)
def test_object_fields(row):
    verdict = judge(call(row.example))
    assert (verdict.rule, verdict.status) == (row.id, row.status)
    assert row.kind in ("", verdict.kind)


@table("row", [*RULES["exit_at_head"], *RULES["exit_at_end"]], ids=by_id)
def test_exit_code_positions(row):
    verdict = judge(call(row.example, tool="bash", command="./run all"))
    assert (verdict.rule, verdict.status) == (row.id, "failed")
    assert judge(call(re.sub(r"(?<=[ >=])2(?=\b)", "0", row.example), "bash")).status == "ok"


@table("row", RULES["exit_meaning"], ids=lambda row: row.id)
def test_exit_code_meanings(row):
    judged = judge(
        Call(id="c1", tool="bash", result="", recorded=ResultFlags(exit_code=row.codes[0]))
    )
    assert (judged.status, judged.kind) == (row.status, row.kind)


@table(
    ("word", "row"),
    [(word, row) for row in RULES["status"] for word in row.phrases],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_recorded_status_words(word, row):
    judged = judge(Call(id="c1", tool="t", result=None, recorded=ResultFlags(status=word.upper())))
    assert judged.status == row.status
    assert row.kind in ("", judged.kind)


@table("row", RULES["wrapping"], ids=by_id)
def test_result_envelopes(row):
    assert envelope.unwrapped(row.example).envelope is row
    assert judge(call(row.example)).status == "failed"


@table("row", RULES["heading"], ids=lambda row: f"heading-{row.id}")
def test_result_headings(row):
    assert envelope.without_heading(row.example) != row.example
    assert judge(call(row.example)).status == "failed"


@table("row", RULES["kind"], ids=lambda row: f"kind-{row.kind}")
def test_failure_kinds(row):
    assert phrases.kind_of(row.example) == row.kind
    assert all(phrase == phrase.lower() for phrase in row.phrases)


@table("row", RULES["answering"], ids=lambda row: f"answers-{row.id}")
def test_programs_that_answer_with_their_exit_code(row):
    assert commands.answers_no(json.dumps({"command": row.example}), row.codes[0], "") is row
    assert commands.answers_no(json.dumps({"command": row.example}), 2, "") is None
    assert commands.answers_no(json.dumps({"command": f"{row.example}; make"}), 1, "") is None


AT_THE_START = [*RULES["head"], *RULES["shell"], RULES["message"][-1]]
SEARCHES = [
    (finder(AT_THE_START, at_start=True), AT_THE_START),
    (finder(RULES["summary"], on_lines=True), RULES["summary"]),
    (phrases.near_end, RULES["end"]),
]


@given(st.data())
def test_every_pattern_match_is_found(data):
    """The fast pre-filter must not skip any text that a pattern matches."""
    find, rows = data.draw(st.sampled_from(SEARCHES))
    pattern = data.draw(st.sampled_from([pattern for row in rows for pattern in row.patterns]))
    assert find(data.draw(st.from_regex(re.compile(pattern), fullmatch=True)))
