"""Servers that accept a system message only at the beginning of a conversation: how they say so,
and how later system messages are sent to them.
"""

import re
from collections.abc import Sequence
from typing import Any

from journeyman.models.model import JsonObject

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
