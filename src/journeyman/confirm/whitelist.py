"""The whitelist: exact names of actions, and parameters as far as an entry says, need no person."""

import math
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from typing import Any

import msgspec
from msgspec.structs import replace

from journeyman.confirm.credentials import actor_of, is_name, objection_to
from journeyman.confirm.digest import same_json
from journeyman.confirm.policy import Policy, Rule, check_details
from journeyman.records.confirmation import (
    Constraint,
    Credential,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Ledger

_MOST_TRIED = 256
"""Combinations of values that are held against a schema."""


def entry_for(
    policy: Policy, submission: Submission, entries: Iterable[WhitelistEntry], now: float
) -> WhitelistEntry | None:
    """The entry that lets a submission through without a person; never what cannot be bypassed."""
    may_be = policy.may_whitelist(policy.rule_for(submission.action))
    if not may_be or policy.never_bypassed_as(submission.action):
        return None
    return next((entry for entry in entries if covers(entry, submission, now)), None)


def covers(entry: WhitelistEntry, submission: Submission, now: float) -> bool:
    """Whether an entry covers a submission. It knows no policy: ask `entry_for`."""
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
    paths = [tuple(name.split(".")) for name in entry.constraints]
    for path, constraint in zip(paths, entry.constraints.values(), strict=True):
        value: Any = details
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                return False
            value = value[name]
        if not _allows(constraint, value):
            return False
    return (
        not paths
        or entry.other_parameters
        or all(any(leaf[: len(path)] == path for path in paths) for leaf in _leaves(details))
    )


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all that is not an object with something in it."""
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path


def _allows(constraint: Constraint, value: object) -> bool:
    """Whether all that a constraint says holds. One that says nothing covers nothing."""
    if constraint == Constraint():
        return False
    if constraint.equals is not None and not same_json(value, constraint.equals):
        return False
    among = constraint.one_of
    if among is not None and not any(same_json(value, one) for one in among):
        return False
    if constraint.at_least is None and constraint.at_most is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (constraint.at_least is None or constraint.at_least <= value < math.inf) and (
        constraint.at_most is None or -math.inf < value <= constraint.at_most
    )


def check_entry(entry: WhitelistEntry, policy: Policy) -> str:
    """What is wrong with an entry that is to be added; empty when nothing is."""
    if not entry.action.strip():
        return "A whitelist entry needs the exact name of an action."
    rule, why_not = policy.rule_for(entry.action), ""
    if name := policy.never_bypassed_as(entry.action):
        why_not = f"{name} can never be bypassed; a person decides each time"
    elif rule.tier in ("critical", "forbidden"):
        why_not = f"by the policy it is {rule.tier}"
    elif rule.tier == "routine":
        why_not = f"it is let through by the policy already ({rule.why})"
    elif not policy.may_whitelist(rule):
        why_not = "by the policy it needs several people or a one-time code"
    if why_not:
        return f"{entry.action!r} cannot be whitelisted: {why_not}."
    if entry.requester not in ("", "anonymous") and not is_name(entry.requester):
        return f"No agent can have the name {entry.requester!r}."
    if entry.expires_at is not None and not entry.added_at < entry.expires_at < math.inf:
        return "The entry would have ended already. Give a time that is still to come."
    return _contradiction(entry, rule)


def _contradiction(entry: WhitelistEntry, rule: Rule) -> str:
    """Why no parameters at all can be as the constraints say; empty when some can."""
    constraints = entry.constraints
    for name, constraint in constraints.items():
        if not all(name.split(".")):
            return f"{name!r} is no parameter's name. Write it as name, or outer.inner."
        if not _examples(constraint):
            return f"What is said of {name!r} says nothing or contradicts itself: no value fits."
        if any(other.startswith(f"{name}.") for other in constraints):
            return f"What is said of {name!r} and of what is in it contradicts itself. Say it once."
    is_open = any(one.equals is None and one.one_of is None for one in constraints.values())
    if rule.schema is None or not constraints or entry.other_parameters or is_open:
        return ""
    tried = islice(product(*map(_examples, constraints.values())), _MOST_TRIED)
    wrong = [check_details(rule, _with_values(constraints, values)) for values in tried]
    if all(wrong) and len(wrong) < _MOST_TRIED:
        return f"No such parameters fit the policy's schema for {entry.action!r}: {wrong[0]}"
    return ""


def _examples(constraint: Constraint) -> Sequence[Any]:
    """The only values that can hold; of a range, one that does."""
    limit = constraint.at_most if constraint.at_least is None else constraint.at_least
    values = (limit,) if constraint.one_of is None else constraint.one_of
    values = values if constraint.equals is None else (constraint.equals,)
    return [value for value in values if _allows(constraint, value)]


def _with_values(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    details: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        *outer, last = name.split(".")
        at = details
        for part in outer:
            at = at.setdefault(part, {})
        at[last] = value
    return details


def add_entry(
    ledger: Ledger, policy: Policy, entry: WhitelistEntry, by: Credential
) -> WhitelistEntry | Refusal:
    """Put an entry on the whitelist, in the name of who adds it."""
    entry = replace(entry, id=secrets.token_hex(6), added_by=by.name, added_at=ledger.now)
    refusal, why = objection_to(ledger, by, "change the whitelist"), check_entry(entry, policy)
    is_own = entry.requester and ledger.owner_of(entry.requester) == by.name
    if not why and is_own and not policy.rule_for(entry.action).self_approval:
        why = (
            f"{entry.requester} is your own agent, which an entry of yours never lets through. "
            "Another approver has to add it."
        )
    if refusal is not None or why:
        refusal = refusal or Refusal("bad_request", why)
        return ledger.refused(actor_of(by), refusal, whitelist=entry.action)
    ledger.add(entry)
    ledger.note("whitelist_added", actor_of(by), entry=entry)
    return entry


def revoke_entry(ledger: Ledger, id_: str, by: Credential) -> WhitelistEntry | Refusal:
    """Take an entry off the whitelist."""
    found, refusal = ledger.find_entry(id_), objection_to(ledger, by, "change the whitelist")
    if found is None or found.revoked_at is not None or refusal is not None:
        unknown = Refusal(
            "unknown",
            f"The whitelist has no entry {id_!r}. "
            "See which there are: journeyman confirm whitelist list",
        )
        return ledger.refused(actor_of(by), refusal or unknown, whitelist=id_)
    gone = replace(found, revoked_at=ledger.now, revoked_by=by.name)
    ledger.save(gone)
    ledger.note("whitelist_revoked", actor_of(by), entry=gone)
    return gone


_CONSTRAINT = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)(?:\s*(?P<sign><=|>=|=)\s*|\s+(?P<among>in)\s+)(?P<value>.*)",
    re.DOTALL,
)
_FIELDS = {"=": "equals", "<=": "at_most", ">=": "at_least", "in": "one_of"}


def parse_constraints(texts: Iterable[str]) -> dict[str, Constraint]:
    """Constraints from `name=value`, `name<=N`, `name>=N` and `name in [..]`; a value that is not
    JSON is a text. Raises WrongInput, also where one says a thing twice.
    """
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for text in texts:
        try:
            name, said = _parsed(text)
            msgspec.convert(said, Constraint)
        except ValueError as error:
            raise WrongInput(
                f"{text[:80]!r} is no constraint ({error}). "
                'Write name=value, name<=10, name>=1 or name in ["a","b"].'
            ) from error
        if found[name].keys() & said.keys():
            raise WrongInput(f"{text!r} says again what {name!r} must be. Say it once.")
        found[name] |= said
    return msgspec.convert(found, dict[str, Constraint])


def _parsed(text: str) -> tuple[str, dict[str, Any]]:
    read = _CONSTRAINT.fullmatch(text)
    if read is None:
        raise ValueError("it has no name, or no sign")
    value: Any
    field, value = _FIELDS[read["sign"] or read["among"]], read["value"].strip()
    with suppress(ValueError, RecursionError):
        value = msgspec.json.decode(value)
    if field == "equals" and value is None:  # which would say nothing
        field, value = "one_of", (None,)
    return read["name"], {field: value}
