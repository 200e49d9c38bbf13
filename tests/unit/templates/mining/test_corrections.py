"""How people reject what was done."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.templates.mining.corrections import (
    CORRECTIONS,
    ends_the_work,
    find_correction,
    is_an_answer,
)


@table("row", CORRECTIONS, ids=lambda row: row.id)
def test_each_row_has_an_example(row):
    assert find_correction(row.example) == row.id
    assert any(re.search(one, row.example, re.IGNORECASE) for one in row.patterns)


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
def test_rejections(words):
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
def test_ordinary_requests_reject_nothing(words):
    assert find_correction(words) == ""


def test_later_words_reject_nothing():
    assert find_correction("Write a longer report on the release. " * 9 + "Undo that.") == ""


def test_what_kinds_of_rejection_there_are():
    ids = {row.id for row in CORRECTIONS}
    assert len(ids) == len(CORRECTIONS)
    better = "and then please use the other parser for it instead"
    assert {one for one in ids if ends_the_work(one, better)} == {"undo", "bare_no", "forbidden"}
    assert all(ends_the_work(one, "that is wrong") for one in ids)
    assert {one for one in ids if is_an_answer(one)} == {"no", "bare_no", "rather", "again"}


@given(st.text())
def test_any_text_is_read(text):
    assert find_correction(text) in {"", *(row.id for row in CORRECTIONS)}
