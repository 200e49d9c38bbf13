"""Tool calls put together from the pieces in which servers stream them. The rule is one index and
one id for a call and its arguments in pieces of text; servers break each part of it, and here it
is decided which pieces belong together and what ids the calls get.
"""

import hashlib
import itertools
import json
from collections.abc import Collection, Mapping

from journeyman.records import ToolCall


class _Call:
    """A call that is still coming."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = ""

    def is_whole(self) -> bool:
        """Whether nothing can be added: the arguments are an object already."""
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class CallPieces:
    """The calls of one reply as they come."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def take(self, pieces: object) -> None:
        """Add what one event brings: a list of pieces, or what a server sends instead of one."""
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            if isinstance(piece, Mapping):
                self._take_one(piece)

    def _take_one(self, piece: Mapping[str, object]) -> None:
        function = piece.get("function")
        if not isinstance(function, Mapping):
            function = {}
        index, call_id = _index(piece.get("index")), _text(piece.get("id"))
        name, arguments = _text(function.get("name")), _arguments(function.get("arguments"))
        call = self._find_current(index)
        if call is None or _begins_another(call, index, call_id, name, arguments):
            call = _Call(index)
            self._calls.append(call)
        call.id = call.id or call_id
        if not call.arguments and name != call.name:
            # Some servers send the name in pieces, and some send all of it so far each time.
            call.name = name if name.startswith(call.name) else call.name + name
        call.arguments += arguments

    def _find_current(self, index: int | None) -> _Call | None:
        """The call to which a piece may belong: the last one, or the last of its index."""
        for call in reversed(self._calls):
            if index is None or call.index == index:
                return call
        return None

    def calls(self, used: Collection[str]) -> tuple[ToolCall, ...]:
        """The calls, each with an id that no other has and that is not among those used. An id
        that has to be made is the same whenever the same reply comes to the same conversation.
        """
        taken = set(used)
        made = []
        for position, call in enumerate(self._calls):
            call_id = call.id
            if not call_id or call_id in taken:
                seed = f"{len(used)}/{position}/{call.name}/{call.arguments}"
                call_id = _new_id(seed, taken)
            taken.add(call_id)
            arguments = call.arguments if call.arguments.strip() else "{}"
            made.append(ToolCall(id=call_id, name=call.name, arguments=arguments))
        return tuple(made)


def _begins_another(
    call: _Call, index: int | None, call_id: str, name: str, arguments: str
) -> bool:
    """Whether a piece is not for the current call, though nothing but its content says so."""
    if call_id and call.id and call_id != call.id:
        return True
    if call_id and call_id == call.id and index is not None:
        return False
    return bool(name and arguments) and call.is_whole()


def _new_id(seed: str, taken: Collection[str]) -> str:
    """Nine letters or digits: some servers accept ids of no other shape."""
    tried = (
        hashlib.sha256(f"{seed}/{attempt}".encode("utf-8", "replace")).hexdigest()[:9]
        for attempt in itertools.count()
    )
    return next(one for one in tried if one not in taken)


def _index(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """Arguments as text; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
