"""Whether a recorded call may teach: what a person would have to confirm may not, however well it
went. Shell commands, code and paths go through the rules of the gate, seen from the folder in which
the session worked; nothing on this machine is looked at.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from journeyman.gate.decision import ALLOW, Decision
from journeyman.gate.file_tools import PATH_RULES, patched_paths
from journeyman.gate.judging import COMMANDS, NOTES, Judge, strongest
from journeyman.gate.places import Places
from journeyman.gate.prose import runs_a_download
from journeyman.gate.rules.databases import loses_data
from journeyman.gate.rules.package_names import find_popular
from journeyman.outcomes.commands import command_of
from journeyman.redaction.redactor import Redactor
from journeyman.templates.translation.argument_fields import Fields, as_object, find_call

_NOWHERE, _NOBODY = "/work/project", "/home/nobody"
"""The folder and the home of a session that does not say where it worked."""

_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|\Z)")
_CHANGES_FOLDER = re.compile(
    r"\s*cd\s+['\"]?(/(?!(?:etc|usr|var|bin|sbin|lib|dev|proc|sys|boot)\b)[^\s;&|'\"]+)['\"]?\s*&&"
)
"""Where a command goes first: there a session works that does not say where it does."""

_NO_COMMAND = frozenset(("unparseable", "too_large", "too_deep", "unknown_program"))
"""What says nothing where a text may be no command at all."""

_NOT_YET_RUN = _NO_COMMAND | {
    *("write.unknown", "delete.unknown", "run.elsewhere", "run.unseen", "write.outside"),
    *("permissions.open", "invisible"),
}
"""What says nothing of a piece of a script: what its variables stand for is elsewhere."""

_NO_PROGRAM = _NO_COMMAND | {"tool.destroys"}
"""What says nothing where a tool may be told in plain words: "remove the item"."""

_RUNS = re.compile(r"(?i)command|cmd|shell|bash|script")
_DEEPEST = 6
_REMEMBERED = 8_192
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

_PLACEHOLDER = re.compile(r"<([a-z][a-z_]{2,24}):\d{1,9}>")
_SCRIPT = re.compile(r".*\.(?:sh|bash|zsh)|.*(?:^|/)(?:Makefile|Dockerfile)")
_DEPENDENCIES = re.compile(
    r"(?:.*/)?(?:(?P<pypi>[\w.-]*requirements[\w.-]*\.(?:txt|in)|pyproject\.toml|Pipfile|setup\.py)"
    r"|(?P<npm>package\.json)|(?P<other>Cargo\.toml|Gemfile|composer\.json))"
)
_DEPENDENCY = re.compile(r"^[\s\"'+]*(?:gem\s+[\"'])?(@?[A-Za-z][\w.-]*)[\"']?\s*[\[=<>~!:,]", re.M)

_BY_ID = {row.id: row.decision for row in (*COMMANDS.rows, *NOTES.values())} | {
    row.id: row.decision for row in PATH_RULES
}
_SECRET = Decision(
    answer="ask",
    rule="write.secret",
    reason="It writes a password, a key or a token into a file.",
)


def why_unsafe(tool: str, arguments: str, folder: str = "") -> Decision | None:
    """The decision by which a call may not teach, None if it may. `folder` is where the session
    worked. A tool of which nothing is known may teach, unless an argument of it is a command, code
    or SQL that may not. Calls of usual length are remembered: mining asks several times.
    """
    ask = _why_unsafe if len(arguments) <= _REMEMBERED else _why_unsafe.__wrapped__
    return ask(tool, arguments, folder)


@lru_cache(maxsize=1_024)
def _why_unsafe(tool: str, arguments: str, folder: str) -> Decision | None:
    call = find_call(tool, arguments, "")
    if call is None:
        decision = _unknown_tool(as_object(arguments), arguments, folder)
    elif call.operation == "run":
        decision = _script(call.fields.get("command", ""), folder, call.fields.get("folder", ""))
    elif call.operation == "run_code":
        decision = _judge(folder).python(_without_placeholders(call.fields.get("code", "")))
    elif call.operation in ("edit", "write", "patch"):
        decision = _writing(call.fields, folder)
    elif _names_secret(call.fields.get("path", ""), folder):
        decision = _BY_ID["file.secret"]
    else:
        decision = ALLOW
    return None if decision.answer == "allow" else decision


@lru_cache(maxsize=4_096)
def is_safe_form(form: str) -> bool:
    """Whether a command may be shown in a form whose values are left out: `rm -r …` says more than
    the `rm -r build` that was run.
    """
    decision = _judge("").script(form, leaving_out=_NO_COMMAND)
    return decision.answer == "allow"


def _script(line: str, folder: str, run_in: str) -> Decision:
    line = _without_placeholders(line)
    begins = _CHANGES_FOLDER.match(line)
    if not folder:
        folder, run_in = run_in or (begins[1] if begins else ""), ""
    elif begins and _is_beside(begins[1], folder):
        folder, run_in = begins[1], ""
    return _judge(folder).script(line, folder=run_in)


def _is_beside(path: str, folder: str) -> bool:
    """Whether a path is in the same home as a session's folder, where its other projects are, and
    in none of the hidden folders, which steer programs.
    """
    home = _HOME.match(folder)
    return home is not None and path.startswith(f"{home[0]}/") and "/." not in path


def _without_placeholders(text: str) -> str:
    """A text that was redacted, with names in the place of placeholders: to a shell, `<user:1>` is
    two redirections.
    """
    return _PLACEHOLDER.sub(r"\1", text) if "<" in text else text


@lru_cache(maxsize=32)
def _places(folder: str) -> Places:
    workspace = folder if folder.startswith("/") else _NOWHERE
    home = _HOME.match(workspace)
    return Places(Path(workspace), Path(home[0] if home else _NOBODY), foreign=True)


@lru_cache(maxsize=32)
def _judge(folder: str) -> Judge:
    return Judge(_places(folder), lambda _: None)


def _names_secret(path: str, folder: str) -> bool:
    places = _places(folder)
    found = places.resolve(path, places.workspace) if path else None
    return found is not None and places.is_secret(found)


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
        path = places.resolve(text, places.workspace)
        if path is None:
            continue
        if places.is_steering(path):
            yield _BY_ID["file.steering"]
        elif folder and not (
            places.is_inside(path) or places.is_scratch(path) or _is_beside(str(path), folder)
        ):
            yield _BY_ID["file.write_outside"]


def _text_written(paths: list[str], old: str, new: str, folder: str) -> Iterator[Decision]:
    added = _added(old, new)
    if not added.strip():
        return
    if runs_a_download(added):
        yield _BY_ID["run.download"]
    if any(_SCRIPT.fullmatch(path) for path in paths):
        yield _judge(folder).script(added, leaving_out=_NOT_YET_RUN)
    for registry in filter(None, map(_registry, paths)):
        if any(find_popular(name, registry) for name in _DEPENDENCY.findall(added)):
            yield _BY_ID["package.misspelt"]
    if len(added) <= _LONGEST_WRITTEN and holds_credential(added):
        yield _SECRET


def _added(old: str, new: str) -> str:
    """The lines of a new text that the old one does not have."""
    known = Counter(old.splitlines())
    return "\n".join(line for line in new.splitlines() if line not in known)


def _registry(path: str) -> str:
    found = _DEPENDENCIES.fullmatch(path)
    return (found.lastgroup or "") if found else ""


def holds_credential(text: str) -> bool:
    """Whether a text holds a secret that opens a door, as a literal."""
    families = Counter(_PLACEHOLDER.findall(Redactor().text(text)))
    families.subtract(_PLACEHOLDER.findall(text))
    return any(count > 0 for family, count in families.items() if family not in _PERSONAL)


def _unknown_tool(given: Mapping[str, Any], arguments: str, folder: str) -> Decision:
    """What can be told of a tool that is not in the table by the names of its arguments."""
    found: list[Decision] = []
    if not _COMMANDS.isdisjoint(given):
        text = _without_placeholders(command_of(arguments))
        found.append(_judge(folder).script(text, leaving_out=_NO_PROGRAM))
        found.append(_judge(folder).python(text))
    for name, text in _strings(given):
        if _RUNS.search(name):
            line = _without_placeholders(text)
            found.append(_judge(folder).script(line, leaving_out=_NO_PROGRAM))
        elif runs_a_download(text):
            found.append(_BY_ID["run.download"])
    sql = (given.get(name) for name in ("sql", "query", "statement"))
    if any(isinstance(one, str) and _SQL.match(one) and loses_data(one) for one in sql):
        found.append(_BY_ID["database.loses"])
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
