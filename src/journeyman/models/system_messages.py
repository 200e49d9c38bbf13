"""Servers that accept a system message only at the beginning of a conversation: how they say so,
how later system messages are sent to them, and a file that remembers them for the next process.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from journeyman.models.model import JsonObject
from journeyman.text.atomic_write import replace_file

_REFUSED = re.compile(
    r"system\W{0,3}\s*(?:role|messages?|prompt)?[^.\n]{0,60}\b(?:at the (?:beginning|start)"
    r"|must be (?:the )?first|first message|only (?:be )?(?:at|the) )"
    r"|(?:first|only the first)[^.\n]{0,40}\bsystem\b"
    r"|unexpected role\W{0,3}system|system\W{0,3}\s*role (?:is )?not (?:supported|allowed)"
    r"|conversation roles must alternate",
    re.IGNORECASE,
)
_NOTE = "[A note from the program, not from the user]\n"


def is_system_refusal(error: str) -> bool:
    """Return whether a server's error is about the place of a system message."""
    return _REFUSED.search(error) is not None


def has_later_system(messages: Sequence[JsonObject]) -> bool:
    """Return whether a system message stands elsewhere than at the beginning."""
    return any(message.get("role") == "system" for message in messages[1:])


def with_leading_system(messages: Sequence[JsonObject]) -> list[dict[str, Any]]:
    """Return messages with one system message, at the beginning: further ones there are joined to
    the first, later ones become notes in the user's place. Messages before a note stay the same
    bytes, so that the provider's cache serves them.
    """
    adapted: list[dict[str, Any]] = []
    for message in messages:
        copy = dict(message)
        if adapted and copy.get("role") == "system":
            text = str(copy.get("content") or "")
            if len(adapted) == 1 and adapted[0].get("role") == "system":
                adapted[0]["content"] = f"{adapted[0].get('content') or ''}\n\n{text}".strip()
                continue
            copy = {**copy, "role": "user", "content": f"{_NOTE}{text}"}
        adapted.append(copy)
    return adapted


class KnownServers:
    """The endpoints and models, in a JSON file, that refused a later system message once. Without a
    file, nothing is remembered; a file that cannot be read or written costs one refused request.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def contains(self, url: str, model: str) -> bool:
        return [url, model] in self._read()

    def add(self, url: str, model: str) -> None:
        if self._path is None or self.contains(url, model):
            return
        content = msgspec.json.encode({"leading_system_only": [*self._read(), [url, model]]})
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, msgspec.json.format(content, indent=2) + b"\n")
        except OSError:
            return

    def _read(self) -> list[list[str]]:
        try:
            content = self._path.read_bytes() if self._path else b"{}"
            known = msgspec.json.decode(content, type=dict[str, list[list[str]]])
        except (OSError, msgspec.DecodeError, UnicodeError):
            return []
        return known.get("leading_system_only", [])
