"""Conversations of a fictitious agent that keeps stock lists, in the OpenAI message format: long
enough to learn from, with calls, results and, on request, failures.
"""

import json
from typing import Any

Message = dict[str, Any]

GOODS = ("nails", "planks", "hinges", "glue", "paint", "chisels", "ropes")


def stock_keeping(day: int, *, failures: int = 0) -> list[Message]:
    """A conversation of 36 messages and 14 calls: for each item a request, a lookup and a note. The
    first `failures` notes fail.
    """
    messages: list[Message] = []
    for number, goods in enumerate(GOODS):
        count = 10 * day + number
        noted = {"error": f"no such list: {goods}"} if number < failures else {"noted": count}
        messages += [
            {"role": "user", "content": f"Count the {goods} in the shed and note it for day {day}"},
            *_call(f"l{day}{number}", "look_up", {"goods": goods}, {"goods": goods, "n": count}),
            *_call(f"n{day}{number}", "note_down", {"list": goods, "n": count}, noted),
        ]
    return [*messages, {"role": "assistant", "content": f"All {len(GOODS)} lists are kept."}]


def _call(call_id: str, tool: str, arguments: Message, result: Message) -> list[Message]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)},
    ]
