"""A played session as one line of OpenAI chat messages, with the reward it got."""

import json
from typing import Any

from journeyman.testing.recording import Ids
from journeyman.testing.script import Heard, Played, Turn

MODEL = "gpt-4.1-mini"

SYSTEM = (
    "You are the support agent of a small shop. Look up the customer before you change anything. "
    "Refund only orders that were delivered or returned. Never promise what a tool has not done."
)


def chat_record(played: Played) -> dict[str, Any]:
    """{"id", "model", "messages", "reward"} as trainers and evaluation tools write it."""
    ids = Ids(played.script.name)
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
    for event in played.events:
        if isinstance(event, Heard):
            messages.append({"role": "user", "content": event.text})
        elif isinstance(event, Turn):
            messages += _turn_messages(event, ids)
    return {
        "id": f"support-{ids.stamp}",
        "model": MODEL,
        "messages": messages,
        "reward": played.script.reward,
    }


def _turn_messages(turn: Turn, ids: Ids) -> list[dict[str, Any]]:
    if not turn.replies:
        return [{"role": "assistant", "content": turn.act.text}]
    calls, results = [], []
    for reply in turn.replies:
        call = ids.token("call_", 24)
        arguments = reply.ask.malformed or json.dumps(reply.ask.arguments)
        function = {"name": reply.ask.tool, "arguments": arguments}
        calls.append({"id": call, "type": "function", "function": function})
        if reply.result is not None:
            text = reply.result.text or '{"error": "The arguments are not valid JSON."}'
            tool = {"tool_call_id": call, "name": reply.ask.tool}
            results.append({"role": "tool", **tool, "content": text})
    content = turn.act.text or None
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *results]
