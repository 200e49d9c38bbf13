"""Splits a session into the user's requests. One continues while the agent asks back before it
works, and the user answers. What programs write in the user's place is not a request, nor is a nod
("yes, go on"). A correction starts the request again, and rejects what was done for it. Wordings
are in `wordings.toml`.
"""

import re
from collections.abc import Iterable
from importlib.resources import files

import msgspec
from msgspec import Struct

from journeyman.learning.opening_text import without_opening_text
from journeyman.learning.sanitizer import joined_intent
from journeyman.records import Message


class Wording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: a text that programs leave in sessions, and where it comes from; or a way to say that
    the previous work was not what the person wanted.
    """

    id: str
    patterns: tuple[str, ...]
    example: str
    reason: str = ""
    within: int = 0


class _WordingsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    result: tuple[Wording, ...]
    argument: tuple[Wording, ...]
    request: tuple[Wording, ...]
    words: dict[str, str]
    lists: dict[str, str]
    correction: tuple[Wording, ...]


TABLE = msgspec.toml.decode(
    files(__package__).joinpath("wordings.toml").read_bytes(), type=_WordingsTable
)

_WORD = re.compile(r"[^\W\d_]{3,}")
_NODS = frozenset(TABLE.lists["nods"].split())
_TAG = re.compile(r"</?[A-Za-z_][\w.-]*(?: [^<>\n]{0,80})?>")
_BEFORE, _VERBS = ("|".join(TABLE.lists[name].split()) for name in ("before", "verbs"))
_NEW_REQUEST = re.compile(
    rf"(?:(?:{_BEFORE})[\s,.!:-]+){{0,3}}"
    rf"(?:{_VERBS}|(?:can|could|would|will) (?:you|we)|(?:how|what) about|how do"
    r"|(?:is|are) there|do we|should we|set up)\b",
    re.IGNORECASE,
)
"""How a message begins that makes a new request, even after the agent asked a question."""

_INTERRUPTION = "[Request interrupted by user"
_ASKS = re.compile(
    r"\?|\bplease (?:\w+ )?(?:provide|confirm|let me know|share|tell|specify|choose|say|reply)\b"
    r"|\blet me know\b",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"(?:yes|yeah|yep|no|nope|sure|ok|okay|correct|right|exactly)\b", re.IGNORECASE
)
_SLASH_COMMAND = re.compile(
    r"<command-name>\s*(/?[\w:.-]+)\s*</command-name>.*?<command-args>\s*(\S.*?)\s*</command-args>",
    re.DOTALL,
)
_SETTINGS_COMMANDS = frozenset(TABLE.lists["settings"].split())
_IDE_CONTEXT = re.compile(
    r"<(ide_opened_file|ide_selection|ide_diagnostics|editor_context|(?:attached_)?files?|attachment"
    r"|document)\b[^<>\n]{0,200}>.*?(?:</\1>|\Z)|^--- Content from referenced files ---.*",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|^>.*?$", re.DOTALL | re.MULTILINE)
_WITHDRAWALS = frozenset(("undo", "bare_no", "forbidden"))
_PLAIN_ANSWERS = frozenset(("no", "bare_no", "rather", "again"))
"""Corrections with words that are a plain answer if the agent has just asked something."""
_INSTRUCTS = re.compile(
    r"\b(?:use|using|instead|should|must|needs?|only|rather|with|without|keep|make|add|call|want"
    r"|meant|it'?s (?:in|on|at|the)|put it (?:in|on|at))\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"[^\W_]+[\W_]*")
_FEW_WORDS = 12
_LEAD = re.compile(r"[\W_]*")
_CORRECTION_WITHIN = 200
"""A rejection is at the beginning of a message; later words are about something else."""

_REMINDER = re.compile(r"(?<!\s)\s*<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""Claude Code puts reminders to the model into results."""

_HEAD = 300
"""How far into a result a stub may begin: a file that only mentions one does so further down."""


class UserRequest(Struct, kw_only=True):
    """What the user requested, and the last thing said about it. `number` distinguishes the
    requests of a session; both texts are empty when the user said nothing. A withdrawal only takes
    back what was done. Until the next request, messages may change it.
    """

    number: int
    text: str = ""
    answer: str = ""
    correction: str = ""
    is_withdrawal: bool = False
    is_rejected: bool = False
    is_interrupted: bool = False

    def intent(self) -> str:
        """Return the request as one text to be redacted; empty if there was none."""
        return joined_intent(self.text, self.answer) if self.text else ""


def requests(messages: Iterable[Message]) -> list[UserRequest]:
    """Return the request that each message of a session is under."""
    under: list[UserRequest] = []
    current, worked_on = UserRequest(number=0), None
    agent_asked = has_worked = False
    for message in messages:
        if message.role == "user":
            text = user_text(message)
            line = " ".join(text.split())
            # A plain no refers to what was done just now; other corrections may also follow a
            # question about it.
            is_answer = agent_asked or not has_worked
            correction = find_correction(text, answering=is_answer) if worked_on else ""
            if worked_on and correction:
                worked_on.is_rejected = True
                current = UserRequest(
                    number=current.number + 1,
                    text=worked_on.text,
                    answer=text,
                    # What stands in tags of an unknown program may be that program's.
                    correction="" if message.text.lstrip().startswith("<") else text,
                    is_withdrawal=is_withdrawal(correction, line),
                )
                has_worked, worked_on = False, None
            elif _is_request(line):
                if current.text and not has_worked and _continues(line, agent_asked=agent_asked):
                    current.answer = text
                else:
                    current = UserRequest(number=current.number + 1, text=text)
                    has_worked = False
            elif has_worked and message.text.lstrip().startswith(_INTERRUPTION):
                current.is_interrupted = True
        elif message.role == "assistant" and message.kind == "plain":
            if message.tool_calls:
                has_worked, worked_on = True, current
            agent_asked = not message.tool_calls and _ASKS.search(message.text[-600:]) is not None
        under.append(current)
    return under


def without_quotes(text: str) -> str:
    """Return what a person said themselves, without what they quote."""
    return _QUOTED.sub(" ", text)


def user_text(message: Message) -> str:
    """Return what a person said in a message; empty if a program wrote it."""
    if message.kind != "plain" or "<command-name>" in message.text[:400]:
        return _slash_command(message.text)
    text = _IDE_CONTEXT.sub(" ", without_reminders(without_opening_text(message.text)))
    if is_program_text(text):
        return ""
    return _TAG.sub(" ", text).strip()


def _continues(line: str, *, agent_asked: bool) -> bool:
    """Whether a line belongs to the current request: an answer, and nothing new."""
    answer = _ANSWERS.match(line)
    if not (agent_asked or answer):
        return False
    rest = line[answer.end() :].lstrip(" ,.!;:-") if answer else line
    return _NEW_REQUEST.match(rest) is None


def _slash_command(text: str) -> str:
    """Return a slash command with an argument; without one it only concerns the harness."""
    match = _SLASH_COMMAND.search(text[:4_000])
    name = f"/{match[1].removeprefix('/')}" if match else ""
    return f"{name} {match[2]}" if match and name not in _SETTINGS_COMMANDS else ""


def _is_request(text: str) -> bool:
    """Whether a text requests anything: `push it` does, `yes, go on` does not."""
    return any(word.casefold() not in _NODS for word in _WORD.findall(text[:2000]))


def _any_of(rows: Iterable[Wording]) -> re.Pattern[str]:
    """Return a pattern for texts that match a row, each row as a group named by its id."""
    groups = []
    for row in rows:
        pattern = "|".join(row.patterns)
        for name, words in TABLE.words.items():
            pattern = pattern.replace(f"{{{name}}}", words)
        lead_in = f"(?:.{{0,{row.within}}}\\b)?" if row.within else ""
        groups.append(f"(?P<{row.id}>{lead_in}(?:{pattern}))")
    return re.compile("|".join(groups), re.IGNORECASE)


_STUB, _CUT, _PROMPT, _CORRECTION = map(
    _any_of, (TABLE.result, TABLE.argument, TABLE.request, TABLE.correction)
)


def without_reminders(result: str) -> str:
    """Remove reminders from a result, and what precedes the end of one that was cut."""
    if "system-reminder>" not in result:
        return result
    return _REMINDER.sub("", result).rpartition("</system-reminder>")[2]


def is_stub(result: str) -> bool:
    """Whether a result is no longer what the tool returned."""
    return _STUB.match(result[:_HEAD].lstrip()) is not None


def is_truncated(arguments: str) -> bool:
    """Whether the arguments are no longer what the agent passed."""
    return _CUT.search(arguments) is not None


def is_program_text(text: str) -> bool:
    """Whether a user's message was written by a program."""
    return _PROMPT.match(text[:_HEAD].lstrip()) is not None


def find_correction(text: str, *, answering: bool = False) -> str:
    """Return the id of the row by which a person's words reject what was done before; empty if none
    does. When `answering` a question, a no is an answer, and what follows it decides.
    """
    line = _LEAD.sub("", " ".join(text[:_CORRECTION_WITHIN].split()), count=1)
    found = _correction_at(line)
    if answering and found in _PLAIN_ANSWERS:
        found = _correction_at(_FIRST_WORD.sub("", line, count=1))
        return "" if found in _PLAIN_ANSWERS else found
    return found


def _correction_at(line: str) -> str:
    match = _CORRECTION.match(line)
    return match.lastgroup or "" if match else ""


def is_withdrawal(correction: str, text: str) -> bool:
    """Whether a correction only takes back, or says no more than that the work was wrong: what the
    agent does next is not a way to do the work then. A correction that says how to do it better is
    not a withdrawal.
    """
    says_little = len(text.split()) <= _FEW_WORDS and _INSTRUCTS.search(text) is None
    return correction in _WITHDRAWALS or says_little
