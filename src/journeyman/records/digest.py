"""Digests of what was said: equal content, equal digest, wherever it was recorded.

Key and position are left out, because two copies of one log may number their lines differently.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from journeyman.records.message import Message

_encode = msgspec.msgpack.Encoder().encode


def message_digest(message: Message) -> bytes:
    """Sixteen bytes that name the content of a message."""
    body = _encode(
        (
            message.role,
            message.kind,
            message.text,
            message.reasoning,
            message.tool_calls,
            message.tool_call_id,
            message.tool_name,
            message.recorded,
            message.at,
            message.model,
            message.finish_reason,
            message.generation,
        )
    )
    return hashlib.sha256(body).digest()[:16]


def session_digest(digests: Iterable[bytes]) -> str:
    """The digest of a session from those of its messages, in order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()[:32]
