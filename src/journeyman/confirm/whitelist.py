"""The whitelist: actions, by exact name and constraints on parameters, that need no person."""

import math
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from journeyman.confirm.credentials import actor_of, approver_refusal, is_name
from journeyman.confirm.digest import same_json
from journeyman.confirm.policy import Policy
from journeyman.records.confirmation import (
    TIERS,
    Constraint,
    Credential,
    Refusal,
    Submission,
    WhitelistEntry,
)
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger


def entry_for(
    policy: Policy, submission: Submission, entries: Iterable[WhitelistEntry], now: float
) -> WhitelistEntry | None:
    """Return the entry that approves a submission, if any; never for what cannot be bypassed."""
    is_allowed = policy.may_whitelist(policy.rule_for(submission.action))
    if not is_allowed or policy.never_bypassed_as(submission.action):
        return None
    return next((entry for entry in entries if covers(entry, submission, now)), None)


def covers(entry: WhitelistEntry, submission: Submission, now: float) -> bool:
    """Return whether an entry covers a submission, ignoring the policy; see `entry_for`."""
    return (
        entry.action == submission.action != ""
        and entry.session_key in ("", submission.session_key)
        and entry.requester in ("", submission.requester)
        and entry.revoked_at is None
        and (entry.expires_at is None or now < entry.expires_at)
        and _constraints_hold(entry, submission.details)
    )


def _constraints_hold(entry: WhitelistEntry, details: Mapping[str, Any]) -> bool:
    """Return whether every constraint holds and, unless the entry allows them, there are no other
    parameters.
    """
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
    """Yield the paths of all values except non-empty objects."""
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path


def _allows(constraint: Constraint, value: object) -> bool:
    """Return whether a value satisfies a constraint. An empty constraint allows nothing."""
    if constraint == Constraint():
        return False
    if constraint.equals is not None and not same_json(value, constraint.equals):
        return False
    options = constraint.one_of
    if options is not None and not any(same_json(value, option) for option in options):
        return False
    if constraint.at_least is None and constraint.at_most is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (constraint.at_least is None or constraint.at_least <= value < math.inf) and (
        constraint.at_most is None or -math.inf < value <= constraint.at_most
    )


def check_entry(entry: WhitelistEntry, policy: Policy) -> str:
    """Return what is wrong with a new entry, or an empty string."""
    if not entry.action.strip():
        return "A whitelist entry needs the exact name of an action."
    rule, reason = policy.rule_for(entry.action), ""
    if name := policy.never_bypassed_as(entry.action):
        reason = f"{name} can never be bypassed; a person decides each time"
    elif TIERS[rule.tier].is_automatic:
        reason = f"the policy already approves it without asking ({rule.why})"
    elif not TIERS[rule.tier].can_be_whitelisted:
        reason = f"the policy makes it {rule.tier}"
    elif not policy.may_whitelist(rule):
        reason = "the policy requires several people"
    if reason:
        return f"{entry.action!r} cannot be whitelisted: {reason}."
    if entry.requester not in ("", "anonymous") and not is_name(entry.requester):
        return f"{entry.requester!r} is not a valid name of an agent."
    if entry.expires_at is not None and not entry.added_at < entry.expires_at < math.inf:
        return "The entry would already have expired. Use a time in the future."
    for name, constraint in entry.constraints.items():
        if not all(name.split(".")):
            return f"{name!r} is not the name of a parameter. Write it as name, or outer.inner."
        if constraint == Constraint():
            return f"The constraint on {name!r} is empty: no value matches."
    return ""


def add_entry(
    ledger: Ledger, policy: Policy, entry: WhitelistEntry, by: Credential
) -> WhitelistEntry | Refusal:
    """Add an entry to the whitelist, recorded under the name of the approver."""
    entry = replace(entry, id=secrets.token_hex(6), added_by=by.name, added_at=ledger.now)
    refusal = approver_refusal(ledger, by, "change the whitelist")
    problem = check_entry(entry, policy)
    is_own = entry.requester and ledger.owner_of(entry.requester) == by.name
    if not problem and is_own and not policy.rule_for(entry.action).self_approval:
        problem = (
            f"{entry.requester} is your own agent, which your entries cannot approve. Another "
            "approver has to add it."
        )
    if refusal is not None or problem:
        refusal = refusal or Refusal("bad_request", problem)
        return ledger.refused(actor_of(by), refusal, whitelist=entry.action)
    ledger.add(entry)
    ledger.note("whitelist_added", actor_of(by), entry=entry)
    return entry


def revoke_entry(ledger: Ledger, id_: str, by: Credential) -> WhitelistEntry | Refusal:
    """Remove an entry from the whitelist."""
    entry, refusal = ledger.find_entry(id_), approver_refusal(ledger, by, "change the whitelist")
    if entry is None or entry.revoked_at is not None or refusal is not None:
        unknown = Refusal(
            "unknown",
            f"The whitelist has no entry {id_!r}. "
            "List the entries with: journeyman confirm whitelist list",
        )
        return ledger.refused(actor_of(by), refusal or unknown, whitelist=id_)
    revoked = replace(entry, revoked_at=ledger.now, revoked_by=by.name)
    ledger.save(revoked)
    ledger.note("whitelist_revoked", actor_of(by), entry=revoked)
    return revoked


_CONSTRAINT = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)(?:\s*(?P<sign><=|>=|=)\s*|\s+(?P<among>in)\s+)(?P<value>.*)",
    re.DOTALL,
)
_FIELDS = {"=": "equals", "<=": "at_most", ">=": "at_least", "in": "one_of"}


def parse_constraints(texts: Iterable[str]) -> dict[str, Constraint]:
    """Parse `name=value`, `name:=JSON`, `name<=N`, `name>=N` and `name in [..]`. What is not JSON
    is text, and so is a number that would be written differently, like 2.10. Raise WrongInput, also
    for a condition that is stated twice.
    """
    constraints: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for text in texts:
        try:
            name, condition = _parse_constraint(text)
            msgspec.convert(condition, Constraint)
        except ValueError as error:
            raise WrongInput(
                f"{text[:80]!r} is not a constraint: {error}. "
                'Write name=value, name<=10, name>=1 or name in ["a","b"].'
            ) from error
        if constraints[name].keys() & condition.keys():
            raise WrongInput(f"{text!r} repeats a condition on {name!r}. State it once.")
        constraints[name] |= condition
    return msgspec.convert(constraints, dict[str, Constraint])


def _parse_constraint(text: str) -> tuple[str, dict[str, Any]]:
    match = _CONSTRAINT.fullmatch(text)
    if match is None:
        raise ValueError("the name or the operator is missing")
    field, written = _FIELDS[match["sign"] or match["among"]], match["value"].strip()
    is_json = field == "equals" and match["name"].endswith(":")
    name = match["name"].removesuffix(":") if is_json else match["name"]
    value: Any = written
    try:
        value = msgspec.json.decode(written)
    except (ValueError, RecursionError):
        if is_json:
            raise ValueError("the value after := is not JSON") from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if field == "equals" and not is_json and is_number:
        value = value if msgspec.json.encode(value).decode() == written else written
    if field == "equals" and value is None:  # None means that there is no such condition
        field, value = "one_of", (None,)
    return name, {field: value}
