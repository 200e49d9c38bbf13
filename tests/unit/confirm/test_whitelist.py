"""What whitelist entries cover, and which entries are refused."""

from typing import Any

import pytest
from tests.tables import table

from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.whitelist import (
    check_entry,
    covers,
    entry_for,
    parse_constraints,
)
from journeyman.records.confirmation import Constraint, Submission, WhitelistEntry
from journeyman.records.errors import WrongInput

NOW = 1_800_000_000.0


def entry(action: str = "send_email", **more: Any) -> WhitelistEntry:
    return WhitelistEntry(id="e1", action=action, added_by="ann", added_at=NOW - 100, **more)


def asked(action: str = "send_email", **more: Any) -> Submission:
    return Submission(action=action, description="d", requester="mailer", **more)


@table(
    "action",
    ["send_emails", "send", "send_email ", "Send_Email", "send-email", "send_email; rm -rf /", ""],
)
def test_only_the_exact_action_is_covered(action: str) -> None:
    assert not covers(entry(), asked(action), NOW)
    assert not covers(entry(action), asked("send_email"), NOW)
    assert not covers(entry(""), asked(""), NOW)


@table(
    ("more", "covered"),
    [
        pytest.param({}, True, id="everywhere"),
        pytest.param({"session_key": "s1"}, True, id="same-session"),
        pytest.param({"session_key": "s2"}, False, id="another-session"),
        pytest.param({"requester": "mailer"}, True, id="same-agent"),
        pytest.param({"requester": "other"}, False, id="another-agent"),
        pytest.param({"expires_at": NOW + 1}, True, id="before-expiry"),
        pytest.param({"expires_at": NOW}, False, id="at-expiry"),
        pytest.param({"revoked_at": NOW - 50}, False, id="revoked"),
        pytest.param({"revoked_at": NOW + 50}, False, id="revoked-by-another-clock"),
    ],
)
def test_entry_is_limited_by_session_agent_and_expiry(more: dict[str, Any], covered: bool) -> None:
    submission = asked(session_key="s1", claimed="other", details={"to": "x", "n": [1, {}]})
    assert covers(entry(**more), submission, NOW) is covered


@table(
    ("constraint", "value", "holds"),
    [
        pytest.param(Constraint(equals=1), 1, True, id="equal"),
        pytest.param(Constraint(equals=1), 1.0, True, id="the-same-number"),
        pytest.param(Constraint(equals=1), True, False, id="true-is-not-1"),
        pytest.param(Constraint(equals=True), 1, False, id="1-is-not-true"),
        pytest.param(Constraint(equals=False), 0, False, id="0-is-not-false"),
        pytest.param(Constraint(equals=False), False, True, id="false-is-false"),
        pytest.param(Constraint(equals=1), "1", False, id="text-is-not-a-number"),
        pytest.param(Constraint(equals="ab"), "abc", False, id="no-prefix-match"),
        pytest.param(Constraint(equals="ab"), "AB", False, id="case-sensitive"),
        pytest.param(Constraint(equals=[1, 2]), [1, 2], True, id="lists"),
        pytest.param(Constraint(equals=[1, 2]), [1, 2, 3], False, id="longer-lists"),
        pytest.param(Constraint(equals={"a": 1}), {"a": True}, False, id="types-inside"),
        pytest.param(Constraint(equals={"a": 1}), {"a": 1, "b": 2}, False, id="extra-keys-inside"),
        pytest.param(Constraint(one_of=("a", 1)), "a", True, id="one-of"),
        pytest.param(Constraint(one_of=("a", 1)), True, False, id="none-of"),
        pytest.param(Constraint(one_of=(None,)), None, True, id="null"),
        pytest.param(Constraint(one_of=()), None, False, id="empty-one-of"),
        pytest.param(Constraint(at_most=100), 100, True, id="at-most"),
        pytest.param(Constraint(at_most=100), 100.01, False, id="over"),
        pytest.param(Constraint(at_least=1, at_most=2), 0, False, id="under"),
        pytest.param(Constraint(at_most=100), "5", False, id="text-in-a-range"),
        pytest.param(Constraint(at_most=100), True, False, id="true-in-a-range"),
        pytest.param(Constraint(at_most=100), None, False, id="null-in-a-range"),
        pytest.param(Constraint(at_most=100), [5], False, id="list-in-a-range"),
        pytest.param(Constraint(at_most=100), float("nan"), False, id="nan"),
        pytest.param(Constraint(at_most=100), float("-inf"), False, id="infinity"),
        pytest.param(Constraint(at_least=float("nan")), 5, False, id="nan-as-minimum"),
        pytest.param(Constraint(at_most=1e300), 10**400, False, id="huge-number"),
        pytest.param(Constraint(equals=float("nan")), float("nan"), False, id="equals-nan"),
        pytest.param(Constraint(equals=5, at_most=3), 5, False, id="all-parts-must-hold"),
        pytest.param(Constraint(), None, False, id="empty-constraint"),
    ],
)
def test_constraints_compare_type_and_value(
    constraint: Constraint, value: object, holds: bool
) -> None:
    assert covers(entry(constraints={"x": constraint}), asked(details={"x": value}), NOW) is holds


NESTED = {"a.b": Constraint(equals=1)}


@table(
    ("details", "other", "covered"),
    [
        pytest.param({"a": {"b": 1}}, False, True, id="nested"),
        pytest.param({"a.b": 1}, False, False, id="dotted-key-is-different"),
        pytest.param({"a": {"b": 1}, "a.b": 9}, False, False, id="both"),
        pytest.param({}, True, False, id="missing"),
        pytest.param({"a": 1}, True, False, id="not-an-object"),
        pytest.param({"a": [{"b": 1}]}, True, False, id="in-a-list"),
        pytest.param({"a": {"b": 1, "c": 2}}, False, False, id="extra-nested"),
        pytest.param({"a": {"b": 1}, "c": None}, False, False, id="extra-null"),
        pytest.param({"a": {"b": 1}, "c": {}}, False, False, id="extra-empty-object"),
        pytest.param({"a": {"b": 1}, "c": []}, False, False, id="extra-empty-list"),
        pytest.param({"a": {"b": 1, "c": 2}, "d": 3}, True, True, id="other-parameters-allowed"),
    ],
)
def test_unconstrained_parameters_are_not_covered(
    details: dict[str, Any], other: bool, covered: bool
) -> None:
    one = entry(constraints=NESTED, other_parameters=other)
    assert covers(one, asked(details=details), NOW) is covered


def test_constraint_on_an_object_covers_its_content() -> None:
    one = entry(constraints={"a": Constraint(equals={"b": 1, "c": {"d": 2}})})
    assert covers(one, asked(details={"a": {"c": {"d": 2}, "b": 1}}), NOW)


def test_only_tier_ask_can_be_whitelisted() -> None:
    policy = Policy(
        rules=(
            Rule(action="read_file", tier="routine"),
            Rule(action="pay", tier="critical"),
            Rule(action="erase", tier="forbidden"),
        )
    )
    for action, tier in (("read_file", "routine"), ("pay", "critical"), ("erase", "forbidden")):
        assert policy.rule_for(action).tier == tier
        assert entry_for(policy, asked(action), [entry(action)], NOW) is None
    one = entry("other")
    assert entry_for(policy, asked("other"), [one], NOW) is one
    assert entry_for(policy, asked("other"), [], NOW) is None


POLICY = Policy(
    rules=(Rule(action="pay_*", tier="critical"), Rule(action="erase_*", tier="forbidden")),
    more_never_bypass=("drop_table",),
)


@table(
    ("one", "problem"),
    [
        pytest.param(entry(), "", id="fine"),
        pytest.param(entry(expires_at=NOW + 10), "", id="fine-with-expiry"),
        pytest.param(entry(""), "needs the exact name", id="no-name"),
        pytest.param(entry("  "), "needs the exact name", id="blank-name"),
        pytest.param(entry("delete_data"), "never be bypassed", id="built-in"),
        pytest.param(entry("aws.DeployProduction"), "never be bypassed", id="other-spelling"),
        pytest.param(entry("drop_table"), "never be bypassed", id="extended"),
        pytest.param(entry("pay_out"), "makes it critical", id="critical"),
        pytest.param(entry("erase_disk"), "makes it forbidden", id="forbidden"),
        pytest.param(entry(expires_at=NOW - 100), "already have expired", id="ended"),
        pytest.param(entry(expires_at=float("nan")), "already have expired", id="end-is-nan"),
        pytest.param(
            entry(constraints={"x": Constraint()}),
            "is empty: no value matches",
            id="unfinished",
        ),
        pytest.param(
            entry(constraints={"a..b": Constraint(equals=1)}),
            "not the name of a parameter",
            id="name",
        ),
    ],
)
def test_entry_validation(one: WhitelistEntry, problem: str) -> None:
    found = check_entry(one, POLICY)
    assert (problem in found) if problem else found == ""


@table(
    ("text", "name", "constraint"),
    [
        ("amount<=100", "amount", Constraint(at_most=100)),
        ("amount >= 1.5", "amount", Constraint(at_least=1.5)),
        ("to=bob@example.com", "to", Constraint(equals="bob@example.com")),
        ("n=1", "n", Constraint(equals=1)),
        ('n="1"', "n", Constraint(equals="1")),
        ("dry=true", "dry", Constraint(equals=True)),
        ("x=null", "x", Constraint(one_of=(None,))),
        ("x=", "x", Constraint(equals="")),
        ("a.b=c = d", "a.b", Constraint(equals="c = d")),
        ('to in ["a", 1]', "to", Constraint(one_of=("a", 1))),
        ("where=in [1]", "where", Constraint(equals="in [1]")),
    ],
)
def test_constraints_are_parsed(text: str, name: str, constraint: Constraint) -> None:
    found = parse_constraints([text])
    assert found == {name: constraint}
    assert type(found[name].equals) is type(constraint.equals)


@table(
    "text",
    ["", "x", "=1", "x<1", "x!=1", "x<=a", "x<=true", "x>=NaN", "x in 1",
     "x<=1" + "0" * 400],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_invalid_constraints_are_refused(text: str) -> None:
    with pytest.raises(WrongInput):
        parse_constraints([text])


def test_two_limits_become_a_range() -> None:
    assert parse_constraints(["n>=1", "n<=5", "to=x"]) == {
        "n": Constraint(at_least=1, at_most=5),
        "to": Constraint(equals="x"),
    }
    with pytest.raises(WrongInput, match="State it once"):
        parse_constraints(["n<=1", "n<=5"])


STRICT = Policy(rules=(Rule(action="read_*", tier="routine"),))


@table(
    ("given", "reason"),
    [
        ({"action": "read_file"}, "policy already approves it without asking"),
        ({"requester": "no name"}, "is not a valid name of an agent"),
        ({"constraints": {"n": Constraint()}}, "is empty"),
        ({"action": "pay", "constraints": {"n": Constraint(one_of=(1, "x"))}}, ""),
        ({"constraints": {"n": Constraint(one_of=(1, 20), at_least=10)}}, ""),
        ({"requester": "anonymous"}, ""),
    ],
)
def test_entry_that_covers_nothing_is_refused(given: dict[str, Any], reason: str) -> None:
    found = check_entry(entry(**given), STRICT)
    assert reason in found
    assert bool(found) is bool(reason)


def test_numbers_keep_their_text_and_json_is_explicit() -> None:
    found = parse_constraints(["v=2.10", "n=100", 't:="100"', "z:=2.10"])
    assert {name: one.equals for name, one in found.items()} == {
        "v": "2.10",
        "n": 100,
        "t": "100",
        "z": 2.1,
    }
    with pytest.raises(WrongInput, match="after := is not JSON"):
        parse_constraints(["v:=2.1.0"])
