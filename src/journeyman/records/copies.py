"""Finds messages that are copies of earlier ones, as recorders write them when they compress a
context or branch off a session: a copy has another id, and often another time, than its original.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

_LONGEST_HEAD = 50
_LONGEST_END = 500
"""How many messages are compared with the beginning or the end of a conversation: a compression
keeps a few."""

CopyIndex = dict[int, int]
"""The index of each copy, with the index of the message that it repeats."""


class MessageTrace(NamedTuple):
    """What a message shares with its copies: the ids of its calls, or the id of the call that it
    answers, otherwise its role and text. Recorders shorten the text of copied calls and results, so
    it does not count there.
    """

    role: str
    text: int
    """The hash of the text without the whitespace around it."""
    calls: tuple[str, ...] = ()
    answers: str = ""
    is_summary: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that identify the message; empty if only its role and text do."""
        return self.calls or ((f"result of {self.answers}",) if self.answers else ())

    @property
    def identity(self) -> tuple[object, ...]:
        """What a message and its copies have in common."""
        return self.ids or (self.role, self.text)

    def repeats(self, other: "MessageTrace") -> bool:
        """Whether one of the two messages may be a copy of the other."""
        return self.identity == other.identity


def copies_in_place(traces: Sequence[MessageTrace]) -> CopyIndex:
    """Find the copies in one conversation, in which each compression writes a summary and, before
    and after it, the messages that it kept. Only messages at those places can be copies, unless
    their calls are: a person may well say the same thing twice.
    """
    copies: CopyIndex = {}
    begin = 0
    for at, trace in enumerate(traces):
        if not trace.is_summary or at in copies or at == begin:
            continue
        head = _head_length(traces, begin, at)
        start = at - head
        copies |= {start + index: begin + index for index in range(head)}
        kept = _kept_messages(traces[begin:start], traces[at + 1 :])
        copies |= {at + 1 + index: begin + original for index, original in kept.items()}
        begin = start
    return copies


def copies_of_parent(
    parent: Sequence[MessageTrace], child: Sequence[MessageTrace], *, is_branch: bool
) -> CopyIndex:
    """Find the messages of a session that are copies of its parent's: after a compression those
    around the summary, in a branch all messages at the beginning.
    """
    continued = _continuation(parent, child)
    branch = _common_beginning(parent, child) if is_branch else {}
    # Without an answer, both sessions may only have begun in the same way.
    if len(branch) > len(continued) and any(child[at].role == "assistant" for at in branch):
        return branch
    return continued


def _continuation(parent: Sequence[MessageTrace], child: Sequence[MessageTrace]) -> CopyIndex:
    summary = _own_summary(parent, child)
    if summary is None:
        kept = _kept_messages(parent, child)
        return kept if any(child[index].ids for index in kept) and _are_unique(parent) else {}
    copies = {
        index: index
        for index in range(min(summary, len(parent)))
        if child[index].repeats(parent[index])
    }
    kept = _kept_messages(parent, child[summary + 1 :])
    return copies | {summary + 1 + index: original for index, original in kept.items()}


def _own_summary(parent: Sequence[MessageTrace], child: Sequence[MessageTrace]) -> int | None:
    """Return the index of the summary that separates the sessions: the first that is not a copy of
    one at the parent's beginning.
    """
    summaries = [index for index, trace in enumerate(child) if trace.is_summary]
    own = (at for at in summaries if at >= len(parent) or not child[at].repeats(parent[at]))
    return next(own, summaries[0] if summaries else None)


def _are_unique(traces: Sequence[MessageTrace]) -> bool:
    """Whether no id is used twice: some models count their calls anew in each answer."""
    ids = [trace.ids for trace in traces if trace.ids]
    return len(set(ids)) == len(ids)


def _common_beginning(parent: Sequence[MessageTrace], child: Sequence[MessageTrace]) -> CopyIndex:
    pairs = enumerate(zip(parent, child, strict=False))
    same = takewhile(lambda pair: pair[1][1].repeats(pair[1][0]), pairs)
    return {index: index for index, _ in same}


def _head_length(traces: Sequence[MessageTrace], begin: int, summary: int) -> int:
    """Return how many messages before a summary repeat those at the beginning."""
    longest = min(_LONGEST_HEAD, (summary - begin) // 2)
    return _overlap(traces[begin:summary], traces[begin : begin + longest])


def _overlap(before: Sequence[MessageTrace], after: Sequence[MessageTrace]) -> int:
    """Return the length of the longest beginning of `after` that is the end of `before`."""
    for length in range(min(len(before), len(after), _LONGEST_END), 0, -1):
        if all(map(MessageTrace.repeats, after[:length], before[-length:])):
            return length
    return 0


def _kept_messages(before: Sequence[MessageTrace], after: Sequence[MessageTrace]) -> CopyIndex:
    """Find the messages after a summary that repeat the last ones before it, in their order. The
    first call or result shows which; a recorder may have left out messages or added some.
    """
    known = {trace.ids: index for index, trace in enumerate(before) if trace.ids}
    first = next((index for index, trace in enumerate(after) if trace.ids), None)
    if first is None or not _are_unique(before):
        return _common_end(before, after)
    if after[first].ids not in known:
        return _common_end(before, after[:first])
    index, original = first, known[after[first].ids]
    copies = {index: original}
    while index > 0 and original > 0 and after[index - 1].repeats(before[original - 1]):
        index, original = index - 1, original - 1
        copies[index] = original
    original = copies[first]
    places: dict[tuple[object, ...], list[int]] = {}
    for index, trace in enumerate(before):
        places.setdefault(trace.identity, []).append(index)
    for index in range(first + 1, len(after)):
        trace = after[index]
        found = places.get(trace.identity, [])
        place = bisect_right(found, original)
        if place < len(found):
            copies[index] = original = found[place]
        elif trace.ids or original + 1 == len(before):
            break  # new work
    # A compression keeps the last messages. Ids that begin anew are those of other calls.
    return copies if original >= max(known.values()) else {}


def _common_end(before: Sequence[MessageTrace], after: Sequence[MessageTrace]) -> CopyIndex:
    length = _overlap(before, after)
    start = len(before) - length
    return {index: start + index for index in range(length)}
