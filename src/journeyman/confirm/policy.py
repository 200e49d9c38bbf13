"""The policy: what an action needs before it may be done. Forbidden actions come first, then those
that can never be bypassed, then the first rule of the file that fits; an action no rule knows is
asked about.
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
from journeyman.records.confirmation import Channel, Tier
from journeyman.records.errors import BadSetting, WrongInput

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


# Marks of other languages of patterns would silently fit nothing.
_Pattern = Annotated[str, Meta(pattern=r"^(\*|[^\[\]{}!|]*[^\W_][^\[\]{}!|]*)$")]
_Names = tuple[Annotated[str, Meta(min_length=1)], ...]
_Count = Annotated[int, Meta(ge=1, lt=2**31)]


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the actions that fit a pattern need. Where a field is empty or None, the policy's own
    value holds.
    """

    action: _Pattern
    """The name, with * for any letters and ? for one."""
    tier: Tier
    quorum: _Count = 1
    edits: bool | _Names = False
    """Which parameters an approver may change: none, all, or these."""
    rate_limit: _Count | None = None
    """Requests in an hour at most; `Policy.rate_limit_of` knows the number."""
    channels: Annotated[tuple[Channel, ...], Meta(min_length=1)] = ()
    self_approval: bool | None = None
    second_factor: bool | None = None
    file_params: _Names = ()
    """Parameters that name files: their content is bound to the approval."""
    schema: dict[str, Any] | None = None
    reason: str = ""


class RuleInForce(Rule, frozen=True, kw_only=True):
    """The rule for one action: nothing is left to the policy but the limit. `why` says in words
    why it holds.
    """

    why: str


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All rules. The built-in names are in force whatever is given."""

    rules: tuple[Rule, ...] = ()
    more_never_bypass: tuple[_Pattern, ...] = field(default=(), name="never_bypass")
    rate_limit: int = 10
    """Requests for one action in an hour at most, where its rule says nothing else."""
    requester_limit: _Count = 60
    """Cards that one agent may put before people in an hour."""
    redeem_within_s: _Count = 600
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
        """The listed name that an action goes by, or empty. Odd letters could be any other."""
        if not spellings_of(action).squashed.isascii():
            return "a name with letters beyond a to z"
        return next((name for name in self.never_bypass if _goes_by(name, action)), "")

    @cached_property
    def rule_for(self) -> Callable[[str], RuleInForce]:
        """What an action needs: always a rule, never less than a person where none is written."""
        return lru_cache(maxsize=4096)(self._rule_for)

    def _rule_for(self, action: str) -> RuleInForce:
        fitting = [
            (number, rule)
            for number, rule in enumerate(self.rules, 1)
            if _fits(rule.action, rule.tier, action)
        ]
        forbidden = [one for one in fitting if one[1].tier == "forbidden"]
        number, rule = next(iter(forbidden or fitting), (0, Rule(action=action, tier="ask")))
        why = f"rule {number} ({rule.action}, {rule.tier})" + (rule.reason and f": {rule.reason}")
        if not number:
            why = "no rule knows this action, so a person decides"
        if not forbidden and (name := self.never_bypassed_as(action)):
            why = f"{name} can never be bypassed" + (f"; {why}" if number else "")
            if rule.tier != "critical":  # without what makes a lesser rule easier
                channels = tuple(way for way in rule.channels if way in CRITICAL_CHANNELS)
                second = rule.second_factor or None
                rule = replace(rule, channels=channels, self_approval=None, second_factor=second)
                rule = replace(rule, tier="critical")
        critical = rule.tier == "critical"
        given: dict[str, Any] = {
            "channels": rule.channels or (CRITICAL_CHANNELS if critical else CHANNELS)
        }
        if rule.self_approval is None:
            given["self_approval"] = self.self_approval
        if rule.second_factor is None:
            given["second_factor"] = critical and self.second_factor
        return RuleInForce(**asdict(rule) | given, why=why)

    def may_whitelist(self, rule: Rule) -> bool:
        """Whether an entry of one person may stand for what a rule asks for."""
        return rule.tier == "ask" and rule.quorum == 1 and not rule.second_factor

    def rate_limit_of(self, rule: Rule) -> int:
        return self.rate_limit if rule.rate_limit is None else rule.rate_limit

    def describe(self) -> dict[str, Any]:
        """The policy as plain data, to be shown."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown | {"never_bypass": list(self.never_bypass)}


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
    """What is wrong with the parameters by the rule's schema, for which nothing is ever fetched."""
    if rule.schema is None:
        return ""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        found = Draft202012Validator(rule.schema, registry=Registry()).iter_errors(dict(details))
        wrong = best_match(found)
    except (Unresolvable, RecursionError):
        return "they cannot be checked by the policy's schema, so they are not taken"
    return "" if wrong is None else f"{wrong.json_path}: {wrong.message[:300]}"


def edits_allowed(rule: Rule, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What was changed that may not be changed; empty when nothing was. The content of a file that
    a parameter names is bound to the request.
    """
    missing = object()
    wrong = [
        name
        for name in {**before, **after}
        if not same_json(before.get(name, missing), after.get(name, missing))
        and (name in rule.file_params or not (rule.edits is True or name in (rule.edits or ())))
    ]
    names = ", ".join(map(repr, wrong[:5]))
    return names and f"By the policy, nobody may change {names}. Deny it instead."


def read_policy(path: Path, *, rate_limit: int, required: bool = True) -> Policy:
    """The policy in a TOML file; the built-in rules where there is none and none is `required`.
    What is not understood is an error, never left out: raises BadSetting.
    """
    try:
        with path.open("rb") as file:
            is_open = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o002
            values = tomllib.load(file)
        policy = _policy_of(values, rate_limit)
    except FileNotFoundError as error:
        if not required:
            return Policy(rate_limit=rate_limit)
        raise BadSetting(f"There is no policy at {path}. Name a file that is there.") from error
    except (OSError, ValueError, RecursionError, WrongInput) as error:
        raise BadSetting(
            f"The policy {path} cannot be used: {error}. Mend the file: a rule has an action, a "
            f"tier ({', '.join(get_args(Tier))}), and perhaps "
            f"{', '.join(Rule.__struct_fields__[2:])}. `journeyman confirm policy check` looks at "
            "it."
        ) from error
    if is_open:
        raise BadSetting(
            f"The policy {path} can be written by everybody, so also by the agents that it holds. "
            "Make it yours alone: chmod 600."
        )
    return policy


def _policy_of(values: dict[str, Any], rate_limit: int) -> Policy:
    if "rate_limit" in values:
        raise ValueError("rate_limit belongs to a rule, or to the settings as confirm.rate_limit")
    policy = msgspec.convert(values | {"rate_limit": rate_limit}, Policy)
    for number, rule in enumerate(policy.rules, 1):
        if rule.schema is not None:
            from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415
            from referencing import Registry  # noqa: PLC0415
            from referencing.exceptions import Unresolvable  # noqa: PLC0415
            from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

            try:
                Draft202012Validator.check_schema(rule.schema)
                resolver = Registry().resolver_with_root(DRAFT202012.create_resource(rule.schema))
                for reference in _references(rule.schema):
                    resolver.lookup(reference)
            except SchemaError as error:
                raise ValueError(f"the schema of rule {number}: {error.message[:200]}") from error
            except Unresolvable as error:
                said = f"the schema of rule {number} refers to {error.ref!r}, which is not in it"
                raise ValueError(said) from error
    canonical(policy.describe())
    return policy


def _references(schema: object) -> list[str]:
    if isinstance(schema, list):
        return [one for item in schema for one in _references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema[key] for key in ("$ref", "$dynamicRef") if isinstance(schema.get(key), str)]
    return own + [one for item in schema.values() for one in _references(item)]
