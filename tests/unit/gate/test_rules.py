"""Each rule decides its own examples."""

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
def test_examples_are_decided_by_their_rule(row, example):
    if row.asks not in ("all", "agent"):
        found = [rule.id for rule in find_rules(example, Places(WORKSPACE, HOME))]
        assert row.id in found
        return
    decision = GATE.decide("command", {"command": example})
    assert (decision.rule, decision.answer) == (row.id, row.answer)
    assert decision.network >= row.network


@table("row", ROWS, ids=lambda row: row.id)
def test_rules_are_complete(row):
    assert row.reason.endswith(".")
    assert row.when in ("", "noted") or hasattr(conditions, row.when)
    assert row.examples or row.when == "noted"
    assert row.commands or row.when or row.argument


def test_rule_ids_are_unique_and_rules_stay_few():
    ids = [row.id for row in ROWS]
    assert len(ids) == len(set(ids))
    assert len([row for row in ROWS if row.when != "noted"]) <= 50


@pytest.mark.parametrize("name", ["steering", "tracked", "secrets", "harmless", "notes"])
def test_file_patterns_are_lower_case(name):
    assert all(pattern == pattern.lower() for pattern in getattr(rules_file(), name))
