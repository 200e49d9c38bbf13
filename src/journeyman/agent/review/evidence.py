"""What a session shows, as grounds for writing something down: what the user said, and what calls
that worked gave back; not what the agent said or the user pasted, nor an opening.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from journeyman.outcomes.judge import judge
from journeyman.records import Call, Message, join_calls
from journeyman.templates.commands import skill_of
from journeyman.templates.shown.wording import after_opening, is_own_call_id

_QUOTE_CHARACTERS = 8
"""A quotation shorter than this could stand anywhere."""

_NO_GROUND = frozenset({"memory", "skills_list", "skill_view", "skill_manage", "session_search"})
"""Tools whose results are what was kept before; to keep that again would be to believe oneself."""

_PASTED = re.compile(r"^(?:```.*?^```|~~~.*?^~~~|[ \t]*>[^\n]*)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|«([^»]+)»|`([^`]+)`")
_GAP = re.compile(r"\s*(?:…|\.\.\.)\s*")
_TYPED = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON_WORDS = """about after again also always been before being could does doing done each else
ever every file files from have here into just like make makes more most much must need needs never
once only other over same should some such than that their them then there these they this those
through under until used uses using very want wants were what when where which while will with
would your user users session sessions task tasks tool tools work works working"""
_COMMON = frozenset(_COMMON_WORDS.split())
# What names something in particular: a path, a name with a dot or an underscore inside, or a number
# of two digits and more. Placeholders in capitals (YYYY-MM-DD, NAME) name nothing.
_PARTICULAR = re.compile(r"[\w~.-]*/[\w./~-]+|\b\w+(?:[._]\w+)+\b|\b\d[\d.,:]*\d\b|`[^`\n]{2,}`")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_/.-]*")


class Ground(Struct, frozen=True, kw_only=True):
    """Something that the session shows: `text` is all of it, `said` whether the user said it."""

    text: str
    said: bool


class Grounds:
    """The grounds in the messages of a session, without its lead and any opening."""

    def __init__(self, messages: Sequence[Message], lead: int = 0) -> None:
        own = list(messages)[max(lead, after_opening(messages)) :]
        said = [one.text for one in own if one.role == "user" and one.kind == "plain"]
        self.said = [_PASTED.sub("", text) for text in said]
        self.calls = [
            (call, judge(call).status)
            for call in join_calls(own)
            if call.asked_by == "assistant" and not is_own_call_id(call.id)
        ]

    @property
    def worked(self) -> list[Call]:
        """The calls that worked and show something."""
        return [
            call for call, status in self.calls if status == "ok" and call.tool not in _NO_GROUND
        ]

    @property
    def ended_well(self) -> bool:
        """Whether the last call of every tool, and of every program in a shell, worked."""
        last = {
            skill_of(call.tool, call.arguments): status
            for call, status in self.calls
            if status in ("ok", "failed", "invalid")
        }
        return bool(last) and set(last.values()) == {"ok"}

    def find(self, evidence: str) -> Ground | str:
        """What the evidence names or quotes, also inside a sentence, or why it is none."""
        if not evidence.strip():
            return (
                "Say what shows it, in `evidence`: the user's own words, quoted, or the id of a "
                "call that worked."
            )
        named = [one for one in self.calls if re.search(rf"\b{re.escape(one[0].id)}\b", evidence)]
        bad = [(call, status) for call, status in named if status != "ok"]
        if bad:
            return f"The call {bad[0][0].id} was {bad[0][1]}, so it shows nothing."
        shown = [call for call, _ in named if call.tool not in _NO_GROUND]
        if shown:
            told = [f"{call.tool} {_unescaped(call.arguments)}\n{_result(call)}" for call in shown]
            return Ground(text="\n".join(told), said=False)
        quotes = ["".join(found) for found in _QUOTED.findall(evidence)]
        for quote in [evidence, *quotes]:
            if ground := self._quoted(quote):
                return ground
        return (
            "The evidence is neither the id of a call that worked nor a quotation, long enough to "
            "be found again, from what the user said or a call gave back."
        )

    def _quoted(self, quote: str) -> Ground | None:
        pieces = [_flat(piece) for piece in _GAP.split(quote.strip().strip("`\"'“”"))]
        if sum(map(len, pieces)) < _QUOTE_CHARACTERS:
            return None
        for text in self.said:
            if all(piece in _flat(text) for piece in pieces):
                return Ground(text=text, said=True)
        for call in self.worked:
            if all(piece in _flat(_result(call)) for piece in pieces):
                return Ground(text=_result(call), said=False)
        return None

    def unseen(self, text: str, known: str = "") -> list[str]:
        """What a text names in particular that was neither shown here nor `known` before."""
        calls = [f"{call.arguments}\n{_result(call)}" for call in self.worked]
        shown = _flat("\n".join([*self.said, *map(_unescaped, calls), known]))
        names = dict.fromkeys(match.strip("`.,:") for match in _PARTICULAR.findall(text))
        return [
            name
            for name in names
            if name and not _PLACEHOLDER.fullmatch(name) and _flat(name) not in shown
        ]


def shares_words(text: str, other: str) -> bool:
    """Whether two texts have a word in common that says something."""
    return bool(_words(text) & _words(other))


def _words(text: str) -> set[str]:
    return {word[:6] for word in _WORD.findall(text.casefold()) if word not in _COMMON}


def _result(call: Call) -> str:
    return _unescaped(call.result or "")


def _unescaped(text: str) -> str:
    """JSON's escapes as what they mean, so that a quotation of a result is found in it."""
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")


def _flat(text: str) -> str:
    return " ".join(text.translate(_TYPED).casefold().split())
