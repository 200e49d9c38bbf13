"""Recognising program text, which must not teach, and rejections by the user."""

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.learning import requests as wordings
from journeyman.learning.requests import (
    find_correction,
    is_program_text,
    is_stub,
    is_truncated,
    is_withdrawal,
    without_reminders,
)

ROWS = wordings.TABLE


@table("row", ROWS.result, ids=lambda row: row.id)
def test_stub_results(row):
    assert is_stub(row.example)
    assert is_stub(f"\n {row.example}")
    assert not is_stub(f"def main():\n    print({row.example!r})")


@table("row", ROWS.argument, ids=lambda row: row.id)
def test_truncated_arguments(row):
    assert is_truncated(row.example)


@table("row", ROWS.request, ids=lambda row: row.id)
def test_program_texts_are_not_requests(row):
    assert is_program_text(row.example)
    assert not is_program_text(f"What does this mean: {row.example}")


@table(
    "result",
    [
        "",
        "[1, 2, 3]",
        '{"status": "changed"}',
        "[terminal] is the name of a tool\nand this is a file about it",
        "ok",
        "[INFO] ran 3 tests\nOK",
    ],
)
def test_ordinary_results_are_not_stubs(result):
    assert not is_stub(result)


def test_ordinary_arguments_are_not_truncated():
    assert not is_truncated('{"command": "echo ... && cat list[0]"}')


@table(
    ("result", "left"),
    [
        ("1\tdef f():\n\n<system-reminder>\nBe careful.\n</system-reminder>\n", "1\tdef f():\n"),
        ("a<system-reminder>x</system-reminder>b<system-reminder>y", "ab"),
        ("plain", "plain"),
    ],
)
def test_reminders_are_removed_from_results(result, left):
    assert without_reminders(result) == left


@table("row", ROWS.correction, ids=lambda row: row.id)
def test_each_correction_matches_its_example(row):
    assert find_correction(row.example) == row.id


@table(
    "words",
    [
        "No, undo that.",
        "undo",
        "Please revert your changes",
        "can you roll it back?",
        "rollback",
        "Discard everything",
        "Take that out again",
        "throw it away",
        "Put the old code back",
        "restore what I had",
        "get rid of what you added",
        "Remove the tests you wrote",
        "Drop that.",
        "Nope!",
        "wrong file",
        "That's not what I asked for",
        "I didn't ask for a new module",
        "You broke the build",
        "it still doesn't work, this is wrong",
        "Don't touch that file",
        "stop changing the tests",
        "Stop. That was my branch",
        "Wait, no",
        "hmm, that is the wrong approach",
        "Actually, let's not",
        "start over",
        "**No** - use the other one",
        "you should not have pushed",
    ],
)
def test_rejections_are_recognised(words):
    assert find_correction(words)
    assert find_correction(words.upper())
    assert find_correction(f"\n  > {words}")


@table(
    "words",
    [
        "Now add a test for it",
        "commit this",
        "Great, push it",
        "Run the linter",
        "What does this function do?",
        "No problem, go on",
        "No, thanks",
        "No worries. Next, the docs",
        "Stop the dev server and run the tests",
        "Wait for CI, then merge",
        "Drop that column from the users table",
        "Rename the undo button",
        "Implement undo in the editor",
        "Add a revert command to the CLI",
        "How do I roll out the change?",
        "Fix the failing test",
        "Why is the build slow?",
        "Looks good, open a PR",
        "Update the changelog",
        "the notes page needs a title",
        "Nobody has a key yet, make one",
        "Nonetheless, write it down",
        "Also handle empty input",
        "Use the wrong-answer fixtures in the new test",
        "",
        "👍",
    ],
)
def test_ordinary_requests_are_not_rejections(words):
    assert find_correction(words) == ""


def test_rejection_late_in_a_message_is_ignored():
    assert find_correction("Write a longer report on the release. " * 9 + "Undo that.") == ""


def test_kinds_of_rejection():
    ids = {row.id for row in ROWS.correction}
    assert len(ids) == len(ROWS.correction)
    better = "and then please use the other parser for it instead"
    assert {one for one in ids if is_withdrawal(one, better)} == {"undo", "bare_no", "forbidden"}
    assert all(is_withdrawal(one, "that is wrong") for one in ids)


@given(st.text())
def test_any_text_is_handled(text):
    assert find_correction(text) in {"", *(row.id for row in ROWS.correction)}
