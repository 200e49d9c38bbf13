"""Hermes' requests to models: what an opening needs to know of them, and how it is put into them,
in the three forms that Hermes sends. Only the standard library.
"""

import copy
import re
from collections.abc import Mapping
from typing import Any

FORMS = {
    "chat_completions": "openai",
    "codex_responses": "responses",
    "anthropic_messages": "anthropic",
}
"""The form of an opening for each of Hermes' API modes. In others a session stays cold."""

_CONVERSATION = {"openai": "messages", "responses": "input", "anthropic": "messages"}
_CRON_PREAMBLE = re.compile(r"\s*\[(?:IMPORTANT|SYSTEM): .{0,4000}?\]\s*?\n\s*?\n", re.S)
_REVIEW = "Review the conversation above"
_ANSWERS = ("function_call", "reasoning")


def conversation(request: Mapping[str, Any], form: str) -> list[dict[str, Any]]:
    """Return the messages of a request."""
    messages = request.get(_CONVERSATION[form])
    found = messages if isinstance(messages, list) else []
    return [message for message in found if isinstance(message, dict)]


def is_fresh(messages: list[dict[str, Any]]) -> bool:
    """Whether the model has not answered yet."""
    return not any(
        message.get("role") == "assistant" or message.get("type") in _ANSWERS
        for message in messages
    )


def first_task(messages: list[dict[str, Any]]) -> str:
    """Return what the user asks for first."""
    users = (message for message in messages if message.get("role") == "user")
    return task_text(next(users, {}).get("content"))


def is_review(messages: list[dict[str, Any]]) -> bool:
    """Whether a request is Hermes' background review of a session."""
    users = [message for message in messages if message.get("role") == "user"]
    return bool(users) and task_text(users[-1].get("content")).startswith(_REVIEW)


def task_text(content: object) -> str:
    """Return the task in a user's message. Hermes puts a paragraph in brackets before the task of a
    scheduled job, which would make it similar to every other job.
    """
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "\n".join(part for part in parts if isinstance(part, str))
    text = content if isinstance(content, str) else ""
    preamble = _CRON_PREAMBLE.match(text)
    rest = text[preamble.end() :].strip() if preamble else ""
    return rest or text.strip()


def with_opening(
    request: Mapping[str, Any], form: str, system: str, examples: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the fields of a request that an opening changes. The text follows Hermes' own system
    text, and the examples come before the conversation. There is still one system message, because
    some servers accept no second one.
    """
    shown = copy.deepcopy(examples)
    if form == "anthropic":
        return {
            "system": _joined(request.get("system"), system),
            "messages": [*shown, *request["messages"]],
        }
    if form == "responses":
        # Hermes checks its items, and takes messages of users only without a type.
        for item in shown:
            if item.get("type") == "message":
                del item["type"]
        return {
            "instructions": _joined(request.get("instructions"), system),
            "input": [*shown, *request["input"]],
        }
    messages = list(request["messages"])
    at = 0
    while at < len(messages) and messages[at].get("role") in ("system", "developer"):
        at += 1
    if at == 0:
        return {"messages": [{"role": "system", "content": system}, *shown, *messages]}
    last = messages[at - 1]
    noted = {**last, "content": _joined(last.get("content"), system)}
    return {"messages": [*messages[: at - 1], noted, *shown, *messages[at:]]}


def _joined(content: object, text: str) -> object:
    """Return a system text with another one after it."""
    if not text:
        return content
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return f"{content}\n\n{text}" if content else text
