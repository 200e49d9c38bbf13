"""Words by which an agent admits that its job failed when it forgot the marker. They are strong
ones: the agent speaks of itself, its task or its script, near the beginning or the end of what it
says. A job that reports failures elsewhere went well: there are words for that too. Where to look
for them in an answer, `admissions` knows.
"""

import re
from typing import Literal, NamedTuple

Place = Literal["first", "early", "ends"]
"""Where a row counts: the first sentence, the first three, or those and the last two."""


class Row(NamedTuple):
    """One way to say that the job failed."""

    id: str
    place: Place
    pattern: re.Pattern[str]
    example: str
    reason: str


class Excuse(NamedTuple):
    """Words by which the job did not fail after all: in what leads to the admission, in its
    sentence, in the next two (`after`), or in those before it.
    """

    id: str
    where: tuple[Literal["lead", "sentence", "after", "before"], ...]
    pattern: re.Pattern[str]
    example: str
    reason: str


def _words(*parts: str) -> re.Pattern[str]:
    return re.compile("".join(parts), re.IGNORECASE)


_NO = r"(?:(?:could|can)(?:not| not)|couldn't|can't)"
_CANNOT = (
    r"\bI (?:(?:still|therefore|also|simply|unfortunately) )?"
    rf"(?:(?:was|am|have been) (?:unable|not able) to|wasn't able to|{_NO}|failed to"
    r"|(?:did not|didn't) manage to)"
)
_NOT_BE = rf"(?:{_NO} be|was not|has not been|wasn't|were not|is not|isn't)"
_OPEN = (
    r"^(?:(?:unfortunately|sadly|regrettably|sorry|I am afraid(?: that)?|error|failed|status|result"
    r"|update|note|nothing was done)[,:]? )?"
)
_CLAUSE = rf"(?:{_OPEN}|, (?:so|and) |; | (?:and|so) )"
_WORK = r"(?:(?:scheduled|requested) (?:task|job|run|check|report)|(?:task|job|run|request))"
_RESULT = (
    r"(?:report|summary|digest|overview|briefing|list|figures|numbers|statistics|analysis"
    r"|comparison|newsletter|changelog|results?)"
)
_MADE = r"(?:produced|generated|created|made|written|compiled|prepared|assembled|built)"
_SCRIPT = r"(?:script|command)(?: (?:you|that) [\w ]{2,20}?)?(?: \(?‹›\)?)?"
_WENT_WRONG = (
    r"(?:failed(?= (?:with|because|due|as|since|after|before|on|in|and|so|again|for"
    r"|to run|to start)\b|[^\w\s]|$| ‹)"
    r"|crashed|aborted|timed out|was killed|(?:did not|didn't) (?:run|complete|finish|produce)"
    r"|(?:exited|ended|returned|finished) with (?:an error|a non-zero"
    r"|(?:exit )?(?:code|status) (?!0\b))"
    rf"|returned an error|{_NO} be (?:run|executed|started|found|completed))"
)
_LABEL_ENDS = r"(?=[.:!,;]|\s[-–—(]|$)"

PHRASES: tuple[Row, ...] = (
    Row(
        "label.error",
        "first",
        _words(r"^(?:fatal )?error: (?!none\b|no |nil\b|0\b)"),
        "Error: connection refused",
        "an answer that is an error message",
    ),
    Row(
        "self.error",
        "first",
        _words(
            r"^I (?:have )?(?:encountered|ran into|hit|got) (?:an?|the following|several) "
            r"(?:\w+ ){0,2}(?:error|problem|issue|exception)s?\b[^.]*\b(?:stopped|gave up|aborted"
            r"|could not|cannot|couldn't|can't)\b"
        ),
        "I ran into an error and stopped.",
        "the agent says that it gave up",
    ),
    Row(
        "self.asks",
        "first",
        _words(
            r"^I (?:would )?need (?:some )?(?:more|further) (?:information|details|context|input)\b"
            r"|^(?:could|can) you (?:please )?(?:tell|provide|clarify|specify|share|confirm)\b"
        ),
        "I need more information: which server?",
        "a question that nobody is there to answer",
    ),
    Row(
        "result.none",
        "first",
        _words(rf", so there is no {_RESULT}"),
        "The site was down, so there is no report.",
        "what the job is for does not exist",
    ),
    Row(
        "self.whole",
        "ends",
        _words(
            _CANNOT,
            r" (?:complete|finish|carry out|perform|accomplish|fulfil|proceed|get the job)\b",
        ),
        "I was unable to complete the task.",
        "the agent says of itself that the work is not done",
    ),
    Row(
        "self.asked",
        "ends",
        _words(_CANNOT, r" do (?:this\b|what|the \w+ you asked)"),
        "I could not do what was asked.",
        "the same, in the plainest verb",
    ),
    Row(
        "self.and_not",
        "first",
        _words(rf"^I [^.;]{{3,80}} and {_NO} (?:complete|finish|carry)\b"),
        "I ran out of requests and could not finish.",
        "the same, as the second half of a sentence",
    ),
    Row(
        "self.run",
        "first",
        _words(_CANNOT, r" (?:run|execute|start|launch)\b"),
        "I could not run the script.",
        "what the task is made of did not run",
    ),
    Row(
        "self.make",
        "ends",
        _words(
            *(_CANNOT, r" (?:produce|generate|create|make|write|compile|prepare)"),
            *(r" (?:[\w']+ ){0,4}", _RESULT, r"\b"),
        ),
        "I was not able to make the report.",
        "what the job is for does not exist",
    ),
    Row(
        "self.reach",
        "first",
        _words(
            *(_CANNOT, r" (?:access|reach|connect|read|open|log in|retrieve|fetch|get access|load"),
            r"|look up|clone|download|browse|summari[sz]e)\b",
        ),
        "I cannot access the calendar, so the report could not be made.",
        "an answer that begins so has nothing else to tell",
    ),
    Row(
        "self.lack",
        "first",
        _words(
            r"\bI (?:do not|don't) have (?:access to|(?:the|a|any) tools?|permission to"
            r"|the ability to|a way to)\b"
        ),
        "I don't have access to a terminal.",
        "the agent lacks what the task needs",
    ),
    Row(
        "self.refuses",
        "first",
        _words(rf"^(?:I am )?sorry,? (?:but )?I {_NO}\b|^as an AI\b"),
        "I am sorry, but I can't help with that.",
        "a refusal",
    ),
    Row(
        "self.stopped",
        "first",
        _words(r"\bI (?:had to (?:stop|abort|give up)|gave up)\b"),
        "I had to give up.",
        "the agent says that it did not go to the end",
    ),
    Row(
        "self.tried",
        "first",
        _words(
            r"\bI (?:ran|executed|started|tried|attempted)\b[^.;]{2,80}\bbut (?:it|this|that) ",
            _WENT_WRONG,
        ),
        "I ran the script, but it crashed.",
        "an attempt, and what became of it",
    ),
    Row(
        "job.undone",
        "early",
        _words(
            *(_CLAUSE, r"(?:the|this|my) ", _WORK, " (?:", _NOT_BE),
            r" (?:completed?|finished|carried out|done|run|executed)"
            r"|(?:did not|didn't) (?:complete|finish|succeed)|(?:has )?failed(?! to)"
            r"|failed to (?:run|start|complete|finish)"
            r"|remains? (?:incomplete|unfinished))\b",
        ),
        "The job could not be completed.",
        "said of the job itself, with no name that would make it another one",
    ),
    Row(
        "job.impossible",
        "first",
        _words(
            *(_OPEN, r"it was(?: not possible|n't possible| impossible) to (?:complete|finish|run"),
            r"|carry out|do|execute)\b",
        ),
        "It was not possible to run the check.",
        "the same, with nobody in it",
    ),
    Row(
        "job.label",
        "first",
        _words(
            r"^(?:status: failed|(?:task|job|run|script|command|execution)(?: execution)?"
            r" (?:failed|not completed|incomplete|aborted))",
            _LABEL_ENDS,
        ),
        "Task failed: no disk space.",
        "a heading over the whole answer",
    ),
    Row(
        "job.nothing_made",
        "early",
        _words(
            rf"\bno {_RESULT} (?:could|can) be {_MADE}\b|^there is no {_RESULT} today\b"
            rf"|^today's {_RESULT} is missing\b"
            rf"|{_CLAUSE}(?:the|this|your|today's) (?:\w+ ){{0,2}}{_RESULT}"
            rf" {_NOT_BE} {_MADE}\b(?! by)"
        ),
        "The site is down, so the report could not be made.",
        "what the job is for does not exist",
    ),
    Row(
        "script.failed",
        "first",
        _words(_CLAUSE, r"(?:the|this) (?:[\w-]+ ){0,3}", _SCRIPT, " ", _WENT_WRONG),
        "The script failed with exit code 1.",
        "the script or command that the task depends on",
    ),
    Row(
        "script.named",
        "first",
        _words(r"^[\w./-]+\.(?:py|sh|js|ts|rb|pl|ps1) ", _WENT_WRONG),
        "backup.sh exited with code 2.",
        "the same, by the name of its file",
    ),
    Row(
        "script.running",
        "first",
        _words(
            *(_OPEN, r"(?:running|executing|execution of|starting) (?:the|this) (?:[\w-]+ ){0,3}"),
            *(_SCRIPT, r" (?:failed|timed out)\b"),
        ),
        "Execution of the script failed.",
        "the same, as an attempt",
    ),
    Row(
        "script.error",
        "first",
        _words(
            r"\berror (?:occurred )?(?:(?:while|when) )?(?:running|executing) (?:(?:the|this) )?",
            r"(?:[\w-]+ ){0,2}(?:script|command|task|job)\b",
        ),
        "An error occurred while running the script.",
        "the same, by its error",
    ),
    Row(
        "attempt.failed",
        "first",
        _words(
            *(_OPEN, rf"(?:failed to|unable to|{_NO}) (?:run|execute|complete|finish|start|launch"),
            r"|retrieve|fetch|access|connect|authenticate)\b(?![^.:]{0,20}:(?: \d|$| \w+ on))",
        ),
        "Failed to execute the script.",
        "an answer that begins so speaks of the agent's own attempt",
    ),
    Row(
        "traceback",
        "first",
        _words(r"^Traceback \(most recent call last\)"),
        "Traceback (most recent call last): …",
        "a program's last words in place of an answer",
    ),
)

EXCUSES: tuple[Excuse, ...] = (
    Excuse(
        "in_part",
        ("sentence", "after"),
        _words(
            r"\b(?:(?:one|two|three|some|\d+) of|(?:the|all) (?:\w+ )?others?|the rest"
            r"|everything else|remaining|steps? \d+|skip(?:ped|ping)?)\b"
        ),
        "I could not reach one of the feeds; the others are below.",
        "a part is missing, the answer is there",
    ),
    Excuse(
        "all_the_same",
        ("sentence",),
        _words(r"\bbut (?:the|all|everything|I (?:did|found|have))\b|; the (?:best|fix)\b"),
        "I can't read the note on page 2, but the sum is clear.",
        "a part is missing, the answer is there",
    ),
    Excuse(
        "mended",
        ("sentence", "after"),
        _words(
            r"\b(?:at first|first attempt|second (?:one|attempt|try)|instead|after installing"
            r"|on retry|(?:it|now|one|that) work(?:s|ed)|so I used|ran well|was rerun|restarted"
            r"|now (?:fixed|passes|complete)|pass(?:es|ed)?)\b"
        ),
        "I could not run the script at first; the second attempt went well.",
        "it went well in the end",
    ),
    Excuse(
        "done_before",
        ("before",),
        _words(
            r"\bI(?: have|'ve)? (?:fixed|written|wrote|cleaned|finished|completed|updated|checked"
            r"|reviewed|read)\b|\b(?:is|are|was|were) (?:ready|done|complete|checked)\b"
        ),
        "The report is ready. I could not finish the appendix.",
        "the answer has told by then what was done",
    ),
    Excuse(
        "other_time",
        ("sentence",),
        _words(
            r"\b(?:yesterday|(?:last|this) (?:night|week|month|year)|on (?:mon|tues|wednes|thurs"
            r"|fri|satur|sun)day|previous|since then|once|twice|\d+ times|(?:at|since) \d+:\d\d)\b"
        ),
        "The script failed on Monday.",
        "it tells of another time",
    ),
    Excuse(
        "elsewhere",
        ("sentence",),
        _words(
            r"\b(?:in CI|on commit|on host|on staging|in production|according to"
            r"|PR #?\d+|pull request)"
        ),
        "The script failed in CI.",
        "it tells of another place",
    ),
    Excuse(
        "supposed",
        ("lead",),
        _words(r"^(?:if|when|whenever|in case|should)\b|\bwhether\b"),
        "If I could not run the script, I would say so.",
        "it has not happened",
    ),
    Excuse(
        "told",
        ("lead",),
        _words(
            r"\b(?:wrote|writes|says|said|told|replied|answered)\b"
            r"|^(?!note|update|status|result|summary|error|sorry|answer|report)\w+: I\b"
        ),
        "Kim: I could not finish the review.",
        "somebody else's words",
    ),
)
