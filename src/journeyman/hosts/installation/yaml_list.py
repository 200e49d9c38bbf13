"""Edits the list `plugins.enabled` in Hermes' config.yaml line by line, so that comments and
everything else stay. A file with a shape that cannot be edited safely is refused.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

_PARENT, _CHILD, _DISABLED = "plugins", "enabled", "disabled"
_LIST = f"{_PARENT}.{_CHILD}"
_BLANK = re.compile(r"\s*(#.*)?")
_KEY = re.compile(r"(?P<indent> *)(?P<quote>['\"]?)(?P<name>[\w./-]+)(?P=quote) *:(?P<value>\s.*|)")
_ITEM = re.compile(r"(?P<indent> *)- +(?P<quote>['\"]?)(?P<name>[\w./-]+)(?P=quote)\s*(#.*)?")
_MAPPING = re.compile(r"\s*\{.*\}\s*(#.*)?")
_TOP_LEVEL = re.compile(r"[^\s#]")
_MARKS = ("---", "...")

Parse = Callable[[str], Any]
"""Reads YAML; raises ValueError."""


class NotEditable(ValueError):
    """The file has a shape that is not edited; the message is a clause that says which."""


class _Place(NamedTuple):
    """Where the list is: the lines of the two keys (None if the file has no such key), how the
    lines below `plugins` are indented, the lines of the items, and their names. In a list on one
    line, the items have no lines of their own.
    """

    parent: int | None = None
    child: int | None = None
    indent: str = "  "
    items: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


def enabled_plugins(text: str) -> tuple[str, ...]:
    """Return the names in the list. Raise NotEditable."""
    return _locate(_split(text)).names


def disabled_plugins(text: str) -> tuple[str, ...]:
    """Return the names in the list `plugins.disabled`. Raise NotEditable."""
    return _locate(_split(text), _DISABLED).names


def present_keys(text: str) -> tuple[str, ...]:
    """Return which of `plugins` and `plugins.enabled` the file has. Raise NotEditable."""
    place = _locate(_split(text))
    keys = ((place.parent, _PARENT), (place.child, _LIST))
    return tuple(name for line, name in keys if line is not None)


def with_plugin(text: str, name: str, parse: Parse | None = None) -> str:
    """Return the text with a plugin in the list; keys that are missing are added too. If there is
    a parser, the result is compared with the text before. Raise NotEditable.
    """
    if name in enabled_plugins(text):
        return text
    lines = _split(text)
    parent, child, indent, items, _ = _locate(lines)
    if parent is None:
        new, at = [f"{_PARENT}:", f"  {_CHILD}:", f"    - {name}"], len(lines)
    elif child is None:
        new, at = [f"{indent}{_CHILD}:", f"{indent}  - {name}"], parent + 1
    elif items:
        new, at = [f"{_ITEM.fullmatch(lines[items[-1]])['indent']}- {name}"], items[-1] + 1  # type: ignore[index]
    elif flow := _flow_list(lines[child], _CHILD):
        names = flow["items"].rstrip()
        space = flow["items"][len(names) :]
        names += f", {name}" if names else name
        lines[child] = f"{flow['head']}{names}{space}{flow['tail']}"
        new, at = [], 0
    else:
        new, at = [f"{indent}  - {name}"], child + 1
    # A text without a line end at its end has an empty last line, which stays the last.
    if new and at == len(lines) and not lines[-1]:
        at -= 1
    elif new and at == len(lines):
        new.append("")
    edited = _join([*lines[:at], *new, *lines[at:]], text)
    if parse is not None:
        _compare(parse(text), parse(edited), name)
    return edited


def without_plugin(text: str, name: str, present: Collection[str] = ()) -> str:
    """Return the text without a plugin in the list, and without the keys that it leaves empty,
    except those in `present`, which were there before. Raise NotEditable.
    """
    lines = _split(text)
    parent, child, _, items, names = _locate(lines)
    if name not in names or parent is None or child is None:
        return text
    at = names.index(name)
    if items:
        del lines[items[at]]
    else:
        flow = _flow_list(lines[child], _CHILD)
        assert flow is not None
        parts = flow["items"].rstrip().split(",")
        space = flow["items"][len(flow["items"].rstrip()) :]
        del parts[at]
        rest = ",".join(parts)
        lines[child] = f"{flow['head']}{rest if at else rest.lstrip()}{space}{flow['tail']}"
    if len(names) == 1:
        if _LIST in present:
            if items:
                lines[child] = f"{lines[child].partition(':')[0]}: []"
        else:
            del lines[child]
            is_empty = not any(_content(lines, parent))
            if is_empty and _PARENT not in present:
                del lines[parent]
    return _join(lines, text)


def _flow_list(line: str, name: str) -> re.Match[str] | None:
    """Match a line with a list on one line, `name: [a, b]`, also in a mapping on one line."""
    return re.fullmatch(
        rf"(?P<head>[^#]*?(?<![\w./-]){name}['\"]? *: *\[)(?P<items>[^\[\]{{}}#]*)"
        r"(?P<tail>\](?:\s*|[^#]*\}\s*)(#.*)?)",
        line,
    )


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def _join(lines: list[str], like: str) -> str:
    """Join lines with the line ends of another text."""
    return ("\r\n" if "\r\n" in like else "\n").join(lines)


def _locate(lines: list[str], child: str = _CHILD) -> _Place:
    parent = None
    has_begun = False
    for number, line in enumerate(lines):
        bare = line.removeprefix("\ufeff") if number == 0 else line
        if not _TOP_LEVEL.match(bare):
            continue
        if bare.startswith(_MARKS):
            if has_begun or bare.rstrip() != _MARKS[0]:
                raise NotEditable("it has more than one document")
            continue
        has_begun = True
        key = _KEY.fullmatch(bare)
        if key is None:
            raise NotEditable(f"line {number + 1} does not begin with a plain key")
        if key["name"] == _PARENT:
            if parent is not None:
                raise NotEditable(f"it has {_PARENT!r} twice")
            if not (_BLANK.fullmatch(key["value"]) or _MAPPING.fullmatch(key["value"])):
                raise NotEditable(f"its {_PARENT!r} is not a mapping")
            parent = number
    if parent is None:
        return _Place()
    if "{" in lines[parent].partition("#")[0]:
        return _locate_flow(lines[parent], parent, parent, child)
    return _locate_list(lines, parent, child)


def _locate_list(lines: list[str], parent: int, child: str) -> _Place:
    """Find the list below its parent."""
    indent = None
    for number, line in _content(lines, parent):
        key = _KEY.fullmatch(line)
        indent = line[: len(line) - len(line.lstrip())] if indent is None else indent
        if "\t" in indent or not line.startswith(indent):
            raise NotEditable(f"line {number + 1} is indented irregularly")
        if key is None or key["name"] != child or key["indent"] != indent:
            continue
        if _BLANK.fullmatch(key["value"]):
            return _locate_items(lines, parent, number, indent)
        return _locate_flow(line, parent, number, child)
    return _Place(parent, None, indent or "  ")


def _locate_flow(line: str, parent: int, number: int, child: str) -> _Place:
    """Find the names of a list on one line."""
    flow = _flow_list(line, child)
    if flow is None:
        raise NotEditable(f"its {_PARENT}.{child} is not a list of names")
    names = [one.strip().strip("'\"") for one in flow["items"].split(",")]
    return _Place(parent, number, names=tuple(filter(None, names)))


def _locate_items(lines: list[str], parent: int, child: int, indent: str) -> _Place:
    found: list[tuple[int, str]] = []
    for number, line in _content(lines, parent):
        if number <= child:
            continue
        if not line.startswith((f"{indent} ", f"{indent}- ")):
            break
        item = _ITEM.fullmatch(line)
        if item is None:
            raise NotEditable(f"line {number + 1} in {_LIST} is not the name of a plugin")
        found.append((number, item["name"]))
    items, names = (tuple(one) for one in zip(*found, strict=True)) if found else ((), ())
    return _Place(parent, child, indent, items, names)


def _content(lines: list[str], parent: int) -> Iterator[tuple[int, str]]:
    """Yield the lines of a top-level key after its first, except comments and empty ones."""
    for number in range(parent + 1, len(lines)):
        if _TOP_LEVEL.match(lines[number]):
            return
        if not _BLANK.fullmatch(lines[number]):
            yield number, lines[number]


def _compare(before: Any, after: Any, name: str) -> None:
    """Raise NotEditable unless the only difference is the plugin in the list."""
    before = {} if before is None else before
    plugins = before.get(_PARENT) or {}
    names = plugins.get(_CHILD) or []
    if after != {**before, _PARENT: {**plugins, _CHILD: [*names, name]}}:
        raise NotEditable("the edited text would not mean the same")
