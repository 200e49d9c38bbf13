"""The evidence in a session that justifies keeping something: what the user said, and calls that
worked. What the agent said, what the user pasted, what an opening contains, and calls after content
from outside are not evidence.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from journeyman.learning.commands import skill_of
from journeyman.learning.observations import observed, takes_in
from journeyman.learning.opening_text import is_own_call_id, opening_length
from journeyman.learning.requests import user_text
from journeyman.learning.slots import ServingCall
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Message, join_calls

_MIN_QUOTE_CHARACTERS = 8
"""A shorter quotation could match anywhere."""

_RECALL_TOOLS = frozenset({"memory", "skills_list", "skill_view", "skill_manage", "session_search"})
"""Tools that return what was stored before; accepting it as evidence would be circular."""

_PASTED = re.compile(r"^(?:```.*?^```|~~~.*?^~~~|[ \t]*>[^\n]*)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|«([^»]+)»|`([^`]+)`")
_GAP = re.compile(r"\s*(?:…|\.\.\.)\s*")
_PLAIN_PUNCTUATION = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "}
)
_WORD = re.compile(r"[^\W\d_]{4,}")
# Specific names: a path, a name with a dot, an underscore or a hyphen inside, or a number of at
# least two digits. Placeholders in capitals (YYYY-MM-DD, NAME) do not count.
_SPECIFIC_NAME = re.compile(
    r"[\w~.-]*/[\w./~-]+|\b\w+(?:[._-]\w+)+\b|\b\d[\d.,:]*\d\b|`[^`\n]{2,}`"
)
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_/.-]*")


class Evidence(Struct, frozen=True, kw_only=True):
    """Something that the session shows, in full: what the user said, or what some `calls` did and
    returned.
    """

    text: str
    calls: tuple[Call, ...] = ()

    @property
    def is_from_user(self) -> bool:
        return not self.calls

    def shares_words(self, other: str) -> bool:
        """Whether it has a word in common with a text, apart from short ones and endings."""
        words = (
            {word[:6] for word in _WORD.findall(text.casefold())} for text in (self.text, other)
        )
        return not set.isdisjoint(*words)


class SessionEvidence:
    """The evidence in the messages of a session, without its lead and any opening. With
    `only_done`, a call shows what it did, and not what it returned, which others may have written.
    """

    def __init__(
        self, messages: Sequence[Message], lead: int = 0, *, only_done: bool = False
    ) -> None:
        self._only_done = only_done
        own = list(messages)[max(lead, opening_length(messages)) :]
        judged = [
            ServingCall(call=call, verdict=judge(call), is_safe=True, folder=None)
            for call in join_calls(own, with_copies=True)
            if call.asked_by == "assistant" and not is_own_call_id(call.id)
        ]
        self._calls = [(one.call, one.verdict.status) for one in judged]
        clean = takewhile(lambda one: not takes_in(one.call), judged)
        self._usable = [
            one.call for one in clean if one.is_ok and one.call.tool not in _RECALL_TOOLS
        ]
        said = [user_text(message) for message in own if message.role == "user"]
        said += [remark.words for remark in observed(judged, "", set()).remarks]
        self._user_texts = [_PASTED.sub("", text) for text in said]

    @property
    def ended_well(self) -> bool:
        """Whether the last call of every tool, and of every program in a shell, worked."""
        last_status = {
            skill_of(call.tool, call.arguments): status
            for call, status in self._calls
            if status in ("ok", "failed", "invalid")
        }
        return bool(last_status) and set(last_status.values()) == {"ok"}

    def find(self, reference: str) -> Evidence | str:
        """Return the evidence that a reference names or quotes, also inside a sentence; otherwise a
        message that says why there is none.
        """
        if not reference.strip():
            return (
                "Say what shows it, in `evidence`: the user's own words, quoted, or the id of a "
                "call that worked."
            )
        named = [
            (call, status)
            for call, status in self._calls
            if re.search(rf"\b{re.escape(call.id)}\b", reference)
        ]
        for call, status in named:
            if status != "ok":
                return f"The call {call.id} was {status}, so it shows nothing."
        if usable := tuple(call for call, _ in named if call in self._usable):
            return Evidence(text="\n".join(map(self._shown, usable)), calls=usable)
        if named:
            return "What others wrote had a part in that call, so it shows nothing."
        quotes = ["".join(groups) for groups in _QUOTED.findall(reference)]
        for quote in [reference, *quotes]:
            if evidence := self._find_quote(quote):
                return evidence
        return (
            "The evidence is neither the id of a call that worked nor a long enough quotation of "
            "what the user said or a call returned."
        )

    def _find_quote(self, quote: str) -> Evidence | None:
        pieces = [_flat(piece) for piece in _GAP.split(quote.strip().strip("`\"'“”"))]
        if sum(map(len, pieces)) < _MIN_QUOTE_CHARACTERS:
            return None
        for text in self._user_texts:
            if all(piece in _flat(text) for piece in pieces):
                return Evidence(text=text)
        for call in self._usable:
            quotable = call.arguments if self._only_done else call.result or ""
            if all(piece in _flat(_unescaped(quotable)) for piece in pieces):
                return Evidence(text=self._shown(call), calls=(call,))
        return None

    def unsupported_names(self, text: str, existing: str = "") -> list[str]:
        """The specific names in a text that appear neither in the session nor in `existing`."""
        seen = _flat("\n".join([*self._user_texts, *map(self._shown, self._usable), existing]))
        names = dict.fromkeys(match.strip("`.,:") for match in _SPECIFIC_NAME.findall(text))
        return [
            name
            for name in names
            if name and not _PLACEHOLDER.fullmatch(name) and _flat(name) not in seen
        ]

    def _shown(self, call: Call) -> str:
        done = f"{call.tool} {_unescaped(call.arguments)}"
        return done if self._only_done else f"{done}\n{_unescaped(call.result or '')}"


def _unescaped(text: str) -> str:
    """The text with JSON escapes resolved, so that quotations of a result match it."""
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")


def _flat(text: str) -> str:
    return " ".join(text.translate(_PLAIN_PUNCTUATION).casefold().split())
