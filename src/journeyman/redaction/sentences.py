"""Secrets that a sentence tells: `my password is …`, `API key created: …`. A sentence is about a
password more often than it tells one, so words that follow there anyway are left alone.
"""

import re
from collections.abc import Iterator

from journeyman.redaction.values import (
    FAMILIES,
    Found,
    Place,
    has_wild_case,
    is_secret,
    looks_generated,
    looks_random,
    place_of,
    refers,
)

_WORDS_TOLD = r"(pass(?:word|code|phrase|wort)?|kennwort|key|token|secret|pin|ssn|cvv|otp|pw)"
_SPOKEN = re.compile(_WORDS_TOLD + r"(?:s? |:)")
_SAID = re.compile(
    _WORDS_TOLD + r"(?: (?:for|of|to|für|zum|vom)(?: [\w.-]{1,30}){1,4}?)?"
    r"(?: is| was| ist| lautet| es| est| set to| should be| now){1,3}:? +"
    r"[\"'`]?([^\s\"'`]{3,100})"
)
_TOLD_LATER = re.compile(
    _WORDS_TOLD + r"s?\b[^\n:=\"'{};]{1,60}(?:\([^()\n]{1,80}\))?"
    r"(?:: +|:\n{1,2}[ \t]{0,8})[\"'`]?([^\s\"'`,;]{8,256})[\"'`]?"
    r"(?=[ \t.,]*(?:\r?\n|\\{0,40}\"|\Z))"
)
_TOLD = re.compile(_WORDS_TOLD + r":[ \t]+[\"'`]?([^\s\"'`]{8,256})")
_GIVEN = re.compile(r"(pass(?:word|phrase|code)|passwort):? [\"'`]?([^\s\"'`]{4,100})")
_BEFORE_GIVEN = re.compile(
    r"\b(?:use|with|enter|type|my|our|and|the)(?: the| this| my| following| user\w* \S{1,40})? \Z"
)
_KIND = re.compile(r"(?:^|\W)((?:api|access|secret|unseal|signing|license)[ -]?)\Z")
_ORDINARY = re.compile(
    r"(?:numeric|present|absent|required|wrong|incorrect|expired|invalid|reset|must|is|was|too|not"
    r"|now|the|a|an|in|on|at"
    r"|for|to|of|and|or|with|from|by|as|if|when|that|this|it|its|no|never|always|only|also|set|empty"
    r"|missing|correct|right|valid|weak|strong|short|long|safe|secure|plain|clear|same|different"
    r"|case|just|still|already|being|been|sent|kept|known|shown|ok|okay|fine|good|bad|blank|null"
    r"|none|optional|unknown|used|what|your|my|our|their|his|her|admin|visible|private|public"
    r"|needed|here|there|below|above|yours|mine|up|due|about|nothing|something|field|fields"
    r"|and/or|manager|prompt|policy|input|hash|hashes|file|files|change|reset|authentication"
    r"|protection|protected|strength|length|based|auth|login|less|only|combination|string|value"
    r"|\w+(?:ed|ing|able|ible|ive|ly|ful|less|ment|tion|ness|en))"
)
_ENDS = re.compile(
    r"[.,;!?)\"'`]{0,3}(?:[ \t]{0,8}(?:\Z|[\r\n])|\\+[\"n]|(?<=[\"'])[,}\]]"
    r"|(?<=[.,;!?)\"'`])\s| (?:and|to|for|on|please)\b)"
)
_DIGIT_IN_A_WORD = re.compile(r"(?=\D*\d)(?![\w-]*_)(?=\d*\D)")


def find_told(text: str, lower: str, at: int) -> Iterator[Found]:
    """What the sentence tells that begins here; `lower` is the text in small letters."""
    if _SPOKEN.match(lower, at) is None:
        return
    kind = _KIND.search(lower, max(0, at - 20), at)
    is_whole = at == 0 or not (lower[at - 1].isalnum() or lower[at - 1] == "_")
    if kind is None and (not is_whole or lower.startswith("key", at)):
        return
    for form in (_SAID, _TOLD, _TOLD_LATER, _GIVEN):
        found = form.match(lower, at)
        if found is None:
            continue
        value = text[slice(*found.span(2))].rstrip("." if form is _TOLD_LATER else ".,;:!?)")
        place: Place | None = "secret"
        if form is _SAID:
            place = place_of((kind[1] if kind else "") + found[1])
            is_told = place is not None and _is_told(text, found, value, place)
        elif form is _TOLD:
            is_told = kind is not None and looks_random(value)
        elif form is _TOLD_LATER:
            is_told = looks_generated(value) or has_wild_case(value)
        else:
            place = "password"
            is_told = _is_given(text, lower, found, value)
        if place is not None and is_told and not refers(value):
            yield Found(found.start(2), found.start(2) + len(value), FAMILIES[place])


def _is_given(text: str, lower: str, found: re.Match[str], value: str) -> bool:
    at = found.start()
    if not any(map(str.isalpha, value)) or "(" in value or "." in value:
        return False
    if _BEFORE_GIVEN.search(lower, max(0, at - 60), at) is None:
        return False
    is_told = lower[found.end(1)] == ":" and _is_a_word_told(text, found, value)
    has_digit = len(value) >= 6 and _DIGIT_IN_A_WORD.match(value) is not None
    return is_told or has_digit or has_wild_case(value)


def _is_told(text: str, found: re.Match[str], value: str, place: Place) -> bool:
    has_digit = any(map(str.isdigit, value))
    is_password = place == "password" and (
        has_wild_case(value.replace("-", "")) or _is_a_word_told(text, found, value)
    )
    return (has_digit or is_password) and is_secret(value, place)


def _is_a_word_told(text: str, found: re.Match[str], value: str) -> bool:
    """Whether a word without digits is the password itself, and ends its clause."""
    return (
        len(value) >= 4
        and value.isalpha()
        and _ORDINARY.fullmatch(value.lower()) is None
        and _ENDS.match(text, found.start(2) + len(value)) is not None
    )
