"""The editors of the files that hosts read: hooks in JSON, plugins in YAML, and files that are
entirely Journeyman's. They turn bytes into text, and what is wrong with it into errors.
"""

from collections.abc import Callable, Collection
from pathlib import Path

from journeyman.hosts.installation import hooks_file, json_text, yaml_list
from journeyman.hosts.installation.hooks_file import Groups
from journeyman.hosts.installation.json_text import NotJson
from journeyman.hosts.installation.yaml_list import NotEditable, Parse
from journeyman.records.errors import OutsideProblem

_BOM = "\ufeff"
PLUGIN = "journeyman"


class HooksEditor:
    """Edits the hooks of Claude Code or Codex. `takes_bom` says whether the host reads a file that
    begins with a byte order mark.
    """

    owns_file = False

    def __init__(self, path: Path, title: str, wanted: Groups, *, takes_bom: bool) -> None:
        self._path, self._title = path, title
        self._wanted, self._takes_bom = wanted, takes_bom

    def with_entries(self, content: bytes | None, present: Collection[str]) -> bytes:
        return self._edit(
            content or b"", lambda text: hooks_file.with_groups(text, self._wanted, present)
        )

    def without_entries(self, content: bytes, present: Collection[str]) -> bytes:
        if not content.strip():
            return content
        return self._edit(content, lambda text: hooks_file.without_groups(text, present))

    def present_in(self, content: bytes) -> tuple[str, ...]:
        return hooks_file.present_containers(self._text(content)[1])

    def is_blank(self, content: bytes) -> bool:
        return not json_text.parse(self._text(content)[1])

    def _edit(self, content: bytes, edit: Callable[[str], str]) -> bytes:
        mark, text = self._text(content)
        try:
            return f"{mark}{edit(text)}".encode()
        except NotJson as error:
            raise self._problem(str(error)) from error
        except UnicodeEncodeError as error:
            raise OutsideProblem(
                f"A path of this installation is not Unicode, so {self._title} cannot call it. "
                "Nothing was changed. Install Journeyman in another folder."
            ) from error

    def _text(self, content: bytes) -> tuple[str, str]:
        """Return the byte order mark and the text, which is valid JSON; an empty file is an empty
        object.
        """
        try:
            text = content.decode()
            mark = _BOM if text.startswith(_BOM) else ""
            if mark and not self._takes_bom:
                raise self._problem("it begins with a byte order mark")
            text = text.removeprefix(mark)
            if not text.strip():
                text = "{}\n"
            hooks_file.own_hooks(text)
        except UnicodeDecodeError as error:
            raise self._problem(f"it is not UTF-8: {error}") from error
        except NotJson as error:
            raise self._problem(str(error)) from error
        return mark, text

    def _problem(self, clause: str) -> OutsideProblem:
        return OutsideProblem(
            f"{self._path} cannot be edited: {clause}. {self._title} does not read such a file "
            "either. Nothing was changed. Correct the file, then run the command again."
        )


class PluginsEditor:
    """Edits the list of plugins in Hermes' config.yaml. `parse` reads YAML, where that is possible,
    and checks every edit.
    """

    owns_file = False

    def __init__(self, path: Path, parse: Parse | None) -> None:
        self._path, self._parse = path, parse

    def with_entries(self, content: bytes | None, present: Collection[str]) -> bytes:  # noqa: ARG002
        return self._edit(
            content or b"", lambda text: yaml_list.with_plugin(text, PLUGIN, self._parse)
        )

    def without_entries(self, content: bytes, present: Collection[str]) -> bytes:
        return self._edit(content, lambda text: yaml_list.without_plugin(text, PLUGIN, present))

    def present_in(self, content: bytes) -> tuple[str, ...]:
        return yaml_list.present_keys(self._text(content))

    def is_blank(self, content: bytes) -> bool:
        return not content.strip()

    def _edit(self, content: bytes, edit: Callable[[str], str]) -> bytes:
        text = self._text(content)
        try:
            return edit(text).encode()
        except NotEditable as error:
            raise self._problem(str(error)) from error

    def _text(self, content: bytes) -> str:
        try:
            text = content.decode()
            if self._parse is not None and not isinstance(self._parse(text), dict | None):
                raise self._problem("it does not contain a mapping")
            yaml_list.present_keys(text)
        except ValueError as error:
            raise self._problem(str(error)) from error
        return text

    def _problem(self, clause: str) -> OutsideProblem:
        return OutsideProblem(
            f"{self._path} cannot be edited safely: {clause}. Nothing was changed. Enable the "
            f"plugin with Hermes itself: hermes plugins enable {PLUGIN}"
        )


class WholeFile:
    """Writes a file that is entirely Journeyman's. `mark` occurs in every version of it."""

    owns_file = True

    def __init__(self, content: bytes, mark: bytes) -> None:
        self._content, self._mark = content, mark

    def with_entries(self, content: bytes | None, present: Collection[str]) -> bytes:  # noqa: ARG002
        return self._content

    def without_entries(self, content: bytes, present: Collection[str]) -> bytes:  # noqa: ARG002
        return b"" if self._mark in content else content

    def present_in(self, content: bytes) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def is_blank(self, content: bytes) -> bool:
        return not content
