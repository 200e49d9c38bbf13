"""A small model's reply as text and tool calls. Calls stand in tags, and some models write them
as a bare JSON object or fence them as code. What is not JSON is not mended: arguments that are
broken stay as they came, for the agent to answer, and what names no tool is text.
"""

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from journeyman.models.chat_text import CALL_ENDS, CALL_OPENS
from journeyman.models.model import JsonObject
from journeyman.records import ToolCall


class _Found(NamedTuple):
    """A call, and the part of the reply it takes. No arguments are not the same as empty ones."""

    start: int
    end: int
    name: str
    arguments: str


_DECODER = json.JSONDecoder()
_FENCED = re.compile(r"```(?:json|tool_call)?\s*(\{.*?\})\s*```", re.DOTALL)
_FENCE_MAY_OPEN = re.compile(r"`{1,2}\Z|```[a-z_]*\s*(?:\{|\Z)")
_NAMED = re.compile(
    r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)+")\s*,\s*"arguments"\s*:\s*(?=\S)(.*)', re.DOTALL
)


def read_reply(
    reply: str, tools: Collection[str], ids: Iterator[str]
) -> tuple[str, tuple[ToolCall, ...]]:
    """The text and the calls of a reply by a model that was given these tools. Each call takes
    the next of the ids.
    """
    found = (_marked(reply) or _fenced(reply, tools) or _bare(reply, tools)) if tools else []
    ends = [0, *(call.end for call in found)]
    starts = [*(call.start for call in found), len(reply)]
    between = [reply[end:start].strip() for end, start in zip(ends, starts, strict=True)]
    calls = tuple(
        ToolCall(id=next(ids), name=call.name, arguments=call.arguments or "{}") for call in found
    )
    return "\n".join(filter(None, between)), calls


def settled(reply: str, tools: Collection[str]) -> str:
    """How much of a reply that is still coming is text whatever follows: a beginning of what
    `read_reply` will call its text.
    """
    if not tools:
        return reply.strip()
    if reply.lstrip().startswith("{"):
        return ""
    ends = [_tag_may_open(reply)]
    if fence := _FENCE_MAY_OPEN.search(reply):
        ends.append(fence.start())
    return reply[: min(ends)].strip()


def new_ids(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Ids for the next calls of a conversation, the same for the same messages, none used twice."""
    asked = [call for message in messages for call in message.get("tool_calls") or ()]
    used = {call.get("id") for call in asked} | {one.get("tool_call_id") for one in messages}
    numbered = (f"call_{number:04}" for number in itertools.count(len(asked) + 1))
    return (one for one in numbered if one not in used)


def _tag_may_open(reply: str) -> int:
    """Where a call opens, or the end of the reply could be the beginning of its tag."""
    opens = reply.find(CALL_OPENS)
    if opens >= 0:
        return opens
    sizes = range(len(CALL_OPENS) - 1, 0, -1)
    partly = next((size for size in sizes if reply.endswith(CALL_OPENS[:size])), 0)
    return len(reply) - partly


def _marked(reply: str) -> list[_Found]:
    """The calls in tags. A tag after which no tool is named is text."""
    found = []
    start = reply.find(CALL_OPENS)
    while start >= 0:
        inside = start + len(CALL_OPENS)
        call = _read_call(reply, start, inside, _end_of_broken(reply, inside))
        end = inside
        if call is not None:
            end = call.end
            rest = reply[end:].lstrip()
            if rest.startswith(CALL_ENDS):
                end = len(reply) - len(rest) + len(CALL_ENDS)
            found.append(call._replace(end=end))
        start = reply.find(CALL_OPENS, end)
    return found


def _fenced(reply: str, tools: Collection[str]) -> list[_Found]:
    """The calls in fences, of tools that were given: other fences are examples."""
    found = []
    for fence in _FENCED.finditer(reply):
        call = _read_call(reply, fence.start(), fence.start(1), fence.end(1))
        if call is not None and _is_meant(call, tools) and call.end == fence.end(1):
            found.append(call._replace(end=fence.end()))
    return found


def _bare(reply: str, tools: Collection[str]) -> list[_Found]:
    """The calls of a reply that is nothing but calls of tools that were given."""
    found: list[_Found] = []
    at = len(reply) - len(reply.lstrip())
    while at < len(reply):
        call = _read_call(reply, at, at, len(reply.rstrip()))
        if call is None or not _is_meant(call, tools):
            return []
        found.append(call)
        at = len(reply) - len(reply[call.end :].lstrip())
    return found


def _is_meant(call: _Found, tools: Collection[str]) -> bool:
    """Whether JSON without a tag is a call: an answer may be JSON too, and have a name in it."""
    return call.name in tools and bool(call.arguments)


def _read_call(reply: str, start: int, inside: int, end_if_broken: int) -> _Found | None:
    """The call that is written at `inside`. One that is no JSON goes on to `end_if_broken`."""
    inside += len(reply[inside:]) - len(reply[inside:].lstrip())
    try:
        value, end = _DECODER.raw_decode(reply, inside)
    except (ValueError, RecursionError):
        return _read_broken(reply, start, inside, end_if_broken)
    name = value.get("name") if isinstance(value, Mapping) else None
    if not isinstance(name, str) or not name:
        return None
    arguments = value.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return _Found(start, end, name, arguments)


def _read_broken(reply: str, start: int, inside: int, end: int) -> _Found | None:
    """A call that is no JSON, if it is clear which tool is meant."""
    named = _NAMED.fullmatch(reply[inside:end])
    if named is None:
        return None
    try:
        name = json.loads(named[1])
    except ValueError:
        return None
    arguments = named[2].rstrip()
    if arguments.endswith("}") and not _is_whole(arguments):
        arguments = arguments[:-1].rstrip()  # the brace of the call, not of its arguments
    return _Found(start, end, name, arguments)


def _is_whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _end_of_broken(reply: str, inside: int) -> int:
    ends = (reply.find(tag, inside) for tag in (CALL_ENDS, CALL_OPENS))
    return min((end for end in ends if end >= 0), default=len(reply))
