"""Every row is a case: its examples must be decided by this row."""

import pytest
from tests.gate_cases import HOME, WORKSPACE
from tests.tables import table

from journeyman.gate import conditions
from journeyman.gate.decision import rules_file
from journeyman.gate.gate import Gate
from journeyman.gate.paths import Places
from journeyman.gate.rules import find_rules

GATE = Gate(WORKSPACE, home=HOME)
ROWS = rules_file().rule
EXAMPLES = [(row, example) for row in ROWS for example in row.examples]


@table(("row", "example"), EXAMPLES, ids=[f"{row.id} {text}" for row, text in EXAMPLES])
def test_examples(row, example):
    if row.learning:
        found = [one.id for one in find_rules(example, Places(WORKSPACE, HOME))]
        assert row.id in found
        return
    decision = GATE.decide("terminal", {"command": example})
    assert (decision.rule, decision.answer) == (row.id, row.answer)
    assert decision.network >= row.network


@table("row", ROWS, ids=lambda row: row.id)
def test_rows_are_complete(row):
    assert row.reason.endswith(".")
    assert row.when in ("", "noted") or hasattr(conditions, row.when)
    assert row.examples or row.when == "noted"
    assert row.commands or row.when or row.argument


def test_ids_are_unique_and_few():
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids))
    assert len([row for row in ROWS if row.when != "noted"]) <= 50


@pytest.mark.parametrize("name", ["steering", "secrets", "harmless"])
def test_patterns_of_files_are_in_small_letters(name):
    assert all(one == one.lower() for one in getattr(rules_file(), name))
