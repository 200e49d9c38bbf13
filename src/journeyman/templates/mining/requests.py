"""What a call was for: the user's request that it served.

A request begins with a message of the user and goes on while the agent asks back and the user
answers. What programs write in the user's place is no request, and a nod ("yes, go on") is none
either. A correction begins the request anew, and what was done for it before is rejected. A slash
command with an argument is a request; without one it is a harness's business.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from journeyman.records import Message
from journeyman.templates.intents import joined
from journeyman.templates.mining.artefacts import is_prompted, without_reminders
from journeyman.templates.mining.corrections import ends_the_work, find_correction, is_an_answer
from journeyman.templates.mining.own_openings import without_opening_text

_WORD = re.compile(r"[^\W\d_]{3,}")
_NODDING = """yes yeah yep yup okay sure fine great good nice cool perfect awesome excellent thanks
thank you please continue proceed ahead that right correct sounds done looks stop the and now for
all this will let lets can could would keep going carry just both option yes hello hey bye again
well very much lgtm love like works"""
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
_BEFORE = """please now then ok okay also and yes yep yeah great good cool perfect thanks nice hm
hmm so but next first actually alright"""
_VERBS = """add build bump check clean close commit create debug delete deploy document draft drop
explain extract find fix force generate implement improve install investigate let's lets list look
make merge move open pull push rebase refactor release remove rename replace resolve review rewrite
run search show simplify split squash start switch tag test update upgrade use verify write why
where what does"""
_REQUESTS = re.compile(
    rf"(?:(?:{'|'.join(_BEFORE.split())})[\s,.!:-]+){{0,3}}"
    rf"(?:{'|'.join(_VERBS.split())}|(?:can|could|would|will) (?:you|we)|(?:how|what) about|how do"
    r"|(?:is|are) there|do we|should we|set up)\b",
    re.IGNORECASE,
)
"""How a message begins that asks for something of its own, also where the agent has asked."""

_INTERRUPTION = "[Request interrupted by user"
_SIMULATED_END = re.compile(r"#{3}\w+#{3}")
_ASKS = re.compile(
    r"\?|\bplease (?:\w+ )?(?:provide|confirm|let me know|share|tell|specify|choose|say|reply)\b"
    r"|\blet me know\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"(?:yes|yeah|yep|no|nope|sure|ok|okay|correct|right|exactly)\b", re.IGNORECASE
)


_SLASH = re.compile(
    r"<command-name>\s*(/?[\w:.-]+)\s*</command-name>.*?<command-args>\s*(\S.*?)\s*</command-args>",
    re.DOTALL,
)
_SETTINGS_LIST = """/add-dir /agents /bug /clear /color /compact /config /context /cost /doctor
/effort /exit /export /fast /help /hooks /ide /login /logout /mcp /memory /model /output-style
/permissions /plugin /quit /release-notes /rename /resume /rewind /sandbox /status /statusline
/tag /terminal-setup /theme /usage /vim"""
_SETTINGS = frozenset(_SETTINGS_LIST.split())
"""Slash commands that change how the program works; their arguments ask for no work."""

_IDE = re.compile(
    r"<(ide_opened_file|ide_selection|ide_diagnostics|attached_files?|editor_context)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """What the user wanted, and the last thing said about it. `number` tells requests of one
    session apart; both texts are empty when nobody said anything. A request `ends` the work when
    it only takes back what was done.
    """

    number: int = 0
    wanted: str = ""
    answer: str = ""
    ends: bool = False

    def intent(self) -> str:
        """The request as one text to be redacted; empty when nobody asked."""
        return joined(self.wanted, self.answer) if self.wanted else ""


class Requests(Struct, frozen=True, kw_only=True):
    """For each message the request that it stands under, and the numbers of the requests that were
    rejected or interrupted.
    """

    under: list[Request]
    rejected: frozenset[int]
    interrupted: frozenset[int]


def requests(messages: Sequence[Message]) -> Requests:
    """The requests of a session."""
    under: list[Request] = []
    rejected: set[int] = set()
    interrupted: set[int] = set()
    current, worked_on = Request(), None
    agent_asked = has_worked = False
    for message in messages:
        if message.role == "user":
            text = _said(message)
            line = " ".join(text.split())
            correction = find_correction(text, answering=agent_asked) if worked_on else ""
            # Words that are only a no are about what was done just now; plainer ones may come
            # after a question about it.
            if worked_on and correction and (has_worked or not is_an_answer(correction)):
                rejected.add(worked_on.number)
                current = Request(
                    number=current.number + 1,
                    wanted=worked_on.wanted,
                    answer=text,
                    ends=ends_the_work(correction, line),
                )
                has_worked, worked_on = False, None
            elif _says_something(line):
                only_papers = len(line) <= _PAPERS_LIMIT and _PAPERS.match(line) is not None
                if only_papers and not current.wanted:
                    pass  # who somebody is says nothing about what they want
                elif current.wanted and _continues(line, agent_asked=agent_asked or only_papers):
                    current = Request(
                        number=current.number,
                        wanted=current.wanted,
                        answer=text,
                        ends=current.ends,
                    )
                else:
                    current = Request(number=current.number + 1, wanted=text)
                    has_worked = False
            elif has_worked and message.text.lstrip().startswith(_INTERRUPTION):
                interrupted.add(current.number)
        elif message.role == "assistant" and message.kind == "plain":
            if message.tool_calls:
                has_worked, worked_on = True, current
            agent_asked = not message.tool_calls and _ASKS.search(message.text[-600:]) is not None
        under.append(current)
    return Requests(under=under, rejected=frozenset(rejected), interrupted=frozenset(interrupted))


def _said(message: Message) -> str:
    """What a person said in a message; empty if a program wrote it."""
    if message.kind != "plain" or "<command-name>" in message.text[:400]:
        return _slash_command(message.text)
    text = _IDE.sub(" ", without_reminders(without_opening_text(message.text)))
    if is_prompted(text):
        return ""
    said = _TAG.sub(" ", _SIMULATED_END.sub("", text)).strip()
    return _LEAD_IN.sub("", said, count=1)


def _continues(line: str, *, agent_asked: bool) -> bool:
    """Whether words belong to the request before them: an answer, and nothing new."""
    answered = _ANSWERS.match(line)
    if not (agent_asked or answered):
        return False
    said = line[answered.end() :].lstrip(" ,.!;:-") if answered else line
    return _REQUESTS.match(said) is None


def _slash_command(text: str) -> str:
    found = _SLASH.search(text[:4_000])
    if found is None:
        return ""
    name = found[1] if found[1].startswith("/") else f"/{found[1]}"
    return "" if name in _SETTINGS else f"{name} {found[2]}"


def _says_something(text: str) -> bool:
    """Whether a text asks for anything: `push it` does, `yes, go on` does not."""
    return any(word.casefold() not in _NODS for word in _WORD.findall(text[:2000]))
