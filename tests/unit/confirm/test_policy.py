"""The policy: its rules, the list of actions that can never be bypassed, and its file."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.tables import table

from journeyman.confirm.policy import (
    NEVER_BYPASS,
    Policy,
    Rule,
    edit_problem,
    read_policy,
)
from journeyman.records.confirmation import TIERS, Tier
from journeyman.records.errors import BadSetting


def policy(*rules: tuple[str, Tier], **more: Any) -> Policy:
    return Policy(rules=tuple(Rule(action=action, tier=tier) for action, tier in rules), **more)


def test_unknown_action_needs_confirmation() -> None:
    rule = Policy().rule_for("water_the_flowers")
    assert (rule.tier, rule.quorum, rule.edits) == ("ask", 1, False)
    assert rule.channels == ("page", "api", "telegram")
    assert rule.self_approval is False
    assert "no rule matches" in rule.why


def test_first_matching_rule_wins() -> None:
    one = policy(("send_*", "routine"), ("send_email", "critical"))
    assert one.rule_for("send_email").tier == "routine"
    assert one.rule_for("send_email").why == "rule 1 (send_*, routine)"


def test_forbidden_rules_take_precedence_in_any_position() -> None:
    one = policy(("*", "routine"), ("erase_*", "forbidden"))
    assert one.rule_for("erase_disk").tier == "forbidden"
    assert one.rule_for("read_disk").tier == "routine"
    assert policy(("delete_data", "forbidden")).rule_for("DeleteData").tier == "forbidden"


@table(
    "action",
    [
        *NEVER_BYPASS,
        *("aws.deploy-production", "DeployProduction", "tool:delete_data_now", "DELETE DATA"),
        *("dElEtE_dAtA", "DELETEdata", "deletedata", "delete*data", "delete?data", "delete__data"),
        *("delete\u200bdata", "ｄｅｌｅｔｅ＿ｄａｔａ", "délete_data", "delete_data2"),
        *("delete_database", "transferFunds", "mcp__bank__transfer_funds", "wipe/database"),
        *("deploy_production_v2", "drop_table", "Drop-Table", "db.erase_all", "rm"),
        *("eraseEverything", "git_rm_file"),
        *("eraser", "eraseall", "transfer\u3164funds", "tr\u0430nsfer_funds", "wipe_d\u0251tabase"),
        *("\u0167ransfer_funds", "p\u0430y_out"),
    ],
    ids=ascii,
)  # fmt: skip
def test_never_bypass_actions_are_critical_under_any_rule(action: str) -> None:
    for tier in ("routine", "ask", "critical"):
        one = policy((action, tier), ("*", tier), more_never_bypass=("drop_table", "erase_*", "rm"))
        rule = one.rule_for(action)
        assert rule.tier == "critical"
        assert "can never be bypassed" in rule.why


@table("action", ["form_letter", "confirm", "delete_user", "data_delete"])
def test_similar_names_keep_their_rule(action: str) -> None:
    one = policy(("*", "routine"), more_never_bypass=("rm", "erase_*"))
    assert one.rule_for(action).tier == "routine"


def test_weaker_rule_for_a_critical_action_keeps_only_its_strict_parts() -> None:
    easy = Rule(
        action="*", tier="ask", quorum=3, channels=("telegram", "api"), self_approval=True,
        rate_limit=2, file_params=("script",),
    )  # fmt: skip
    rule = Policy(rules=(easy,)).rule_for("delete_data")
    assert (rule.tier, rule.quorum, rule.rate_limit) == ("critical", 3, 2)
    assert rule.file_params == ("script",)
    assert rule.channels == ("api",)
    assert rule.self_approval is False


def test_critical_rule_may_set_channels_and_self_approval() -> None:
    own = Rule(action="delete_data", tier="critical", channels=("telegram",), self_approval=True)
    rule = Policy(rules=(own,)).rule_for("delete_data")
    assert rule.channels == ("telegram",)
    assert rule.self_approval is True


def test_rule_inherits_defaults_from_the_policy() -> None:
    one = policy(("pay", "critical"), self_approval=True, rate_limit=4)
    pay = one.rule_for("pay")
    assert (pay.channels, pay.self_approval) == (("page", "api"), True)
    assert one.rate_limit_of(pay) == 4
    assert one.rate_limit_of(Rule(action="x", tier="ask", rate_limit=9)) == 9


@table(
    ("action", "fits"),
    [
        ("send_email", True),
        ("SendEmail", True),
        ("send-email", True),
        ("send.EMail", False),
        ("SEND_EMAIL", True),
        ("send_emails", False),
        ("resend_email", False),
        ("send_email_*", False),
        ("send_email\u202e", False),
        ("*", False),
    ],
    ids=ascii,
)
def test_routine_rule_matches_only_plain_names(action: str, fits: bool) -> None:
    rule = policy(("send_email", "routine")).rule_for(action)
    assert (rule.tier == "routine") is fits


@table("action", ["pay_out", "PayOut", "pAy_oUt", "payout", "PAY OUT"])
def test_other_rules_match_every_spelling(action: str) -> None:
    for tier in ("ask", "critical", "forbidden"):
        assert policy(("PayOut", tier), ("*", "routine")).rule_for(action).tier == tier


def test_digest_changes_with_the_policy() -> None:
    one = policy(("a", "ask"), ("b", "routine"))
    assert one.digest == policy(("a", "ask"), ("b", "routine")).digest
    others = (
        policy(("b", "routine"), ("a", "ask")),
        policy(("a", "ask"), ("b", "ask")),
        policy(("a", "ask"), ("b", "routine"), more_never_bypass=("c",)),
        policy(("a", "ask"), ("b", "routine"), requester_limit=59),
        policy(("a", "ask"), ("b", "routine"), redeem_within_s=599),
    )
    assert len({one.digest, *(other.digest for other in others)}) == 6


BEFORE = {"subject": "a", "to": "b", "n": 1}


@table(
    ("edits", "after", "wrong"),
    [
        pytest.param(False, BEFORE, "", id="nothing-changed"),
        pytest.param(False, {**BEFORE, "subject": "x"}, "'subject'", id="none-allowed"),
        pytest.param(True, {}, "", id="all-allowed"),
        pytest.param(("subject",), {**BEFORE, "subject": {"x": 1}}, "", id="one-allowed"),
        pytest.param(("subject",), {**BEFORE, "to": "x"}, "'to'", id="another"),
        pytest.param(("subject",), {**BEFORE, "more": None}, "'more'", id="added"),
        pytest.param(("subject",), {"subject": "a", "n": 1}, "'to'", id="removed"),
        pytest.param(("subject",), {**BEFORE, "n": True}, "'n'", id="true-is-not-1"),
        pytest.param(("subject",), {**BEFORE, "n": 1.0}, "", id="the-same-number"),
    ],
)
def test_only_allowed_parameters_can_be_edited(
    edits: bool | tuple[str, ...], after: dict[str, Any], wrong: str
) -> None:
    found = edit_problem(Rule(action="a", tier="ask", edits=edits), BEFORE, after)
    assert (wrong in found) if wrong else found == ""


FILE = """
never_bypass = ["drop_table", "erase_*"]
requester_limit = 30
redeem_within_s = 60
[[rules]]
action = "send_email"
tier = "ask"
quorum = 2
edits = ["subject"]
rate_limit = 30
channels = ["page"]
file_params = ["script"]
self_approval = false
reason = "mail leaves the company"

[[rules]]
action = "read_*"
tier = "routine"
edits = true
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "confirm.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_policy_file_is_read(tmp_path: Path) -> None:
    read = read_policy(written(tmp_path, FILE), rate_limit=7)
    mail = Rule(
        action="send_email", tier="ask", quorum=2, edits=("subject",), rate_limit=30,
        channels=("page",), file_params=("script",), self_approval=False,
        reason="mail leaves the company",
    )  # fmt: skip
    assert read == Policy(
        rules=(mail, Rule(action="read_*", tier="routine", edits=True)),
        more_never_bypass=("drop_table", "erase_*"),
        requester_limit=30,
        redeem_within_s=60,
        rate_limit=7,
    )
    assert read.rule_for("send_email").why == "rule 1 (send_email, ask): mail leaves the company"
    assert read.never_bypass[: len(NEVER_BYPASS)] == NEVER_BYPASS


def test_a_file_that_is_not_there_is_no_empty_policy(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"no policy file .*confirm\.toml"):
        read_policy(tmp_path / "confirm.toml", rate_limit=5)


def test_world_writable_policy_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.chmod(0o646)
    with pytest.raises(BadSetting, match="chmod 600"):
        read_policy(path, rate_limit=5)
    path.chmod(0o600)
    assert read_policy(path, rate_limit=5) == Policy(rate_limit=5)


RULE = '[[rules]]\naction = "a"\ntier = "ask"\n'


@table(
    ("text", "problem"),
    [
        pytest.param("never_bypass = ]", "line 1", id="not-toml"),
        pytest.param("nonsense = 1", "unknown field `nonsense`", id="unknown-key"),
        pytest.param("rate_limit = 1", r"settings as confirm\.rate_limit", id="setting-in-policy"),
        pytest.param("rules = 3", r"Expected `array`.*\.rules", id="rules-not-a-list"),
        pytest.param("never_bypass = 'x'", "never_bypass", id="not-a-list"),
        pytest.param("never_bypass = ['']", "never_bypass", id="empty-name"),
        pytest.param("requester_limit = true", "Expected `int`", id="true-is-not-a-number"),
        pytest.param("redeem_within_s = 0", "`int` >= 1", id="zero"),
        pytest.param('[[rules]]\ntier = "ask"', "required field `action`", id="no-action"),
        pytest.param(RULE + '[[rules]]\naction = "b"', r"`tier`.*rules\[1\]", id="no-tier"),
        pytest.param(RULE + "quorums = 2", "unknown field `quorums`", id="unknown-key-in-rule"),
        pytest.param(RULE + 'why = "x"', "unknown field `why`", id="internal-field"),
        pytest.param(RULE.replace("ask", "Ask"), r"'Ask'.*\.tier", id="tier"),
        pytest.param(RULE.replace('"a"', '"[ab]"'), r"\.action", id="brackets"),
        pytest.param(RULE.replace('"a"', '"_"'), r"\.action", id="no-letters"),
        pytest.param(RULE + "quorum = 1.5", r"\.quorum", id="quorum"),
        pytest.param(RULE + "channels = []", r"\.channels", id="no-channels"),
        pytest.param(RULE + 'channels = ["fax"]', r"'fax'.*\.channels", id="unknown-channel"),
        pytest.param(RULE + 'edits = "subject"', r"\.edits", id="edits"),
        pytest.param(RULE + "file_params = [1]", r"\.file_params", id="file-params"),
        pytest.param(RULE + "reason = 1", r"\.reason", id="reason"),
    ],
)
def test_invalid_policy_file_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadSetting, match=problem) as caught:
        read_policy(written(tmp_path, text), rate_limit=5)
    assert "confirm.toml" in str(caught.value)


def test_every_tier_has_its_traits_and_its_words_on_the_page() -> None:
    words = files("journeyman.confirm").joinpath("page", "words.js").read_text("utf-8")
    table = words.partition("export const TIER = {")[2].partition("\n};")[0]
    assert set(TIERS) == set(get_args(Tier))
    assert set(re.findall(r"^  (\w+): \{", table, re.MULTILINE)) == set(TIERS)
