"""Which model a job asks: its own, the one for simple work, or the usual one. Decided on the job's
own prompt alone, before anything is added to it; making the model is left to others.
"""

import re
from typing import NamedTuple

from msgspec import Struct

from journeyman.records.job import Job

_LINES = 2
_LONGEST_WORD = 12
"""Characters that a word has at most on average; words of a text without blanks are not counted."""

_LATIN_ENDS = 0x24F


class Route(Struct, frozen=True, kw_only=True):
    """The model to ask. An empty provider is the one of the settings."""

    model: str
    provider: str


class Sign(NamedTuple):
    """Something in a prompt that means more than simple work."""

    id: str
    pattern: re.Pattern[str]
    example: str
    reason: str


def _sign(id_: str, pattern: str, example: str, reason: str) -> Sign:
    return Sign(id_, re.compile(pattern, re.IGNORECASE), example, reason)


SIGNS: tuple[Sign, ...] = (
    _sign("form.code", r"`", "run `make`", "it has code in it"),
    _sign("form.url", r"\b[a-z][a-z0-9+.-]*://|\bwww\.", "see https://a.org", "it names a page"),
    _sign(
        "form.path",
        r"(?:^|[\s\"'(=])(?:~|\.{1,2})?/\w|\b[a-z]:\\|\b[\w-]{2,}\.[a-z][a-z0-9]{1,4}\b",
        "tidy up ~/notes",
        "it names a file or a path",
    ),
    _sign("work.debug", r"\b(?:debug|troubleshoot|diagnos)", "debug the login", "finding faults"),
    _sign("work.trace", r"\b(?:traceback|stack ?trace|exception)", "a traceback", "finding faults"),
    _sign("work.repair", r"\b(?:fix|repair)(?:es|ed|ing|s)?\b", "fix the build", "finding faults"),
    _sign("work.build", r"\b(?:implement|develop|program)", "implement it", "making software"),
    _sign("work.code", r"\b(?:cod(?:e|ing)|scripts?|sql|regex)\b", "write code", "making software"),
    _sign("work.reshape", r"\b(?:refactor|rewrit|migrat|port to)", "refactor", "making software"),
    _sign("work.tests", r"\b(?:unit|integration|regression) ?tests?\b|\bpytest\b", "unit tests",
          "making software"),
    _sign("work.improve", r"\b(?:optimi[sz]|improv|benchmark|profil(?:e|ing)\b)", "optimise it",
          "measuring and changing"),
    _sign("work.design", r"\b(?:design|architect)", "the architecture", "many choices"),
    _sign("work.plan", r"\b(?:plan(?:s|ned|ning)?\b|strateg|roadmap)", "plan the week",
          "many choices"),
    _sign("work.analyse", r"\banal(?:y[sz]|is)", "analyse the sales", "thinking over data"),
    _sign("work.investigate", r"\b(?:investigat|audit|root cause|explain why|find out)",
          "investigate the drop", "thinking over data"),
    _sign("work.research", r"\b(?:research|survey|literature)", "research prices", "many sources"),
    _sign("work.compare", r"\b(?:compar|evaluat|assess|trade-?offs?|pros and cons)",
          "compare the offers", "weighing"),
    _sign("work.review", r"\b(?:review|critique|proofread)", "review the text", "weighing"),
    _sign("work.predict", r"\b(?:forecast the|predict|estimat|calculat)", "predict the demand",
          "reckoning"),
    _sign("work.steps", r"\b(?:step by step|in detail|thorough|comprehensive|deep dive)",
          "in detail", "long work"),
    _sign("work.operate", r"\b(?:deploy|install|configur|upgrad|restor|rollback|roll back)",
          "deploy the site", "mistakes cost much"),
    _sign("work.remove", r"\b(?:delet|remov|overwrit|purg|drop table)", "delete old logs",
          "mistakes cost much"),
)  # fmt: skip


def route(
    job: Job,
    *,
    usual_model: str,
    simple_model: str,
    simple_provider: str = "",
    simple_words: int,
) -> Route:
    """The model that a job asks. No simple model: simple work goes to the usual one too."""
    if job.model or job.provider:
        return Route(model=job.model or usual_model, provider=job.provider)
    if simple_model and is_simple(job, simple_words):
        return Route(model=simple_model, provider=simple_provider)
    return Route(model=usual_model, provider="")


def is_simple(job: Job, simple_words: int) -> bool:
    """Whether a job is nothing but a short prompt of plain words. Words in a script that the table
    of signs does not know are not taken for plain ones.
    """
    text = job.prompt.strip()
    return not (
        job.skills
        or job.script
        or len(text.split()) > simple_words
        or len(text) > simple_words * _LONGEST_WORD
        or len(text.splitlines()) > _LINES
        or any(one.isalpha() and ord(one) > _LATIN_ENDS for one in text)
        or any(sign.pattern.search(text) for sign in SIGNS)
    )
