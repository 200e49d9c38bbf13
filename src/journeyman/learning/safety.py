"""Decides whether a recorded call may teach: what a person would have to confirm must not, however
well it went. Shell commands, code and paths go through the rules of the gate, as seen from the
folder in which the session worked; nothing on this machine is inspected.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from journeyman.gate.conditions import find_popular, loses_data
from journeyman.gate.decision import ALLOW, Decision, GateRule, rule, strongest
from journeyman.gate.gate import patched_paths, pipes_download_to_interpreter
from journeyman.gate.paths import Places
from journeyman.gate.rules import NETWORK, find_in_code, find_rules
from journeyman.learning.agent_tools import Fields, find_call, parse_arguments
from journeyman.learning.slots import CHANGES_FOLDER
from journeyman.redaction.redactor import Redactor
from journeyman.redaction.secret_values import PLACEHOLDER

_UNKNOWN_FOLDER, _UNKNOWN_HOME = "/work/project", "/home/nobody"
"""The folder and the home of a session that did not record where it worked."""

_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|\Z)")
_SYSTEM = re.compile(r"/(?:etc|usr|var|bin|sbin|lib|dev|proc|sys|boot)\b")

_NO_COMMAND = frozenset(("unparseable", "too_large", "command.hidden"))
"""Rules that mean nothing for a text that may not be a command at all."""

_NOT_YET_RUN = _NO_COMMAND | {
    *("invisible", "write.outside", "permissions.open", "delete.unclear", "secret.unclear"),
}
"""Rules that mean nothing for a piece of a script: its variables are defined elsewhere."""

_RUNS = re.compile(r"(?i)command|cmd|shell|bash|(?<!de)script|code")
_SQL = re.compile(
    r"\s*(?:drop\s+(?:table|database|schema|view|index)|truncate\s+(?:table\s+)?[\w.\"]+\s*;?\s*\Z|"
    r"delete\s+from|update\s+\S+\s+set|alter\s+table|grant\s.+\son|revoke\s.+\son)\b",
    re.IGNORECASE | re.DOTALL,
)
_FIELDS_OF_EDITS = {
    "path": "path file_path filePath filename file notebook_path target_file",
    "old": "old_string old_str oldString old_text",
    "new": "new_string new_str newString new_text file_text content new_source",
}
_FIELD_OF = {name: field for field, names in _FIELDS_OF_EDITS.items() for name in names.split()}
"""How tools that are not in the table name a file, a text to replace, and a text to write."""

_PERSONAL = frozenset(("email", "ssn", "iban", "card", "user", "nested"))
"""What redaction replaces although it grants no access."""

_LONGEST_WRITTEN = 8_000
"""A longer text is in no example, so it need not be searched for secrets."""

_SCRIPT = re.compile(r".*\.(?:sh|bash|zsh)|.*(?:^|/)(?:Makefile|Dockerfile)")
_DEPENDENCIES = re.compile(
    r"(?:.*/)?(?:(?P<pypi>[\w.-]*requirements[\w.-]*\.(?:txt|in)|pyproject\.toml|Pipfile|setup\.py)"
    r"|(?P<npm>package\.json)|(?P<other>Cargo\.toml|Gemfile|composer\.json))"
)
_DEPENDENCY = re.compile(r"^[\s\"'+]*(?:gem\s+[\"'])?(@?[A-Za-z][\w.-]*)[\"']?\s*[\[=<>~!:,]", re.M)

_SECRET = Decision(
    answer="ask", rule="write.secret", reason="It writes a password, a key or a token into a file."
)


@lru_cache(maxsize=512)
def why_unsafe(tool: str, arguments: str, folder: str = "") -> Decision | None:
    """Return the decision by which a call must not teach, or None if it may. `folder` is where the
    session worked. An unknown tool may teach, unless one of its arguments is a command, code or SQL
    that must not.
    """
    call = find_call(tool, arguments)
    if call is None:
        decision = _check_unknown_tool(parse_arguments(arguments), folder)
    elif call.operation == "run":
        command, run_in = call.fields.get("command", ""), call.fields.get("folder", "")
        decision = _check_script(command, folder, run_in)
    elif call.operation == "run_code":
        decision = _check_code(call.fields.get("code", ""), folder)
    elif call.operation in ("edit", "write", "patch"):
        decision = strongest(_check_write(call.fields, folder))
    else:
        places, path = _places(folder), call.fields.get("path", "")
        is_secret = path and places.is_secret(places.resolve(path))
        decision = rule("file.secret").decision if is_secret else ALLOW
    return None if decision.answer == "allow" else decision


@lru_cache(maxsize=4_096)
def is_safe_form(form: str) -> bool:
    """Whether a form is safe: `rm -r …` means more than the `rm -r build` that was run."""
    return _check_command(form, ignored=_NO_COMMAND) is ALLOW


def _check_script(line: str, folder: str, run_in: str) -> Decision:
    line = _without_placeholders(line)
    change = CHANGES_FOLDER.match(line)
    start = run_in or (change[2] if change else "")
    is_project = start.startswith("/") and not _SYSTEM.match(start)
    if is_project and (not folder or _is_in_home(start, folder)):
        folder, start = start, ""
    return _check_command(line, folder, start)


def _check_command(
    line: str, folder: str = "", run_in: str = "", *, ignored: frozenset[str] = frozenset()
) -> Decision:
    rows = find_rules(_without_placeholders(line), _places(folder, run_in))
    return _strongest(row for row in rows if row.id not in ignored)


def _check_code(text: str, folder: str) -> Decision:
    return _strongest(find_in_code(_without_placeholders(text), _places(folder)))


def _strongest(rows: Iterable[GateRule]) -> Decision:
    """Return the decision of the rules; needing the network is no reason not to teach."""
    return strongest(row.decision for row in rows if row.id != NETWORK)


def _is_in_home(path: str, folder: str) -> bool:
    """Whether a path is in the home of a session's folder, and not in a hidden folder."""
    home = _HOME.match(folder)
    return home is not None and path.startswith(f"{home[0]}/") and "/." not in path


def _without_placeholders(text: str) -> str:
    """Replace placeholders by their names: to a shell, `<user:1>` is two redirections."""
    return PLACEHOLDER.sub(r"\1", text) if "<" in text else text


@lru_cache(maxsize=32)
def _places(folder: str, run_in: str = "") -> Places:
    workspace = folder if folder.startswith("/") else _UNKNOWN_FOLDER
    match = _HOME.match(workspace)
    home = Path(match[0] if match else _UNKNOWN_HOME)
    return Places(Path(workspace), home, folder=run_in, foreign=True)


def _check_write(fields: Fields, folder: str) -> Iterator[Decision]:
    """Yield decisions on what a call writes, and where."""
    patch: str = fields.get("patch", "")
    paths = [fields["path"]] if "path" in fields else patched_paths(patch)
    places = _places(folder)
    for place in map(places.resolve, paths):
        if places.is_steering(place):
            yield rule("file.steering").decision
        elif folder and not (
            places.is_inside(place) or places.is_scratch(place) or _is_in_home(str(place), folder)
        ):
            yield rule("file.write_outside").decision
    old, new = fields.get("old", ""), fields.get("new") or fields.get("content", "")
    if patch:
        lines = patch.splitlines()
        old = "\n".join(line[1:] for line in lines if line.startswith("-"))
        new = "\n".join(line[1:] for line in lines if line.startswith("+"))
    old_lines = set(old.splitlines())
    added = "\n".join(line for line in new.splitlines() if line not in old_lines)
    if pipes_download_to_interpreter(added):
        yield rule("run.download").decision
    if any(map(_SCRIPT.fullmatch, paths)):
        yield _check_command(added, folder, ignored=_NOT_YET_RUN)
    for match in filter(None, map(_DEPENDENCIES.fullmatch, paths)):
        registry = match.lastgroup or ""
        if any(find_popular(name, registry) for name in _DEPENDENCY.findall(added)):
            yield rule("package.misspelt").decision
    if len(added) <= _LONGEST_WRITTEN:
        families = PLACEHOLDER.findall(Redactor().text(PLACEHOLDER.sub("", added)))
        if any(family not in _PERSONAL for family, _ in families):
            yield _SECRET


def _check_unknown_tool(values: Mapping[str, Any], folder: str) -> Decision:
    """Decide on a tool that is not in the table, by the names of its arguments."""
    decisions: list[Decision] = []
    for name, text in _texts(values):
        if _RUNS.search(name):
            decisions.append(_check_command(text, folder, ignored=_NO_COMMAND))
            decisions.append(_check_code(text, folder))
        elif pipes_download_to_interpreter(text):
            decisions.append(rule("run.download").decision)
    queries = (values.get(name) for name in ("sql", "query", "statement"))
    if any(isinstance(sql, str) and _SQL.match(sql) and loses_data(sql) for sql in queries):
        decisions.append(rule("database.loses").decision)
    edits = values.get("edits")
    for edit in (values, *(edits if isinstance(edits, list) else ())):
        named = {**values, **edit} if isinstance(edit, dict) else {}
        fields = {_FIELD_OF[name]: str(text) for name, text in named.items() if name in _FIELD_OF}
        if "new" in fields:
            decisions += _check_write(fields, folder)
    return strongest(decisions)


def _texts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts in arguments, each with the name of its argument; a list of texts, which may
    be the words of a command, as one.
    """
    waiting: list[tuple[str, Any]] = list(values.items())
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            yield name, shlex.join(value)
        elif isinstance(value, list):
            waiting += ((name, item) for item in value)
