"""The policy: what an action needs before it may be done. Forbidden actions come first, then those
that can never be bypassed, then the first rule of the file that fits; an action no rule knows is
asked about. How the file is read is for `policy_file`, the whitelist for `whitelist`.
"""

import re
import unicodedata
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from journeyman.confirm.digest import digest_of_json, same_json
from journeyman.records.confirmation import Channel, Tier

NEVER_BYPASS = (
    *("deploy_production", "delete_data", "transfer_funds", "modify_permissions"),
    *("shutdown_service", "wipe_database", "exec_remote", "publish_package", "rotate_keys"),
    "migrate_database",
)
"""Actions that a person must decide on whatever any file or whitelist says."""

CHANNELS: tuple[Channel, ...] = ("page", "api", "telegram")
CRITICAL_CHANNELS: tuple[Channel, ...] = ("page", "api")
"""A button in a chat asks for no login, so critical actions need the other ways unless a rule says
otherwise."""


_MOST_REMEMBERED = 4_096


class Rule(Struct, frozen=True, kw_only=True):
    """What the actions that fit a pattern need. Where a field is empty or None, the policy's own
    value holds; what `Policy.rule_for` answers has none left but the limit.
    """

    action: str
    """The name, with * for any letters and ? for one."""
    tier: Tier
    quorum: int = 1
    edits: bool | tuple[str, ...] = False
    """Which parameters an approver may change: none, all, or these."""
    rate_limit: int | None = None
    """Requests in an hour at most; `Policy.rate_limit_of` knows the number."""
    channels: tuple[Channel, ...] = ()
    self_approval: bool | None = None
    second_factor: bool | None = None
    file_params: tuple[str, ...] = ()
    """Parameters that name files: their content is bound to the approval."""
    schema: dict[str, Any] | None = None
    reason: str = ""
    why: str = ""
    """In words, why this rule holds for the action that was asked about."""


class Policy(Struct, frozen=True, kw_only=True, dict=True):
    """All rules. The built-in names are in force whatever is given."""

    rules: tuple[Rule, ...] = ()
    more_never_bypass: tuple[str, ...] = ()
    rate_limit: int = 10
    """Requests for one action in an hour at most, where its rule says nothing else."""
    requester_limit: int = 60
    """Cards that one agent may put before people in an hour."""
    redeem_within_s: int = 600
    self_approval: bool = False
    second_factor: bool = False
    """Whether critical actions need a second factor, where their rule says nothing else."""

    @cached_property
    def never_bypass(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*NEVER_BYPASS, *self.more_never_bypass)))

    @property
    def digest(self) -> str:
        """Two policies that say the same have the same."""
        return digest_of_json(self.describe(), "journeyman.policy.v1")

    def never_bypassed_as(self, action: str) -> str:
        """The name on the list that an action goes by; empty where it goes by none. Letters that
        only look like others could be any of them.
        """
        if not spellings_of(action).squashed.isascii():
            return "a name with letters beyond a to z"
        return next((name for name in self.never_bypass if _goes_by(name, action)), "")

    def rule_for(self, action: str) -> Rule:
        """What an action needs: always a rule, never less than a person where none is written."""
        found = self._found.get(action)
        if found is None:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            found = self._found[action] = self._rule_for(action)
        return found

    @cached_property
    def _found(self) -> dict[str, Rule]:
        """Rules by action, as found before: a request asks several times."""
        return {}

    def _rule_for(self, action: str) -> Rule:
        for number, rule in enumerate(self.rules, 1):
            if rule.tier == "forbidden" and _fits(rule.action, rule.tier, action):
                return self._resolved(rule, _in_words(number, rule))
        number, rule = self._first(action)
        why = (
            _in_words(number, rule) if number else "no rule knows this action, so a person decides"
        )
        if name := self.never_bypassed_as(action):
            if rule.tier != "critical":
                rule = _raised(rule)
            why = f"{name} can never be bypassed" + (f"; {why}" if number else "")
        return self._resolved(rule, why)

    def may_whitelist(self, rule: Rule) -> bool:
        """Whether an entry of one person may stand for what a rule asks for."""
        return rule.tier == "ask" and rule.quorum == 1 and not rule.second_factor

    def rate_limit_of(self, rule: Rule) -> int:
        return self.rate_limit if rule.rate_limit is None else rule.rate_limit

    def describe(self) -> dict[str, Any]:
        """The policy as plain data, to be shown."""
        rules = [msgspec.to_builtins(rule) for rule in self.rules]
        for rule in rules:
            del rule["why"]
        return {
            "never_bypass": list(self.never_bypass),
            "rate_limit": self.rate_limit,
            "requester_limit": self.requester_limit,
            "redeem_within_s": self.redeem_within_s,
            "self_approval": self.self_approval,
            "second_factor": self.second_factor,
            "rules": rules,
        }

    def _first(self, action: str) -> tuple[int, Rule]:
        for number, rule in enumerate(self.rules, 1):
            if _fits(rule.action, rule.tier, action):
                return number, rule
        return 0, Rule(action=action, tier="ask")

    def _resolved(self, rule: Rule, why: str) -> Rule:
        critical = rule.tier == "critical"
        ways = CRITICAL_CHANNELS if critical else CHANNELS
        second = critical and self.second_factor
        return msgspec.structs.replace(
            rule,
            why=why,
            channels=rule.channels or ways,
            self_approval=self.self_approval if rule.self_approval is None else rule.self_approval,
            second_factor=second if rule.second_factor is None else rule.second_factor,
        )


def _in_words(number: int, rule: Rule) -> str:
    return f"rule {number} ({rule.action}, {rule.tier})" + (f": {rule.reason}" * bool(rule.reason))


def _raised(rule: Rule) -> Rule:
    """A lesser rule for an action that can never be bypassed: what makes it easier is left out,
    because it was not written for something critical.
    """
    kept = tuple(way for way in rule.channels if way in CRITICAL_CHANNELS)
    return msgspec.structs.replace(
        rule,
        tier="critical",
        channels=kept,
        self_approval=None,
        second_factor=rule.second_factor or None,
    )


class Spellings(NamedTuple):
    """The ways to read an action's name, in small letters with _ between words: by its capitals,
    by its separators alone, and as one word.
    """

    words: str
    separated: str
    squashed: str


_CAPITAL = re.compile(r"(?<=[^\W\d_])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_BETWEEN = re.compile(r"[\W_]+")
_PLAIN = re.compile(r"[\w .:/-]+", re.ASCII)
_BETWEEN_IN_PATTERN = re.compile(r"(?:[^\w*?]|_)+")


@lru_cache(maxsize=4096)
def spellings_of(name: str, *, pattern: bool = False) -> Spellings:
    """`AWS.deployProduction2` is aws_deploy_production_2, or awsdeployproduction2. In a pattern the
    wildcards stay; in an action they are nothing but marks between words.
    """
    between = _BETWEEN_IN_PATTERN if pattern else _BETWEEN
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(each for each in plain if not unicodedata.combining(each))
    separated = _spelled(plain, between)
    words = _spelled(_CAPITAL.sub("_", plain), between)
    return Spellings(words, separated, separated.replace("_", ""))


def _spelled(name: str, between: re.Pattern[str]) -> str:
    folded = unicodedata.normalize("NFKC", name.casefold())
    return between.sub("_", _NUMBER.sub("_", folded)).strip("_")


@lru_cache(maxsize=8192)
def _fits(listed: str, tier: Tier, action: str) -> bool:
    """Whether a rule is about an action. How the action is spelled does not matter, except for a
    rule that lets it through: that one fits only what is plainly spelled.
    """
    name, pattern = spellings_of(action), spellings_of(listed, pattern=True)
    if tier == "routine":
        return bool(_PLAIN.fullmatch(action)) and fnmatchcase(name.words, pattern.words)
    return name.squashed == pattern.squashed or any(
        fnmatchcase(read, form) for read in name[:2] for form in pattern[:2]
    )


@lru_cache(maxsize=8192)
def _goes_by(listed: str, action: str) -> bool:
    """Whether an action is, or has in its name, one that can never be bypassed. A name of several
    words counts wherever it stands: `delete_database` is a `delete_data`. A single word and a
    pattern count only as whole words, since `rm` is no part of `form`.
    """
    name, known = spellings_of(action), spellings_of(listed, pattern=True)
    if "_" in known.separated and "*" not in listed and "?" not in listed:
        return known.squashed in name.squashed
    return fnmatchcase(name.squashed, known.squashed) or any(
        fnmatchcase(f"_{read}_", f"*_{form}_*") for read in name[:2] for form in known[:2]
    )


def check_details(rule: Rule, details: Mapping[str, Any]) -> str:
    """What is wrong with the parameters by the rule's schema; empty when nothing is. Nothing
    outside the schema is ever fetched for it.
    """
    if rule.schema is None:
        return ""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    checking = Draft202012Validator(rule.schema, registry=Registry())
    try:
        errors = sorted(
            checking.iter_errors(dict(details)), key=lambda one: list(map(str, one.absolute_path))
        )
    except (Unresolvable, RecursionError):
        return "they cannot be checked by the policy's schema, so they are not taken"
    if not errors:
        return ""
    where = ".".join(map(str, errors[0].absolute_path))
    return f"{where}: {errors[0].message[:300]}" if where else str(errors[0].message[:300])


def edits_allowed(rule: Rule, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What was changed that may not be changed; empty when nothing was."""
    if rule.edits is True:
        return ""
    allowed = rule.edits or ()
    changed = [
        name
        for name in dict.fromkeys((*before, *after))
        if (name in before) != (name in after)
        or (name in before and not same_json(before[name], after[name]))
    ]
    wrong = [name for name in changed if name not in allowed]
    if not wrong:
        return ""
    names = ", ".join(map(repr, wrong[:5]))
    may = "none may be" if not allowed else f"only {', '.join(map(repr, allowed))} may be"
    return f"The parameters changed are {names}; by the policy, {may} changed. Deny it instead."
