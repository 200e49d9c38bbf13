"""Edits `config.toml` as a person would: the lines of one setting change, and comments, order and
everything else stay. Every edit is parsed and compared before it is written.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from journeyman.records.errors import BadSetting
from journeyman.settings import DEFAULTS, SETTINGS
from journeyman.text.atomic_write import replace_file

_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^\[\]#]+?)\s*\]\]?\s*(#.*)?")
_ASSIGNMENT = re.compile(r"\s*(?P<name>[\w.\"'-]+)\s*=")
_LONGEST_VALUE = 1_000
"""Lines of one value at most."""

_INTRODUCTION = """\
# Settings of Journeyman. Remove the # before a line to change a setting; `journeyman config show`
# lists the values in force and where each comes from, `journeyman config set KEY VALUE` edits this
# file. JOURNEYMAN_* variables and flags take precedence over it.
"""
_EXAMPLES = {
    "database": "postgresql://user:password@host/name",
    "model.context_length": 128_000,
    "model.max_tokens": 8_192,
    "model.temperature": 0.7,
    "agent.tokens": 500_000,
    "agent.cost_usd": 1.0,
    "agent.seconds": 600.0,
    "agent.memory_mb": 4_096,
}
"""Values for the settings that have no default, or one that depends on the machine."""


class _Span(NamedTuple):
    """The lines of one assignment or of one table, and its full name."""

    name: str
    first: int
    end: int
    is_table: bool = False


def set_value(file: Path, key: str, value: Any) -> None:
    """Write one setting into the file, which is created if there is none."""
    before = _read(file)
    line = f"{key.rpartition('.')[2]} = {_toml(value)}"
    _replace(file, _with_line(before, key, line), _changed(tomllib.loads(before), key, value))


def unset_value(file: Path, key: str) -> None:
    """Remove one setting, or a table with everything in it, from the file."""
    before = _read(file)
    lines = before.splitlines(keepends=True)
    spans = [span for span in _spans(lines) if f"{span.name}.".startswith(f"{key}.")]
    if not spans:
        raise BadSetting(f"{file} does not set {key!r}, so there is nothing to remove.")
    removed = {number for span in spans for number in range(span.first, span.end)}
    kept = [line for number, line in enumerate(lines) if number not in removed]
    _replace(file, "".join(kept), _changed(tomllib.loads(before), key, None))


def write_initial(file: Path) -> None:
    """Write a file in which every setting is described and commented out."""
    if file.exists():
        raise BadSetting(
            f"{file} exists already. `journeyman config show` shows what it sets; edit it, or use "
            "`journeyman config set`."
        )
    _write(file, initial_text())


def initial_text() -> str:
    """Return the text of a file in which every setting is described and commented out."""
    text, table = _INTRODUCTION, ""
    for setting in SETTINGS:
        group, _, name = setting.key.rpartition(".")
        if group != table:
            text, table = f"{text}\n[{group}]\n", group
        elif not group:
            text += "\n"
        default = DEFAULTS.get(setting.key)
        value = _EXAMPLES[setting.key] if default is None else default
        text += f"# {setting.about}\n# {name} = {_toml(value)}\n"
    return text


def _read(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8-sig")
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetting(
            f"{file} cannot be read: {error}. `journeyman doctor` says how to mend it."
        ) from error
    return text


def _with_line(text: str, key: str, line: str) -> str:
    lines = text.splitlines(keepends=True)
    spans = [*_spans(lines)]
    for span in spans:
        if span.name == key and not span.is_table:
            indent = lines[span.first][: len(lines[span.first]) - len(lines[span.first].lstrip())]
            comment = _comment(lines[span.first]) if span.end == span.first + 1 else ""
            dotted = lines[span.first].partition("=")[0].strip()
            value = line.partition(" = ")[2]
            lines[span.first : span.end] = [f"{indent}{dotted} = {value}{comment}\n"]
            return "".join(lines)
    table, _, name = key.rpartition(".")
    header = next((span for span in spans if span.is_table and span.name == table), None)
    if table and header is None:
        return f"{text}{_gap(text)}[{table}]\n{line}\n"
    first = header.first + 1 if header else 0
    end = header.end if header else next((s.first for s in spans if s.is_table), len(lines))
    if lines and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    # Below its commented-out line, if the file has one.
    template = re.compile(rf"\s*#\s*{re.escape(name)}\s*=")
    places = [number for number in range(first, end) if template.match(lines[number])]
    lines.insert(places[0] + 1 if places else first if header else end, f"{line}\n")
    return "".join(lines)


def _gap(text: str) -> str:
    """What separates a new table from the text before it."""
    return "" if not text else "\n" if text.endswith("\n") else "\n\n"


def _spans(lines: list[str]) -> Iterator[_Span]:
    """Yield the assignments and the tables of a file. A table ends where the next begins."""
    headers: list[tuple[str, int]] = []
    assignments: list[_Span] = []
    number = 0
    while number < len(lines):
        end = number + 1
        if header := _HEADER.fullmatch(lines[number].rstrip("\r\n")):
            headers.append((_unquoted(header["name"]), number))
        elif found := _ASSIGNMENT.match(lines[number]):
            while not _parses("".join(lines[number:end])) and end < len(lines):
                if end - number > _LONGEST_VALUE:
                    break
                end += 1
            table = f"{headers[-1][0]}." if headers else ""
            assignments.append(_Span(table + _unquoted(found["name"]), number, end))
        number = end
    ends = [*(first for _, first in headers), len(lines)][1:]
    for (name, first), end in zip(headers, ends, strict=False):
        yield _Span(name, first, end, is_table=True)
    in_tables = {name for name, _ in headers}
    yield from (span for span in assignments if span.name not in in_tables)


def _unquoted(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _comment(line: str) -> str:
    """Return the comment behind a value, with the space before it."""
    value = tomllib.loads(line)
    for found in re.finditer(r"\s*#", line):
        before = line[: found.start()]
        if _parses(before) and tomllib.loads(before) == value:
            return line[found.start() :].rstrip("\r\n")
    return ""


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _changed(document: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return the document as it has to be after the edit."""
    *tables, name = key.split(".")
    inner = document
    for depth, table in enumerate(tables, 1):
        inner = inner.setdefault(table, {})
        if not isinstance(inner, dict):
            path = ".".join(tables[:depth])
            raise BadSetting(
                f"{key} cannot be changed, because {path} is not a table. `journeyman config unset "
                f"{path}` removes it."
            )
    if value is None:
        inner.pop(name, None)
    else:
        inner[name] = list(value) if isinstance(value, tuple) else value
    return document


def _replace(file: Path, text: str, expected: Mapping[str, Any]) -> None:
    try:
        is_expected = _without_empty(tomllib.loads(text)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        is_expected = False
    if not is_expected:
        raise BadSetting(f"{file} cannot be edited automatically: edit it by hand.")
    _write(file, text)


def _without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without empty tables, which mean nothing."""
    nested = {
        name: _without_empty(value) if isinstance(value, Mapping) else value
        for name, value in document.items()
    }
    return {name: value for name, value in nested.items() if value != {}}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(file, text.encode())
