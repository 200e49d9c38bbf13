"""Every row of every table is a case: its examples must be decided by this row."""

from tests.gate_cases import HOME, WORKSPACE
from tests.tables import table

from journeyman.gate.code_words import WORDS, is_dangerous
from journeyman.gate.file_tools import PATH_RULES
from journeyman.gate.gate import Gate
from journeyman.gate.inner import Code
from journeyman.gate.judging import COMMANDS
from journeyman.gate.places import Places
from journeyman.gate.rules.python import PYTHON
from journeyman.gate.rules.structure import STRUCTURE

GATE = Gate(WORKSPACE, home=HOME)
ROWS = [(row, example) for row in (*COMMANDS.rows, *STRUCTURE) for example in row.examples]


@table(("row", "example"), ROWS, ids=[f"{row.id} {text}" for row, text in ROWS])
def test_the_rules_on_commands(row, example):
    decision = GATE.decide("terminal", {"command": example})
    assert (decision.rule, decision.answer) == (row.id, row.answer)


@table("row", PYTHON, ids=lambda row: row.id)
def test_the_rules_on_code(row):
    for example in row.examples:
        decision = GATE.decide("execute_code", {"code": example})
        assert (decision.rule, decision.answer) == (row.id, row.answer)


@table("row", WORDS, ids=lambda row: row.language)
def test_the_words_of_other_languages(row):
    places = Places(WORKSPACE, HOME)
    assert all(is_dangerous(Code(row.language, example), places) for example in row.examples)
    assert not is_dangerous(Code(row.language, "x = 1"), places)


@table("row", PATH_RULES, ids=lambda row: row.id)
def test_the_rules_on_paths(row):
    for tool in row.tools - {"workdir"}:
        decision = GATE.decide(tool, {"path": row.example})
        assert (decision.rule, decision.answer) == (row.id, row.answer)


def test_refusal_is_kept_for_what_nobody_should_approve():
    rows = (*COMMANDS.rows, *STRUCTURE, *PYTHON)
    assert {row.id for row in rows if row.answer == "refuse"} == {
        *("delete.everything", "disk.format", "write.device", "write.accounts", "fork_bomb")
    }
