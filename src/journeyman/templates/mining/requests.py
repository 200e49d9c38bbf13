"""What a call was for: the user's request that it served, which goes on while the agent asks back
and the user answers. What programs write in the user's place is no request, nor is a nod ("yes, go
on"). A correction begins the request anew, and rejects what was done for it. The wordings are in
`wordings.toml`.
"""

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from journeyman.records import Message
from journeyman.templates.cleaning import joined_intent
from journeyman.templates.shown.wording import without_opening_text


class Artefact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: what such a text looks like, and where it comes from."""

    id: str
    pattern: str
    example: str
    reason: str


class Correction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: a way to say that the work before was not what was wanted."""

    id: str
    within: int
    patterns: tuple[str, ...]
    example: str


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    result: tuple[Artefact, ...]
    argument: tuple[Artefact, ...]
    request: tuple[Artefact, ...]
    words: dict[str, str]
    lists: dict[str, str]
    correction: tuple[Correction, ...]


TABLE = msgspec.toml.decode(files(__package__).joinpath("wordings.toml").read_bytes(), type=_Table)

_WORD = re.compile(r"[^\W\d_]{3,}")
_NODS = frozenset(TABLE.lists["nods"].split())
_TAG = re.compile(r"</?[A-Za-z_][\w.-]*(?: [^<>\n]{0,80})?>")
_LEAD_IN = re.compile(r"(?:Consider the following PR description:|Please solve this issue:)\s*")
_BEFORE, _VERBS = ("|".join(TABLE.lists[name].split()) for name in ("before", "verbs"))
_REQUESTS = re.compile(
    rf"(?:(?:{_BEFORE})[\s,.!:-]+){{0,3}}"
    rf"(?:{_VERBS}|(?:can|could|would|will) (?:you|we)|(?:how|what) about|how do"
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
_SETTINGS = frozenset(TABLE.lists["settings"].split())
_IDE = re.compile(
    r"<(ide_opened_file|ide_selection|ide_diagnostics|attached_files?|editor_context)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_ENDS_THE_WORK = frozenset(("undo", "bare_no", "forbidden"))
PLAIN_ANSWERS = frozenset(("no", "bare_no", "rather", "again"))
"""Corrections whose words are a plain answer where the agent has just asked something."""
_BETTER = re.compile(
    r"\b(?:use|using|instead|should|must|needs?|only|rather|with|without|keep|make|add|call|want"
    r"|meant|it'?s (?:in|on|at|the)|put it (?:in|on|at))\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"[^\W_]+")
_SHORT = 12
_LEAD = re.compile(r"[\W_]*")
_LOOKED_AT = 200
"""A rejection stands at the beginning; later words are about something else."""

_REMINDER = re.compile(r"\s*<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""Claude Code puts reminders to the model into results."""

_HEAD = 300
"""Where a stub begins: a file that only mentions one does so later."""


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
        return joined_intent(self.wanted, self.answer) if self.wanted else ""


class Requests(Struct, frozen=True, kw_only=True):
    """The request that each message stands under, and which were rejected or interrupted."""

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
            if worked_on and correction and (has_worked or correction not in PLAIN_ANSWERS):
                rejected.add(worked_on.number)
                current = Request(
                    number=current.number + 1,
                    wanted=worked_on.wanted,
                    answer=text,
                    ends=ends_the_work(correction, line),
                )
                has_worked, worked_on = False, None
            elif _says_something(line):
                if current.wanted and _continues(line, agent_asked=agent_asked):
                    current = replace(current, answer=text)
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
    """A slash command with an argument; without one it is a harness's business."""
    found = _SLASH.search(text[:4_000])
    name = f"/{found[1].removeprefix('/')}" if found else ""
    return f"{name} {found[2]}" if found and name not in _SETTINGS else ""


def _says_something(text: str) -> bool:
    """Whether a text asks for anything: `push it` does, `yes, go on` does not."""
    return any(word.casefold() not in _NODS for word in _WORD.findall(text[:2000]))


def _any_of(rows: Iterable[Artefact]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row.pattern})" for row in rows), re.IGNORECASE)


def _correction(row: Correction) -> str:
    """The pattern of a row as a group with its id."""
    pattern = "|".join(row.patterns)
    for name, words in TABLE.words.items():
        pattern = pattern.replace(f"{{{name}}}", words)
    lead_in = f"(?:.{{0,{row.within}}}\\b)?" if row.within else ""
    return f"(?P<{row.id}>{lead_in}(?:{pattern}))"


_STUB, _CUT, _PROMPT = map(_any_of, (TABLE.result, TABLE.argument, TABLE.request))
_CORRECTION = re.compile("|".join(map(_correction, TABLE.correction)), re.IGNORECASE)


def without_reminders(result: str) -> str:
    """A result without reminders, and without what stands before the end of one that was cut."""
    if "system-reminder>" not in result:
        return result
    return _REMINDER.sub("", result).rpartition("</system-reminder>")[2]


def is_stub(result: str) -> bool:
    """Whether a result is no longer what the tool gave back."""
    return _STUB.match(result[:_HEAD].lstrip()) is not None


def are_cut(arguments: str) -> bool:
    """Whether the arguments are no longer what the agent asked for."""
    return _CUT.search(arguments) is not None


def is_prompted(text: str) -> bool:
    """Whether a user's message was written by a program."""
    return _PROMPT.match(text[:_HEAD].lstrip()) is not None


def find_correction(text: str, *, answering: bool = False) -> str:
    """The id of the row by which a person's words reject what was done before; empty if none. Where
    they are `answering` a question, a no is an answer, and what follows it decides.
    """
    said = _LEAD.sub("", " ".join(text[:_LOOKED_AT].split()), count=1)
    found = _CORRECTION.match(said)
    if answering and found and found.lastgroup in PLAIN_ANSWERS:
        found = _CORRECTION.match(_LEAD.sub("", _FIRST_WORD.sub("", said, count=1), count=1))
        found = None if found and found.lastgroup in PLAIN_ANSWERS else found
    return found.lastgroup or "" if found else ""


def ends_the_work(correction: str, text: str) -> bool:
    """Whether a correction only takes back, or says no more than that it was wrong: what the agent
    does then is no way to do the work. With words on how to do it better, it is.
    """
    says_little = len(text.split()) <= _SHORT and _BETTER.search(text) is None
    return correction in _ENDS_THE_WORK or says_little
