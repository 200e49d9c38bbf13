"""A session's messages in the OpenAI chat format."""

from collections.abc import Iterable
from typing import Any

from journeyman.records.message import Message


def openai_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as a chat completion request would carry them. Reasoning, flags and times have
    no place there and are left out.
    """
    return [_openai_message(message) for message in messages]


def _openai_message(message: Message) -> dict[str, Any]:
    chat: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        chat["content"] = message.text or None
        chat["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        chat["tool_call_id"] = message.tool_call_id
        if message.tool_name:
            chat["name"] = message.tool_name
    return chat
