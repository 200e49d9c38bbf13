"""The policy's file, in TOML: its keys as a table, and the reading of it. What is not understood is
an error, never left out: a rule that was overlooked is an action that is not held. What the rules
mean is for `policy`.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from journeyman.confirm.digest import canonical
from journeyman.confirm.policy import Policy, Rule
from journeyman.records.confirmation import Channel, Tier
from journeyman.records.errors import BadSetting, WrongInput


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _pattern(value: object) -> str:
    text = _text(value)
    if not any(map(str.isalnum, text)) and text != "*":
        raise ValueError
    if set("[]{}!|") & set(text):  # marks of other languages of patterns would silently fit nothing
        raise ValueError
    return text


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise TypeError
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _list_of(value: object, read: Callable[[object], str]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(dict.fromkeys(read(one) for one in value))


def _name(value: object) -> str:
    if not _text(value):
        raise ValueError
    return _text(value)


def _patterns(value: object) -> tuple[str, ...]:
    return _list_of(value, _pattern)


def _names(value: object) -> tuple[str, ...]:
    return _list_of(value, _name)


def _edits(value: object) -> bool | tuple[str, ...]:
    return value if isinstance(value, bool) else _names(value)


def _tier(value: object) -> str:
    if value not in get_args(Tier):
        raise ValueError
    return _text(value)


def _channels(value: object) -> tuple[str, ...]:
    names = _names(value)
    if not names or not set(names) <= set(get_args(Channel)):
        raise ValueError
    return names


def _schema(value: object) -> dict[str, Any]:
    """A JSON Schema that is valid and refers to nothing outside itself."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    if not isinstance(value, dict):
        raise TypeError
    try:
        Draft202012Validator.check_schema(value)
        resource = DRAFT202012.create_resource(value)
        look = Registry().resolver_with_root(resource).lookup
        for reference in _references(value):
            look(reference)
    except SchemaError as error:
        raise ValueError(error.message[:200]) from error
    except Unresolvable as error:
        raise ValueError(f"it refers to {error.ref!r}, which is not in it") from error
    return value


def _references(schema: object) -> list[str]:
    if isinstance(schema, list):
        return [one for item in schema for one in _references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema[key] for key in ("$ref", "$dynamicRef") if isinstance(schema.get(key), str)]
    return own + [one for item in schema.values() for one in _references(item)]


class _Key(NamedTuple):
    """A key of the file: how its value is read, and what to write."""

    read: Callable[[object], object]
    about: str


_SWITCH = "true or false"
_COUNT = "a whole number from 1 on"
_RULE_KEYS = {
    "action": _Key(_pattern, 'a name such as "send_email", with * for any letters and ? for one'),
    "tier": _Key(_tier, f"one of {', '.join(get_args(Tier))}"),
    "quorum": _Key(_count, f"{_COUNT}: how many people must approve"),
    "edits": _Key(_edits, 'true, false or a list of parameters such as ["subject"]'),
    "rate_limit": _Key(_count, f"{_COUNT}: requests in an hour at most"),
    "channels": _Key(_channels, f"a list with some of {', '.join(get_args(Channel))}"),
    "self_approval": _Key(_switch, _SWITCH),
    "second_factor": _Key(_switch, _SWITCH),
    "file_params": _Key(_names, 'a list of parameters that name files, such as ["script"]'),
    "schema": _Key(_schema, "a table [rules.schema] with a JSON Schema of the parameters"),
    "reason": _Key(_text, "a text"),
}
_POLICY_KEYS = {
    "never_bypass": _Key(_patterns, 'a list of names such as ["drop_table", "erase_*"]'),
    "requester_limit": _Key(_count, f"{_COUNT}: cards of one agent in an hour at most"),
    "redeem_within_s": _Key(_count, f"{_COUNT}: seconds in which an approval can be used"),
    "self_approval": _Key(_switch, _SWITCH),
    "second_factor": _Key(_switch, f"{_SWITCH}: whether critical actions need one"),
}


def read_policy(path: Path | None, *, rate_limit: int) -> Policy:
    """The policy in force; without a path, the built-in one. Raises BadSetting, naming the file,
    the rule and what to write; also where a file that was named is not there, because its rules
    would be missing without a word.
    """
    if path is None:
        return Policy(rate_limit=rate_limit)
    values = _from_file(path)
    rules = values.pop("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise BadSetting(
            f"The policy {path} has rules that are no tables: begin each with [[rules]]."
        )
    read = _read(values, _POLICY_KEYS, f"The policy {path}")
    more = read.pop("never_bypass", ())
    policy = Policy(
        **read,
        rules=tuple(_rule(rule, number, path) for number, rule in enumerate(rules, 1)),
        more_never_bypass=more,
        rate_limit=rate_limit,
    )
    try:
        canonical(policy.describe())
    except WrongInput as error:
        raise BadSetting(
            f"The policy {path} has a schema with a value that JSON has not: {error}"
        ) from error
    return policy


def _from_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o002:
                raise BadSetting(
                    f"The policy {path} can be written by everybody, so also by the agents that it"
                    " holds. Make it yours alone: chmod 600."
                )
            return tomllib.loads(file.read().decode("utf-8"))
    except FileNotFoundError as error:
        raise BadSetting(f"There is no policy at {path}. Name a file that is there.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetting(f"The policy {path} cannot be read: {error}. Mend the file.") from error


def _rule(values: Mapping[str, Any], number: int, path: Path) -> Rule:
    where = f"Rule {number} of the policy {path}"
    for key in ("action", "tier"):
        if key not in values:
            raise BadSetting(f"{where} has no {key}. Write {_RULE_KEYS[key].about}.")
    return Rule(**_read(values, _RULE_KEYS, where))


def _read(values: Mapping[str, Any], keys: Mapping[str, _Key], where: str) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name not in keys:
            raise BadSetting(
                f"{where} has the unknown key {name!r}. It may have {', '.join(keys)}."
            )
        try:
            read[name] = keys[name].read(value)
        except (TypeError, ValueError, RecursionError) as error:
            said = f" ({error})" if str(error) else ""
            raise BadSetting(
                f"{where} sets {name} to {repr(value)[:120]}, which cannot be used{said}. Write"
                f" {keys[name].about}."
            ) from error
    return read


class PolicyFile:
    """A file that is looked at often and read when it has changed. Unless it is `required`, the
    built-in rules hold where it never was; once it was read it must not go away, because its rules
    would go with it.
    """

    def __init__(self, path: Path, *, rate_limit: int, required: bool = False) -> None:
        self._path = path
        self._rate_limit = rate_limit
        self._required = required
        self._stamp: tuple[int, ...] = ()
        self._policy: Policy | None = None

    def read(self) -> Policy:
        """The policy as it is now. Raises BadSetting."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            if not self._required:
                return Policy(rate_limit=self._rate_limit)
            stamp: tuple[int, ...] = ()
        except OSError:
            stamp = ()
        else:
            self._required = True
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._policy is None or stamp != self._stamp:
            self._policy = read_policy(self._path, rate_limit=self._rate_limit)
            self._stamp = stamp
        return self._policy
