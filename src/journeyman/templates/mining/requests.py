"""What a call was for: the user's request that it served.

A request begins with a message of the user and goes on while the agent asks back and the user
answers. What programs write in the user's place is no request, and a nod ("yes, go on") is none
either.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from journeyman.records import Message
from journeyman.templates.intents import joined
from journeyman.templates.mining.artefacts import is_prompted, without_reminders
from journeyman.templates.mining.own_openings import without_opening_text

_WORD = re.compile(r"[^\W\d_]{3,}")
_NODDING = """yes yeah yep okay sure fine great good perfect thanks thank you please continue
proceed ahead that right correct sounds done looks stop the and now for all this will"""
_NODS = frozenset(_NODDING.split())
_PAPERS = re.compile(
    r"(?:\w+[,!.]? ){0,3}(?:my|the|our)(?: \w+){0,2} (?:id|name|number|e-?mail|address|code|zip)"
    r"(?: \w+){0,2}(?: is| are|:|[’']s)",
    re.IGNORECASE,
)
"""How people begin who only say who they are; a request is longer than that."""
_PAPERS_LIMIT = 90
_TAG = re.compile(r"</?[A-Za-z_][\w.-]*(?: [^<>\n]{0,80})?>")
_LEAD_IN = re.compile(r"(?:Consider the following PR description:|Please solve this issue:)\s*")
_SIMULATED_END = re.compile(r"#{3}\w+#{3}")
_ASKS = re.compile(
    r"\?|\bplease (?:\w+ )?(?:provide|confirm|let me know|share|tell|specify|choose|say|reply)\b"
    r"|\blet me know\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"(?:yes|yeah|yep|no|nope|sure|ok|okay|correct|right|exactly)\b", re.IGNORECASE
)


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """What the user wanted, and the last thing said about it. `number` tells requests of one
    session apart; both texts are empty when nobody said anything.
    """

    number: int = 0
    wanted: str = ""
    answer: str = ""

    def intent(self, agents_words: str = "") -> str:
        """The request as one text to be redacted; failing that, the agent's own words before the
        call.
        """
        return joined(self.wanted, self.answer) if self.wanted else joined(agents_words)


def requests(messages: Sequence[Message]) -> list[Request]:
    """For each message the request that it stands under."""
    found: list[Request] = []
    current = Request()
    agent_asked = False
    for message in messages:
        if message.role == "user":
            text = _said(message)
            line = " ".join(text.split())
            if _says_something(line):
                only_papers = len(line) <= _PAPERS_LIMIT and _PAPERS.match(line) is not None
                if only_papers and not current.wanted:
                    pass  # who somebody is says nothing about what they want
                elif current.wanted and (agent_asked or only_papers or _ANSWERS.match(line)):
                    current = Request(number=current.number, wanted=current.wanted, answer=text)
                else:
                    current = Request(number=current.number + 1, wanted=text)
        elif message.role == "assistant" and message.kind == "plain":
            agent_asked = not message.tool_calls and _ASKS.search(message.text[-600:]) is not None
        found.append(current)
    return found


def _said(message: Message) -> str:
    """What a person said in a message; empty if a program wrote it."""
    if message.kind != "plain":
        return ""
    text = without_reminders(without_opening_text(message.text))
    if is_prompted(text):
        return ""
    said = _TAG.sub(" ", _SIMULATED_END.sub("", text)).strip()
    return _LEAD_IN.sub("", said, count=1)


def _says_something(text: str) -> bool:
    words = {word.casefold() for word in _WORD.findall(text[:2000])} - _NODS
    return len(words) >= 2 or (bool(words) and len(text) >= 12)
