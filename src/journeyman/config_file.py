"""Edits `config.toml`: one setting changes, and comments, order and everything else stay."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from journeyman.records.errors import BadSetting
from journeyman.text.atomic_write import replace_file


def set_value(file: Path, key: str, value: Any) -> None:
    """Write one setting into the file, which is created if there is none."""
    document = _read(file)
    *tables, name = key.split(".")
    inner: MutableMapping[str, Any] = document
    for table in tables:
        inner = inner.setdefault(table, tomlkit.table())
        if not isinstance(inner, MutableMapping):
            raise BadSetting(
                f"{key} cannot be changed, because {table} is not a table. `journeyman config "
                f"unset {table}` removes it."
            )
    inner[name] = list(value) if isinstance(value, tuple) else value
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(file, tomlkit.dumps(document).encode())


def unset_value(file: Path, key: str) -> None:
    """Remove one setting, or a table with everything in it, from the file."""
    document = _read(file)
    *tables, name = key.split(".")
    inner: Any = document
    for table in tables:
        inner = inner.get(table) if isinstance(inner, MutableMapping) else None
    if not isinstance(inner, MutableMapping) or name not in inner:
        raise BadSetting(f"{file} does not set {key!r}, so there is nothing to remove.")
    del inner[name]
    replace_file(file, tomlkit.dumps(document).encode())


def _read(file: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return tomlkit.document()
    except (OSError, UnicodeDecodeError, TOMLKitError, RecursionError) as error:
        raise BadSetting(
            f"{file} cannot be read: {error}. `journeyman doctor` says how to mend it."
        ) from error
