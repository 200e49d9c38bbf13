"""For any request, whitelist and policy: the digest covers every leaf, a never-bypass action is
never approved automatically, and displayed text is reversible.
"""

import copy
import json
import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.confirm_core import a_card

from journeyman.confirm.digest import canonical, digest_of, fingerprint_of, same_json
from journeyman.confirm.policy import NEVER_BYPASS, Policy, Rule, edit_problem
from journeyman.confirm.whitelist import check_entry, covers, entry_for
from journeyman.records.confirmation import Constraint, Submission, WhitelistEntry
from journeyman.redaction.masking import mask_parameters
from journeyman.text.display import hidden_characters, is_hidden, visible

NOW = 1000.0

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
any_details = st.dictionaries(words.filter(lambda one: one != "other"), values, max_size=4)


def digests(details: dict[str, Any], nonce: str = "n") -> tuple[str, str]:
    card = a_card(details=details, nonce=nonce)
    return digest_of(card, details), fingerprint_of(card)


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to a value and to all values inside it."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(deeper for key, one in inner for deeper in paths_in(one, (*path, key)))]


def replace_at(details: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    changed: Any = copy.deepcopy(details)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = new
    return changed  # type: ignore[no-any-return]


@given(any_details.filter(bool), st.data())
def test_story_4_changing_any_leaf_changes_the_digest(
    details: dict[str, Any], data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(paths_in(details)[1:]))
    changed = replace_at(details, path, data.draw(values))
    before, after = digests(details), digests(changed)
    is_same = json.loads(canonical(details)) == json.loads(canonical(changed)) and same_types(
        details, changed
    )
    assert (before[0] == after[0]) is (before[1] == after[1]) is is_same
    assert digests(details, "m")[0] != before[0]


def same_types(one: Any, other: Any) -> bool:
    """Distinguish True from 1, which are equal in Python but not in JSON."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_types(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_types, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


@given(any_details)
def test_key_order_does_not_change_the_digest(details: dict[str, Any]) -> None:
    def reversed_keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reversed_keys(one) for key, one in reversed(value.items())}
        return [reversed_keys(one) for one in value] if isinstance(value, list) else value

    assert digests(reversed_keys(details)) == digests(details)
    assert digests(json.loads(json.dumps(details))) == digests(details)


tiers = st.sampled_from(["routine", "ask", "critical", "forbidden"])
more_names = st.lists(st.sampled_from(["drop_table", "erase_*", "rm"]), max_size=3).map(tuple)
separators = st.sampled_from(["_", "-", ".", " ", "__", ":", "/", "\u200b", "*", ""])


@st.composite
def never_bypass_actions(draw: st.DrawFn) -> str:
    """A never-bypass name in any spelling, with a prefix and a suffix."""
    parts = draw(st.sampled_from(NEVER_BYPASS)).split("_")
    spelling = draw(st.sampled_from([str.lower, str.upper, str.title, str.swapcase]))
    core = draw(separators).join(map(spelling, parts))
    before = draw(st.sampled_from(["", "aws.", "tool:", "mcp__bank__", "now_"]))
    return before + core + draw(st.sampled_from(["", "_now", "-v2", "2", ".x"]))


constraints = st.dictionaries(
    st.sampled_from(["a", "a.b", "c"]),
    st.builds(
        Constraint,
        equals=leaves,
        one_of=st.none() | st.lists(leaves, max_size=2).map(tuple),
        at_least=st.none() | st.floats(),
        at_most=st.none() | st.floats(),
    ),
    max_size=2,
)


def entries_for(action: str) -> st.SearchStrategy[list[WhitelistEntry]]:
    one = st.builds(
        WhitelistEntry,
        id=st.just("e"),
        action=st.sampled_from([action, action.lower(), "*", ""]),
        session_key=st.sampled_from(["", "s"]),
        requester=st.sampled_from(["", "r"]),
        constraints=st.just({}) | constraints,
        other_parameters=st.booleans(),
        added_by=st.just("ann"),
        added_at=st.just(0.0),
        expires_at=st.none() | st.just(NOW + 1),
    )
    return st.lists(one, max_size=4)


@given(never_bypass_actions(), st.data())
def test_story_9_for_every_whitelist_a_never_bypass_action_needs_a_person(
    action: str, data: st.DataObject
) -> None:
    patterns = st.sampled_from([action, "*", "delete_*", "*_data", "deploy*"])
    rules = data.draw(
        st.lists(st.tuples(patterns, tiers, st.integers(1, 3)), max_size=3).map(
            lambda drawn: tuple(Rule(action=a, tier=t, quorum=q) for a, t, q in drawn)
        )
    )
    policy = Policy(rules=rules, more_never_bypass=data.draw(more_names))
    asked = Submission(action=action, description="d", requester="r", session_key="s")
    plain = WhitelistEntry(id="p", action=action, added_by="ann", added_at=0.0)
    entries = [*data.draw(entries_for(action)), plain]
    assert any(covers(entry, asked, NOW) for entry in entries)
    assert entry_for(policy, asked, entries, NOW) is None
    assert policy.rule_for(asked.action).tier in ("critical", "forbidden")
    assert check_entry(plain, policy)


@given(leaves, constraints, values)
def test_entry_with_constraints_rejects_extra_parameters(
    value: Any, drawn: dict[str, Constraint], more: Any
) -> None:
    """An entry without constraints, or with `other_parameters`, accepts them."""
    entry = WhitelistEntry(
        id="e",
        action="x",
        constraints={"a": Constraint(one_of=(value,)), **drawn},
        added_by="ann",
        added_at=0.0,
    )

    def covered(details: dict[str, Any]) -> bool:
        asked = Submission(action="x", description="d", details=details, requester="r")
        return covers(entry, asked, NOW)

    if not drawn:
        assert covered({"a": value})
    assert not covered({"a": value, "another": more})
    assert not covered({"another": more})


@given(any_details, st.sampled_from([(), ("a",), ("a", "b")]), values)
def test_edit_changes_only_allowed_parameters(
    details: dict[str, Any], allowed: tuple[str, ...], new: Any
) -> None:
    rule = Rule(action="x", tier="ask", edits=allowed)
    assert edit_problem(rule, details, {**details, **dict.fromkeys(allowed, new)}) == ""
    assert "'other'" in edit_problem(rule, details, {**details, "other": new})


@given(st.text(st.characters() | st.sampled_from("\\u{}5c\u202e\n\u2800"), max_size=40))
def test_visible_text_hides_nothing_and_is_reversible(text: str) -> None:
    shown = visible(text)
    assert not any(is_hidden(one) for one in shown)
    back = re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), shown)
    assert back == text
    assert hidden_characters(text) == sum(is_hidden(one) for one in text if one not in "\n\t")


@given(any_details, st.text("abcdefgh0123XYZ!-", min_size=6, max_size=20))
def test_masking_hides_secrets_and_keeps_the_digest(details: dict[str, Any], secret: str) -> None:
    assume(secret not in json.dumps(details))
    details = {**details, "deep": [{"client_secret": secret}], "password": secret}
    before = digests(details)
    shown = mask_parameters(details)
    assert secret not in json.dumps(shown)
    assert digests(details) == before
    assert same_json(mask_parameters(details), shown)
