"""The policy: what an action requires before it may be done. Forbidden actions come first, then
those that can never be bypassed, then the first rule of the file that matches. Without a matching
rule, a person is asked.
"""

import os
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from journeyman.confirm.digest import canonical, digest_of_json, same_json
from journeyman.records.confirmation import TIERS, Channel, Tier
from journeyman.records.errors import BadSetting, WrongInput

NEVER_BYPASS = (
    *("deploy_production", "delete_data", "transfer_funds", "modify_permissions"),
    *("shutdown_service", "wipe_database", "exec_remote", "publish_package", "rotate_keys"),
    "migrate_database",
)
"""Actions that a person must decide on, regardless of any file or whitelist."""

CHANNELS: tuple[Channel, ...] = ("page", "api", "telegram")
CRITICAL_CHANNELS: tuple[Channel, ...] = ("page", "api")
"""A button in a chat needs no login, so it approves critical actions only if a rule says so."""

# Syntax of other pattern languages is rejected, because it would silently match nothing.
_Pattern = Annotated[str, Meta(pattern=r"^(\*|[^\[\]{}!|]*[^\W_][^\[\]{}!|]*)$")]
_Names = tuple[Annotated[str, Meta(min_length=1)], ...]
_Count = Annotated[int, Meta(ge=1, lt=2**31)]


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the actions that match a pattern require. Where a field is empty or None, the value of
    the policy applies.
    """

    action: _Pattern
    """The name, with * for any characters and ? for one."""
    tier: Tier
    quorum: _Count = 1
    edits: bool | _Names = False
    """Which parameters an approver may change: none, all, or these."""
    rate_limit: _Count | None = None
    """Requests allowed per hour; see `Policy.rate_limit_of` and `automatic_limit_of`."""
    channels: Annotated[tuple[Channel, ...], Meta(min_length=1)] = ()
    self_approval: bool | None = None
    file_params: _Names = ()
    """Parameters that name files, whose content is bound to the approval."""
    reason: str = ""


class EffectiveRule(Rule, frozen=True, kw_only=True):
    """The effective rule for one action: everything but the limit is resolved. `why` explains in
    words which rule it is.
    """

    why: str


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All rules. The built-in names that can never be bypassed always apply."""

    rules: tuple[Rule, ...] = ()
    more_never_bypass: tuple[_Pattern, ...] = field(default=(), name="never_bypass")
    rate_limit: int = 10
    """Requests for one action allowed per hour, unless its rule sets another limit."""
    automatic_limit: _Count = 1_000
    """Requests for one action that are approved without asking, allowed per hour; they do not count
    towards the other limits."""
    requester_limit: _Count = 60
    """Confirmations that one agent may request from people per hour."""
    redeem_within_s: _Count = 600
    self_approval: bool = False

    @cached_property
    def never_bypass(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*NEVER_BYPASS, *self.more_never_bypass)))

    @property
    def digest(self) -> str:
        """The digest of the policy; equal for equal policies."""
        return digest_of_json(self.describe(), "journeyman.policy.v1")

    def never_bypassed_as(self, action: str) -> str:
        """Return the never-bypassed name that an action matches, or an empty string. Names with
        non-ASCII letters always count, because such letters can imitate others.
        """
        if not spellings_of(action).squashed.isascii():
            return "a name with letters beyond a to z"
        return next((name for name in self.never_bypass if _contains_name(name, action)), "")

    @cached_property
    def rule_for(self) -> Callable[[str], EffectiveRule]:
        """Return the effective rule for an action. Without a matching rule, a person is asked."""
        return lru_cache(maxsize=4096)(self._rule_for)

    def _rule_for(self, action: str) -> EffectiveRule:
        matching = [
            (number, rule)
            for number, rule in enumerate(self.rules, 1)
            if _matches(rule.action, rule.tier, action)
        ]
        forbidden = [(number, rule) for number, rule in matching if TIERS[rule.tier].is_forbidden]
        number, rule = next(iter(forbidden or matching), (0, Rule(action=action, tier="ask")))
        why = f"rule {number} ({rule.action}, {rule.tier})" + (rule.reason and f": {rule.reason}")
        if not number:
            why = "no rule matches this action, so a person decides"
        if not forbidden and (name := self.never_bypassed_as(action)):
            why = f"{name} can never be bypassed" + (f"; {why}" if number else "")
            if not TIERS[rule.tier].is_strict:
                # Drop what makes the lesser rule easier to satisfy.
                channels = tuple(name for name in rule.channels if name in CRITICAL_CHANNELS)
                rule = replace(rule, tier="critical", channels=channels, self_approval=None)
        defaults = CRITICAL_CHANNELS if TIERS[rule.tier].is_strict else CHANNELS
        resolved: dict[str, Any] = {"channels": rule.channels or defaults}
        if rule.self_approval is None:
            resolved["self_approval"] = self.self_approval
        return EffectiveRule(**asdict(rule) | resolved, why=why)

    def may_whitelist(self, rule: Rule) -> bool:
        """Return whether a whitelist entry, added by one person, can satisfy a rule."""
        return TIERS[rule.tier].can_be_whitelisted and rule.quorum == 1

    def rate_limit_of(self, rule: Rule) -> int:
        return self.rate_limit if rule.rate_limit is None else rule.rate_limit

    def automatic_limit_of(self, rule: Rule) -> int:
        """Return how many requests may be approved without asking: as the rule says if it approves
        by itself, since its limit then has no other meaning.
        """
        own = rule.rate_limit if TIERS[rule.tier].is_automatic else None
        return self.automatic_limit if own is None else own

    def describe(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields | {"never_bypass": list(self.never_bypass)}


class Spellings(NamedTuple):
    """The readings of an action's name, in lower case with _ between words: split at capitals and
    separators, split at separators alone, and as one word.
    """

    words: str
    separated: str
    squashed: str


_CAPITAL_BOUNDARY = re.compile(r"(?<=[^\W\d_])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])")
_NUMBER_BOUNDARY = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_SEPARATORS = re.compile(r"[\W_]+")
_PLAIN_NAME = re.compile(r"[\w .:/-]+", re.ASCII)
_PATTERN_SEPARATORS = re.compile(r"(?:[^\w*?]|_)+")


@lru_cache(maxsize=4096)
def spellings_of(name: str, *, pattern: bool = False) -> Spellings:
    """Return the readings of a name: `AWS.deployProduction2` is aws_deploy_production_2, or
    awsdeployproduction2. In a pattern the wildcards stay; in an action they are separators.
    """
    separators = _PATTERN_SEPARATORS if pattern else _SEPARATORS
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    separated = _normalized(plain, separators)
    words = _normalized(_CAPITAL_BOUNDARY.sub("_", plain), separators)
    return Spellings(words, separated, separated.replace("_", ""))


def _normalized(name: str, separators: re.Pattern[str]) -> str:
    folded = unicodedata.normalize("NFKC", name.casefold())
    return separators.sub("_", _NUMBER_BOUNDARY.sub("_", folded)).strip("_")


@lru_cache(maxsize=8192)
def _matches(listed: str, tier: Tier, action: str) -> bool:
    """Return whether a rule applies to an action, regardless of spelling. A routine rule, which
    approves without asking, applies only to plainly spelled names.
    """
    name, pattern = spellings_of(action), spellings_of(listed, pattern=True)
    if tier == "routine":
        return bool(_PLAIN_NAME.fullmatch(action)) and fnmatchcase(name.words, pattern.words)
    return name.squashed == pattern.squashed or any(
        fnmatchcase(reading, form) for reading in name[:2] for form in pattern[:2]
    )


@lru_cache(maxsize=8192)
def _contains_name(listed: str, action: str) -> bool:
    """Return whether an action contains a name that can never be bypassed. A name of several words
    counts anywhere: `delete_database` contains `delete_data`. A single word or a pattern counts
    only as whole words, so that `rm` is not found in `form`.
    """
    name, pattern = spellings_of(action), spellings_of(listed, pattern=True)
    if "_" in pattern.separated and "*" not in listed and "?" not in listed:
        return pattern.squashed in name.squashed
    return fnmatchcase(name.squashed, pattern.squashed) or any(
        fnmatchcase(f"_{reading}_", f"*_{form}_*") for reading in name[:2] for form in pattern[:2]
    )


def edit_problem(rule: Rule, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return which changed parameters must not be changed, or an empty string. A parameter that
    names a file cannot change, because the file's content is bound to the request.
    """
    missing = object()
    forbidden = [
        name
        for name in {**before, **after}
        if not same_json(before.get(name, missing), after.get(name, missing))
        and (name in rule.file_params or not (rule.edits is True or name in (rule.edits or ())))
    ]
    names = ", ".join(map(repr, forbidden[:5]))
    return names and f"The policy does not allow changing {names}. Deny the request instead."


def read_policy(path: Path, *, rate_limit: int, required: bool = True) -> Policy:
    """Return the policy in a TOML file, or the built-in rules if it is missing and not `required`.
    Raise BadSetting for anything that is not understood; nothing is ignored.
    """
    try:
        with path.open("rb") as file:
            is_world_writable = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o002
            values = tomllib.load(file)
        policy = _parse_policy(values, rate_limit)
    except FileNotFoundError as error:
        if not required:
            return Policy(rate_limit=rate_limit)
        raise BadSetting(
            f"There is no policy file {path}. Create it, or set another path."
        ) from error
    except (OSError, ValueError, RecursionError, WrongInput) as error:
        raise BadSetting(
            f"The policy {path} cannot be used: {error}. Fix the file: a rule has an action, a "
            f"tier ({', '.join(get_args(Tier))}), and optionally "
            f"{', '.join(Rule.__struct_fields__[2:])}."
        ) from error
    if is_world_writable:
        raise BadSetting(
            f"The policy {path} is writable by every user, and so by the agents it restricts. "
            "Make it writable by its owner only: chmod 600."
        )
    return policy


def _parse_policy(values: dict[str, Any], rate_limit: int) -> Policy:
    if "rate_limit" in values:
        raise ValueError("rate_limit belongs to a rule, or to the settings as confirm.rate_limit")
    policy = msgspec.convert(values | {"rate_limit": rate_limit}, Policy)
    canonical(policy.describe())
    return policy
