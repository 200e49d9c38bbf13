"""Whether a recorded call may teach: what a person would have to confirm may not, however well it
went. Shell commands, code and paths go through the rules of the gate, seen from the folder in which
the session worked; nothing on this machine is looked at. What is kept out is listed, and so are
patterns and episodes whose text instructs its reader.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from journeyman.gate.conditions import find_popular, loses_data
from journeyman.gate.decision import ALLOW, Decision, rule, strongest
from journeyman.gate.gate import patched_paths, runs_a_download
from journeyman.gate.paths import Places
from journeyman.gate.rules import NETWORK, find_in_code, find_rules
from journeyman.outcomes.commands import command_of
from journeyman.records import Call, KeptOut, KeptOutKind, Pattern, Session
from journeyman.records.kept_out import LONGEST_KEPT_OUT
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.values import PLACEHOLDER
from journeyman.templates.cleaning import find_pattern_suspicion, pattern_id, redacted_line, summary
from journeyman.templates.commands import commands_of
from journeyman.templates.tool_translation import shell_command
from journeyman.templates.translation.argument_fields import Fields, as_object, find_call

_NOWHERE, _NOBODY = "/work/project", "/home/nobody"
"""The folder and the home of a session that does not say where it worked."""

_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|\Z)")
_CHANGES_FOLDER = re.compile(r"\s*cd\s+['\"]?([^\s;&|'\"]+)['\"]?\s*&&")
"""Where a command goes first."""

_SYSTEM = re.compile(r"/(?:etc|usr|var|bin|sbin|lib|dev|proc|sys|boot)\b")

_NO_COMMAND = frozenset(("unparseable", "too_large", "command.hidden"))
"""What says nothing where a text may be no command at all."""

_NOT_YET_RUN = _NO_COMMAND | {"invisible", "write.outside", "permissions.open"}
"""What says nothing of a piece of a script: what its variables stand for is elsewhere."""

_RUNS = re.compile(r"(?i)command|cmd|shell|bash|script")
_DEEPEST = 6
_COMMANDS = frozenset(("command", "cmd", "script", "code"))
_SQL = re.compile(
    r"\s*(?:drop\s+(?:table|database|schema|view|index)|truncate\s+(?:table\s+)?[\w.\"]+\s*;?\s*\Z|"
    r"delete\s+from|update\s+\S+\s+set|alter\s+table|grant\s.+\son|revoke\s.+\son)\b",
    re.IGNORECASE | re.DOTALL,
)
_PATHS = ("path", "file_path", "filePath", "filename", "file", "notebook_path", "target_file")
_OLD = ("old_string", "old_str", "oldString", "old_text")
_NEW = ("new_string", "new_str", "newString", "new_text", "file_text", "content", "new_source")
"""How tools that are not in the table name a file, a text to replace, and a text to write."""

_PERSONAL = frozenset(("email", "phone", "ssn", "iban", "card", "user", "nested"))
"""What redaction replaces although it opens no door."""

_LONGEST_WRITTEN = 8_000
"""A longer text is in no example, so nobody needs to know whether it holds a secret."""

_SCRIPT = re.compile(r".*\.(?:sh|bash|zsh)|.*(?:^|/)(?:Makefile|Dockerfile)")
_DEPENDENCIES = re.compile(
    r"(?:.*/)?(?:(?P<pypi>[\w.-]*requirements[\w.-]*\.(?:txt|in)|pyproject\.toml|Pipfile|setup\.py)"
    r"|(?P<npm>package\.json)|(?P<other>Cargo\.toml|Gemfile|composer\.json))"
)
_DEPENDENCY = re.compile(r"^[\s\"'+]*(?:gem\s+[\"'])?(@?[A-Za-z][\w.-]*)[\"']?\s*[\[=<>~!:,]", re.M)

_SECRET = Decision(
    answer="ask", rule="write.secret", reason="It writes a password, a key or a token into a file."
)
_UNCHECKED = "git.unchecked"
_AFTER_UNCHECKED = Decision(
    answer="ask", rule=_UNCHECKED, reason="It follows a step that skipped the project's checks."
)


@lru_cache(maxsize=512)
def why_unsafe(tool: str, arguments: str, folder: str = "") -> Decision | None:
    """The decision by which a call may not teach, None if it may. `folder` is where the session
    worked. A tool of which nothing is known may teach, unless an argument of it is a command, code
    or SQL that may not.
    """
    call = find_call(tool, arguments, "")
    if call is None:
        decision = _unknown_tool(as_object(arguments), arguments, folder)
    elif call.operation == "run":
        decision = _script(call.fields.get("command", ""), folder, call.fields.get("folder", ""))
    elif call.operation == "run_code":
        decision = _code(call.fields.get("code", ""), folder)
    elif call.operation in ("edit", "write", "patch"):
        decision = _writing(call.fields, folder)
    else:
        places, path = _places(folder), call.fields.get("path", "")
        is_secret = path and places.is_secret(places.resolve(path))
        decision = rule("file.secret").decision if is_secret else ALLOW
    return None if decision.answer == "allow" else decision


@lru_cache(maxsize=4_096)
def is_safe_form(form: str) -> bool:
    """Whether a form is safe: `rm -r …` says more than the `rm -r build` that was run."""
    return _command(form, leaving_out=_NO_COMMAND) is ALLOW


def _script(line: str, folder: str, run_in: str) -> Decision:
    line = _without_placeholders(line)
    begins = _CHANGES_FOLDER.match(line)
    first = begins[1] if begins else ""
    if folder:
        moves = _is_beside(first, folder)
    else:
        first = run_in or first
        moves = first.startswith("/") and not _SYSTEM.match(first)
    return _command(line, first, "") if moves else _command(line, folder, first or run_in)


def _command(
    line: str, folder: str = "", run_in: str = "", *, leaving_out: frozenset[str] = frozenset()
) -> Decision:
    """What the rules say of a command line; needing the network is no reason not to teach."""
    rows = find_rules(_without_placeholders(line), _places(folder, run_in))
    return strongest(row.decision for row in rows if row.id not in leaving_out | {NETWORK})


def _code(text: str, folder: str) -> Decision:
    rows = find_in_code(_without_placeholders(text), _places(folder))
    return strongest(row.decision for row in rows if row.id != NETWORK)


def _is_beside(path: str, folder: str) -> bool:
    """Whether a path is in the home of a session's folder, and in no hidden folder."""
    home = _HOME.match(folder)
    return home is not None and path.startswith(f"{home[0]}/") and "/." not in path


def _without_placeholders(text: str) -> str:
    """The text with names for placeholders: to a shell, `<user:1>` is two redirections."""
    return PLACEHOLDER.sub(r"\1", text) if "<" in text else text


@lru_cache(maxsize=32)
def _places(folder: str, run_in: str = "") -> Places:
    workspace = folder if folder.startswith("/") else _NOWHERE
    home = _HOME.match(workspace)
    top, own = Path(workspace), Path(home[0] if home else _NOBODY)
    return Places(top, own, folder=run_in, foreign=True)


def _writing(fields: Fields, folder: str) -> Decision:
    """What a call writes, and where."""
    patch: str = fields.get("patch", "")
    paths = [fields["path"]] if "path" in fields else list(patched_paths(patch))
    old: str = fields.get("old", "")
    new: str = fields.get("new") or fields.get("content", "")
    if patch:
        lines = patch.splitlines()
        old = "\n".join(one[1:] for one in lines if one.startswith("-"))
        new = "\n".join(one[1:] for one in lines if one.startswith("+"))
    return strongest((*_places_written(paths, folder), *_text_written(paths, old, new, folder)))


def _places_written(paths: Iterable[str], folder: str) -> Iterator[Decision]:
    places = _places(folder)
    for text in paths:
        path = places.resolve(text)
        if places.is_steering(path):
            yield rule("file.steering").decision
        elif folder and not (
            places.is_inside(path) or places.is_scratch(path) or _is_beside(str(path), folder)
        ):
            yield rule("file.write_outside").decision


def _text_written(paths: list[str], old: str, new: str, folder: str) -> Iterator[Decision]:
    known = set(old.splitlines())
    added = "\n".join(line for line in new.splitlines() if line not in known)
    if not added.strip():
        return
    if runs_a_download(added):
        yield rule("run.download").decision
    if any(_SCRIPT.fullmatch(path) for path in paths):
        yield _command(added, folder, leaving_out=_NOT_YET_RUN)
    for found in filter(None, map(_DEPENDENCIES.fullmatch, paths)):
        registry = found.lastgroup or ""
        if any(find_popular(name, registry) for name in _DEPENDENCY.findall(added)):
            yield rule("package.misspelt").decision
    if len(added) <= _LONGEST_WRITTEN and _holds_credential(added):
        yield _SECRET


def _holds_credential(text: str) -> bool:
    """Whether a text holds a secret that opens a door, as a literal."""
    families = Counter(family for family, _ in PLACEHOLDER.findall(Redactor().text(text)))
    families.subtract(family for family, _ in PLACEHOLDER.findall(text))
    return any(count > 0 for family, count in families.items() if family not in _PERSONAL)


def _unknown_tool(given: Mapping[str, Any], arguments: str, folder: str) -> Decision:
    """What can be told of a tool that is not in the table by the names of its arguments."""
    found: list[Decision] = []
    if not _COMMANDS.isdisjoint(given):
        text = command_of(arguments)
        found.append(_command(text, folder, leaving_out=_NO_COMMAND))
        found.append(_code(text, folder))
    for name, text in _strings(given):
        if _RUNS.search(name):
            found.append(_command(text, folder, leaving_out=_NO_COMMAND))
        elif runs_a_download(text):
            found.append(rule("run.download").decision)
    sql = (given.get(name) for name in ("sql", "query", "statement"))
    if any(isinstance(one, str) and _SQL.match(one) and loses_data(one) for one in sql):
        found.append(rule("database.loses").decision)
    edits = given.get("edits")
    for one in (given, *(edits if isinstance(edits, list) else ())):
        if isinstance(one, dict) and (new := _text(one, _NEW)):
            path = _text(given, _PATHS)
            found.append(_writing({"path": path, "old": _text(one, _OLD), "new": new}, folder))
    return strongest(found)


def _strings(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """The texts of arguments, each with the name that it stands behind."""
    if isinstance(value, str):
        yield name, value
    elif depth < _DEEPEST and isinstance(value, list):
        for one in value:
            yield from _strings(one, name, depth + 1)
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, one in value.items():
            yield from _strings(one, str(key), depth + 1)


def _text(given: Mapping[str, Any], names: Iterable[str]) -> str:
    """The first of some arguments that is a text."""
    found = next((given[name] for name in names if given.get(name)), "")
    return found if isinstance(found, str) else json.dumps(found)


class KeptOutList:
    """Grows while a session is mined. What a person has `released` is listed, and teaches."""

    def __init__(self, session: Session, released: frozenset[str]) -> None:
        self._session = session
        self._released = released
        self._found: dict[str, KeptOut] = {}
        self._unchecked: set[int] = set()

    @property
    def entries(self) -> tuple[KeptOut, ...]:
        return tuple(self._found.values())

    def may_teach(self, call: Call, number: int, *, is_ok: bool) -> Literal["", "safe", "released"]:
        """Whether a call for a request may teach, and whether only because a person released it.
        One that would have taught is listed.
        """
        decision = why_unsafe(call.tool, call.arguments, self._session.cwd)
        line = shell_command(call.tool, call.arguments)
        if decision is None and number in self._unchecked:
            runs_git = any(one.name.split()[0] in ("git", "gh") for one in commands_of(line))
            decision = _AFTER_UNCHECKED if runs_git else None
        if decision is None:
            return "safe"
        kind: KeptOutKind = "command" if line else "call"
        text = redacted_line(line or f"{call.tool} {call.arguments}")
        key = _key(kind, text)
        is_released = key in self._released
        if decision.rule == _UNCHECKED and not is_released:
            self._unchecked.add(number)
        if is_ok:
            self._list(key, kind, number, decision.rule, reason=decision.reason, text=text)
        return "released" if is_released else ""

    def reviewed(self, kind: KeptOutKind, pattern: Pattern, number: int) -> Pattern:
        """The pattern as it may be kept; one in quarantine is listed, unless it was released."""
        if not pattern.quarantined:
            return pattern
        content = [pattern.intent]
        for step in pattern.steps:
            content += (step.tool, step.arguments, step.result)
        # From what is redacted: an excerpt of the rest may cut a secret so that none is recognised.
        suspicion = find_pattern_suspicion(pattern.intent, pattern.steps)
        evidence = suspicion.evidence if suspicion else pattern.intent
        reason = suspicion.reason if suspicion else "Its text instructs whoever reads it."
        key = _key(kind, "\0".join(content))
        self._list(key, kind, number, pattern.quarantined, reason=reason, text=evidence)
        if key not in self._released:
            return pattern
        sound = pattern_id(pattern.kind, pattern.intent, pattern.steps)
        return msgspec.structs.replace(pattern, id=sound, quarantined="")

    def _list(
        self, key: str, kind: KeptOutKind, number: int, rule: str, *, reason: str, text: str
    ) -> None:
        if key not in self._found:
            self._found[key] = KeptOut(
                key=key,
                kind=kind,
                rule=rule,
                reason=reason,
                text=summary(text, LONGEST_KEPT_OUT),
                session=self._session.id,
                number=number,
            )


def _key(kind: KeptOutKind, text: str) -> str:
    return hashlib.sha256(f"{kind}\0{text}".encode()).hexdigest()[:16]
