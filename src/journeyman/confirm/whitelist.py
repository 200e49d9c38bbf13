"""The whitelist: what is let through without a person. An entry is about one action by its exact
name, and about its parameters as far as it says; never about a part of a name or a text. Which
actions no entry can cover is for `policy`; keeping the entries is for the ledger.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from journeyman.confirm.digest import same_json
from journeyman.confirm.policy import Policy, Rule
from journeyman.records.confirmation import Constraint, Submission, WhitelistEntry
from journeyman.records.errors import WrongInput


def needs_person(
    policy: Policy, submission: Submission, entries: Iterable[WhitelistEntry], now: float
) -> tuple[Rule, WhitelistEntry | None]:
    """What a submission needs, and the entry that covers it. A person is needed unless there is an
    entry or the rule's tier is routine. What can never be bypassed is asked first, so that no
    entry is even looked at, and last, so that none is answered whatever a rule says.
    """
    rule = policy.rule_for(submission.action)
    if not policy.may_whitelist(rule):
        return rule, None
    entry = covering(entries, submission, now)
    if entry is None or policy.never_bypassed_as(submission.action):
        return rule, None
    return rule, entry


def covering(
    entries: Iterable[WhitelistEntry], submission: Submission, now: float
) -> WhitelistEntry | None:
    """The first entry that covers a submission. It knows no policy: ask `needs_person`."""
    return next((entry for entry in entries if _covers(entry, submission, now)), None)


def _covers(entry: WhitelistEntry, submission: Submission, now: float) -> bool:
    return (
        entry.action == submission.action != ""
        and entry.session_key in ("", submission.session_key)
        and entry.requester in ("", submission.requester)
        and entry.revoked_at is None
        and (entry.expires_at is None or now < entry.expires_at)
        and _fits(entry, submission.details)
    )


def _fits(entry: WhitelistEntry, details: Mapping[str, Any]) -> bool:
    """Whether every constraint holds and, unless others are let in, nothing else is there."""
    if not entry.constraints:
        return True
    paths = {name: tuple(name.split(".")) for name in entry.constraints}
    if not all(_holds(one, details, paths[name]) for name, one in entry.constraints.items()):
        return False
    return entry.other_parameters or all(
        any(leaf[: len(path)] == path for path in paths.values()) for leaf in _leaves(details)
    )


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all that is not an object with something in it."""
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path


def _holds(constraint: Constraint, details: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    value: Any = details
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    if _is_empty(constraint):
        return False
    if constraint.equals is not None and not same_json(value, constraint.equals):
        return False
    if constraint.one_of is not None and not any(
        same_json(value, each) for each in constraint.one_of
    ):
        return False
    return _in_range(constraint, value)


def _in_range(constraint: Constraint, value: object) -> bool:
    if constraint.at_least is None and constraint.at_most is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (constraint.at_least is None or value >= constraint.at_least) and (
        constraint.at_most is None or value <= constraint.at_most
    )


def _is_empty(constraint: Constraint) -> bool:
    """A constraint that says nothing was not finished: it covers nothing."""
    return constraint == Constraint()


def check_entry(entry: WhitelistEntry, policy: Policy) -> str:
    """What is wrong with an entry that is to be added; empty when nothing is."""
    if not entry.action.strip():
        return "A whitelist entry needs the exact name of an action."
    if name := policy.never_bypassed_as(entry.action):
        return (
            f"{entry.action!r} cannot be whitelisted: {name} can never be bypassed. A person"
            " decides each time."
        )
    rule = policy.rule_for(entry.action)
    if rule.tier in ("critical", "forbidden"):
        return f"{entry.action!r} cannot be whitelisted: by the policy it is {rule.tier}."
    if rule.tier == "ask" and not policy.may_whitelist(rule):
        return (
            f"{entry.action!r} cannot be whitelisted: by the policy it needs several people or a "
            "one-time code, which an entry would do away with."
        )
    if entry.expires_at is not None and not entry.added_at < entry.expires_at < math.inf:
        return "The entry would have ended already. Give a time that is still to come."
    for name, constraint in entry.constraints.items():
        if problem := _wrong_constraint(name, constraint):
            return problem
    return ""


def _wrong_constraint(name: str, constraint: Constraint) -> str:
    if not all(name.split(".")):
        return f"{name!r} is no parameter's name. Write it as name, or outer.inner."
    if _is_empty(constraint):
        return f"The constraint on {name!r} says nothing. Give a value, a list, or a range."
    limits = [one for one in (constraint.at_least, constraint.at_most) if one is not None]
    if not all(map(math.isfinite, limits)) or (len(limits) == 2 and limits[0] > limits[1]):
        return f"The range for {name!r} has no number in it. Give a smallest and a largest one."
    if constraint.one_of is not None and not constraint.one_of:
        return f"The list for {name!r} is empty. Give at least one value."
    values = (constraint.equals, *(constraint.one_of or ()))
    if not all(same_json(value, value) for value in values):
        return f"A value for {name!r} cannot be written as exact JSON, so nothing would be like it."
    return ""


_FORMS = 'Write name=value, name<=10, name>=1 or name in ["a","b"].'
_CONSTRAINT = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)(?:\s*(?P<sign><=|>=|=)\s*|\s+(?P<among>in)\s+)(?P<value>.*)",
    re.DOTALL,
)


def parse_constraint(text: str) -> tuple[str, Constraint]:
    """A parameter's name and its constraint, from `name=value`, `name<=N`, `name>=N` or `name in
    [..]`. A value that is not JSON is a text. Raises WrongInput.
    """
    found = _CONSTRAINT.fullmatch(text)
    if found is None:
        raise WrongInput(f"{text!r} is no constraint. {_FORMS}")
    name, given = found["name"], found["value"].strip()
    value = _json_or_text(given)
    if found["sign"] in ("<=", ">="):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongInput(f"{text!r} compares with {given!r}, which is no number. {_FORMS}")
        try:
            limit = float(value)
        except OverflowError as error:
            raise WrongInput(f"The number in {text[:80]!r} is too large.") from error
        is_most = found["sign"] == "<="
        return name, Constraint(at_most=limit) if is_most else Constraint(at_least=limit)
    if found["among"]:
        if not isinstance(value, list) or not value:
            raise WrongInput(f"{text!r} has no list behind `in`. {_FORMS}")
        return name, Constraint(one_of=tuple(value))
    # `equals` without a value means that none was given, so null is a list of one.
    return name, Constraint(one_of=(None,)) if value is None else Constraint(equals=value)


def parse_constraints(texts: Iterable[str]) -> dict[str, Constraint]:
    """Several constraints; a smallest and a largest number for one parameter become a range.
    Raises WrongInput where one says a thing twice.
    """
    found: dict[str, Constraint] = {}
    for text in texts:
        name, one = parse_constraint(text)
        before, added = _said(found.get(name, Constraint())), _said(one)
        if before.keys() & added.keys():
            raise WrongInput(f"{text!r} says again what {name!r} must be. Say it once.")
        found[name] = Constraint(**before, **added)
    return found


def _said(constraint: Constraint) -> dict[str, Any]:
    return {name: value for name, value in asdict(constraint).items() if value is not None}


def _json_or_text(text: str) -> Any:
    def refuse(name: str) -> None:
        raise WrongInput(f"{name} is no value that a parameter can have. {_FORMS}")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text
