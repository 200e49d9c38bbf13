"""A decision on a call: allow it, ask a person, or refuse; always with the rule and its reason."""

from typing import Literal

from msgspec import Struct

Answer = Literal["allow", "ask", "refuse"]


class Decision(Struct, frozen=True, kw_only=True):
    """What is to happen with a call, by which rule, and why in words for a person."""

    answer: Answer
    rule: str = ""
    reason: str = ""
    files: dict[str, str] = {}
    """The texts of files that would be run, where a person is to be asked: by path."""


ALLOW = Decision(answer="allow")
