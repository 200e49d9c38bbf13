"""Edits JSON as text: members are appended, replaced and removed where they stand, and everything
else stays as it was written. Removing what was appended restores the text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE_START = re.compile(r"[ \t]*")
_DEFAULT_INDENT = "  "

Path = Sequence[str | int]
"""The keys and indexes that lead to a value."""


class NotJson(ValueError):
    """The text is not JSON, or its value has another shape than expected; the message is a clause
    that says so.
    """


class _Member(NamedTuple):
    """A member of an object or a list: its key, and where it begins (with its key), where its value
    begins, and where it ends.
    """

    key: str | int
    start: int
    value_start: int
    end: int


def _reject(constant: str) -> None:
    raise NotJson(f"it contains {constant}, which is not JSON")


_decoder = json.JSONDecoder(parse_constant=_reject)


def parse(text: str) -> Any:
    """Return the value of a JSON text. Raise NotJson."""
    try:
        return json.loads(text, parse_constant=_reject)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        if error.pos < len(text) and text[error.pos : error.pos + 2] in ("//", "/*"):
            raise NotJson(f"it has a comment in line {error.lineno}") from None
        raise NotJson(f"it is not JSON: {error}") from None


def append(text: str, path: Path, key: str | None, value: Any) -> str:
    """Return the text with a member added to the end of the object or list at the path; `key` is
    its name in an object. The new member is laid out like its neighbours.
    """
    start, members = _container(text, path)
    layout = _Layout(text)
    if members:
        gap = text[start + 1 : members[0].start]
        is_multiline = "\n" in gap
        written = layout.write(value, gap.rpartition("\n")[2] if is_multiline else None)
        if not is_multiline and not gap:
            gap = layout.gap
        at = members[-1].end
        return f"{text[:at]},{gap}{layout.name(key)}{written}{text[at:]}"
    end = text.index("}" if text[start] == "{" else "]", start)
    if layout.is_compact:
        return f"{text[: start + 1]}{layout.name(key)}{layout.write(value, None)}{text[end:]}"
    outer = layout.indent_at(start)
    inner = outer + layout.indent
    line = f"{layout.newline}{inner}{layout.name(key)}{layout.write(value, inner)}"
    return f"{text[: start + 1]}{line}{layout.newline}{outer}{text[end:]}"


def replace(text: str, path: Path, value: Any) -> str:
    """Return the text with another value at the path."""
    _, members = _container(text, path[:-1])
    layout = _Layout(text)
    member = _find(members, path[-1])
    is_multiline = not layout.is_compact
    indent = layout.indent_at(member.start) if is_multiline else None
    return text[: member.value_start] + layout.write(value, indent) + text[member.end :]


def remove(text: str, path: Path) -> str:
    """Return the text without the member at the path."""
    start, members = _container(text, path[:-1])
    member = _find(members, path[-1])
    at = members.index(member)
    if at:
        return text[: members[at - 1].end] + text[member.end :]
    if len(members) > 1:
        return text[: member.start] + text[members[1].start :]
    end = _SPACE.match(text, member.end).end()  # type: ignore[union-attr]
    return text[: start + 1] + text[end:]


class _Layout:
    """How a text is laid out: on one line or many, with which indentation, line ends and spaces."""

    def __init__(self, text: str) -> None:
        self._text = text
        start, members = _container(text, ())
        first = text[start + 1 : members[0].start] if members else "\n"
        self.is_compact = "\n" not in first
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.indent = first.rpartition("\n")[2] or _DEFAULT_INDENT
        after_key = text[members[0].start : members[0].value_start] if members else ": "
        self.gap = " " if after_key[-1].isspace() else ""

    def name(self, key: str | None) -> str:
        return "" if key is None else f"{_text_of(key)}:{self.gap}"

    def write(self, value: Any, indent: str | None) -> str:
        """Write a value: on one line, or on many whose first is indented by `indent`."""
        if indent is None:
            return _text_of(value, separators=(f",{self.gap}", f":{self.gap}"))
        lines = _text_of(value, indent=self.indent, separators=(",", f":{self.gap}")).split("\n")
        return f"{self.newline}{indent}".join(lines)

    def indent_at(self, at: int) -> str:
        """The indentation of the line that contains a position."""
        line = self._text.rfind("\n", 0, at) + 1
        return _LINE_START.match(self._text, line)[0]  # type: ignore[index]


def _text_of(value: Any, **layout: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **layout)


def _container(text: str, path: Path) -> tuple[int, list[_Member]]:
    """Return where the object or list at the path begins, and its members."""
    start = _after_space(text, 0)
    members = _members(text, start)
    for key in path:
        start = _find(members, key).value_start
        members = _members(text, start)
    return start, members


def _find(members: list[_Member], key: str | int) -> _Member:
    """Return the member with this key: the last, as programs read a key that occurs twice."""
    for member in reversed(members):
        if member.key == key:
            return member
    raise KeyError(key)


def _members(text: str, start: int) -> list[_Member]:
    """Return the members of the object or list that begins here, in text that is valid JSON."""
    is_object = text[start] == "{"
    found: list[_Member] = []
    at = _after_space(text, start + 1)
    while text[at] not in "]}":
        begin, key = at, len(found)
        if is_object:
            key, at = _decoder.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        _, end = _decoder.raw_decode(text, at)
        found.append(_Member(key, begin, at, end))
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found


def _after_space(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]
