"""Secrets that a sentence tells: `my password is …`, `API key created: …`, `the verification code
is …`. A sentence is about a password more often than it tells one, so words that follow there
anyway are left alone.
"""

import re
from collections.abc import Iterator

from journeyman.redaction.found import Found
from journeyman.redaction.key_names import place_of
from journeyman.redaction.values import (
    FAMILIES,
    has_wild_case,
    is_secret,
    looks_generated,
    looks_random,
    refers,
)

_NAMES = (
    r"(?:pass(?:word|code|phrase|wort)?|kennwort"
    r"|(?:api|access|secret|unseal|signing|license)[ -]key|api-?key|token|secret|pin|ssn|cvv|otp|pw"
    r"|(?:verification|security|confirmation|login|access|one-time|2fa|mfa|auth\w{0,12}) code)"
)
_VERBS = (" is", " was", " are", " ist", " lautet", " set to", " should be", " es ", " est ")
_SAID = re.compile(
    rf"\b({_NAMES})(?: is| was| ist| lautet| es| est| set to| should be| now){{1,3}}:? +"
    r"[\"'`]?([^\s\"'`]{3,100})"
)
_TOLD_LATER = re.compile(
    rf"\b({_NAMES})s?\b[^\n:=\"'{{}};]{{1,60}}(?:\([^()\n]{{1,80}}\))?"
    r"(?:: +|:\n{1,2}[ \t]{0,8})[\"'`]?([^\s\"'`,;]{8,256})[\"'`]?(?=[ \t.,]*(?:\r?\n|\Z))"
)
_GIVEN = re.compile(
    r"\b(?:use|with|enter|type|my|our|and|the)(?: the| this| my| following| user\w* \S{1,40})?"
    r" (pass(?:word|phrase|code)|passwort):? [\"'`]?([^\s\"'`]{4,100})"
)
_CODE_FIRST = re.compile(r"\b(?:[a-z]-)?(\d{4,8}) is your (?:\w{2,20} ){0,3}(?:code|pin|otp)\b")
_PAIR_SAID = re.compile(
    r"\b(?:creds?|credentials|login(?: attempt)?|account)(?: is| are|:)+ [\w.@-]{2,40} ?/ ?"
    r"(\S{6,100})"
)
_ORDINARY = re.compile(
    r"(?:required|wrong|incorrect|expired|invalid|reset|must|is|was|too|not|now|the|a|an|in|on|at"
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
    r"[.,;!?)\"'`]{0,3}(?:[ \t]{0,8}(?:\Z|[\r\n])|(?<=[.,;!?)\"'`])\s| (?:and|to|for|on|please)\b)"
)
_TELLING = ("pass", "secret", "token", "pin", "otp", "cvv", "ssn", "pw", "kennwort", "cred")


_BY_TWO = ("api key", "api-key", "apikey", "access key", "unseal key", "signing key", " code")


def find_sentences(text: str, lower: str) -> Iterator[Found]:
    """What sentences tell; `lower` is the text in small letters, as long as the text."""
    if not any(word in lower for word in _TELLING) and not any(word in lower for word in _BY_TWO):
        return
    if any(verb in lower for verb in _VERBS):
        yield from _said(text, lower)
        if " is your " in lower:
            for found in _CODE_FIRST.finditer(lower):
                yield Found(*found.span(1), "secret")
    if ": " in text or ":\n" in text:
        yield from _told_later(text, lower)
    if " pass" in lower:
        yield from _given(text, lower)
    if "cred" in lower or "login" in lower:
        for found in _PAIR_SAID.finditer(lower):
            value = text[slice(*found.span(1))].rstrip(".,;:!?)")
            if looks_random(value) or has_wild_case(value):
                yield Found(found.start(1), found.start(1) + len(value), "password")


def _said(text: str, lower: str) -> Iterator[Found]:
    for found in _SAID.finditer(lower):
        value = text[slice(*found.span(2))].rstrip(".,;:!?)")
        place = place_of(found[1])
        if place is None or refers(value):
            continue
        if not any(map(str.isdigit, value)) and not (
            place == "password" and (has_wild_case(value) or _is_a_word_told(text, found, value))
        ):
            continue
        if is_secret(value, place) and (place != "loose" or looks_random(value)):
            yield Found(found.start(2), found.start(2) + len(value), FAMILIES[place])


def _is_a_word_told(text: str, found: re.Match[str], value: str) -> bool:
    """Whether a word without digits is the password itself: no ordinary follow-up word, and the
    clause ends behind it.
    """
    end = found.start(2) + len(value)
    return (
        len(value) >= 4
        and value.isalpha()
        and _ORDINARY.fullmatch(value.lower()) is None
        and _ENDS.match(text, end) is not None
    )


def _told_later(text: str, lower: str) -> Iterator[Found]:
    for found in _TOLD_LATER.finditer(lower):
        value = text[slice(*found.span(2))].rstrip(".")
        if (looks_generated(value) or has_wild_case(value)) and not refers(value):
            yield Found(found.start(2), found.start(2) + len(value), "secret")


def _given(text: str, lower: str) -> Iterator[Found]:
    for found in _GIVEN.finditer(lower):
        value = text[slice(*found.span(2))].rstrip(".,;:!?)")
        if refers(value) or not any(map(str.isalpha, value)) or "(" in value or "." in value:
            continue
        told = lower[found.end(1)] == ":" and _is_a_word_told(text, found, value)
        if told or (len(value) >= 6 and _DIGIT_IN_A_WORD.match(value)) or has_wild_case(value):
            yield Found(found.start(2), found.start(2) + len(value), "password")


_DIGIT_IN_A_WORD = re.compile(r"(?=\D*\d)(?![\w-]*_)(?=\d*\D)")
