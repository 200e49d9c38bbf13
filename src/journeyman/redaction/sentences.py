"""Finds secrets stated in sentences: `my password is …`, `API key created: …`. Most sentences only
mention a password, so the ordinary words that follow in them are left alone.
"""

import re
from collections.abc import Iterator

from journeyman.redaction.secret_values import (
    KIND_FAMILIES,
    FieldKind,
    Span,
    field_kind,
    has_random_case,
    is_reference,
    is_secret,
    looks_generated,
    looks_random,
)

_TRIGGER_WORDS = r"(pass(?:word|code|phrase|wort)?|kennwort|key|token|secret|pin|ssn|cvv|otp|pw)"
_SENTENCE_START = re.compile(_TRIGGER_WORDS + r"(?:s? |:)")
_IS_SENTENCE = re.compile(  # my password is …
    _TRIGGER_WORDS + r"(?: (?:for|of|to|für|zum|vom)(?: [\w.-]{1,30}){1,4}?)?"
    r"(?: is| was| ist| lautet| es| est| set to| should be| now){1,3}:? +"
    r"[\"'`]?([^\s\"'`]{3,100})"
)
_DISTANT_LABEL = re.compile(  # API key created: …
    _TRIGGER_WORDS + r"s?\b[^\n:=\"'{};]{1,60}(?:\([^()\n]{1,80}\))?"
    r"(?:: +|:\n{1,2}[ \t]{0,8})[\"'`]?([^\s\"'`,;]{8,256})[\"'`]?"
    r"(?=[ \t.,]*(?:\r?\n|\\{0,40}\"|\Z))"
)
_LABEL = re.compile(_TRIGGER_WORDS + r":[ \t]+[\"'`]?([^\s\"'`]{8,256})")  # API key: …
_ADJACENT = re.compile(r"(pass(?:word|phrase|code)|passwort):? [\"'`]?([^\s\"'`]{4,100})")
_BEFORE_ADJACENT = re.compile(
    r"\b(?:use|with|enter|type|my|our|and|the)(?: the| this| my| following| user\w* \S{1,40})? \Z"
)
_KEY_QUALIFIER = re.compile(r"(?:^|\W)((?:api|access|secret|unseal|signing|license)[ -]?)\Z")
_ORDINARY_WORD = re.compile(
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
_CLAUSE_END = re.compile(
    r"[.,;!?)\"'`]{0,3}(?:[ \t]{0,8}(?:\Z|[\r\n])|\\+[\"n]|(?<=[\"'])[,}\]]"
    r"|(?<=[.,;!?)\"'`])\s| (?:and|to|for|on|please)\b)"
)
_DIGIT_IN_WORD = re.compile(r"(?=\D*\d)(?![\w-]*_)(?=\d*\D)")


def find_stated_secrets(text: str, lower: str, at: int) -> Iterator[Span]:
    """Yield the secrets of the sentence that begins at `at`; `lower` is the text in lower case."""
    if _SENTENCE_START.match(lower, at) is None:
        return
    qualifier = _KEY_QUALIFIER.search(lower, max(0, at - 20), at)
    is_whole_word = at == 0 or not (lower[at - 1].isalnum() or lower[at - 1] == "_")
    if qualifier is None and (not is_whole_word or lower.startswith("key", at)):
        return
    for form in (_IS_SENTENCE, _LABEL, _DISTANT_LABEL, _ADJACENT):
        match = form.match(lower, at)
        if match is None:
            continue
        value = text[slice(*match.span(2))].rstrip("." if form is _DISTANT_LABEL else ".,;:!?)")
        kind: FieldKind | None = "secret"
        if form is _IS_SENTENCE:
            kind = field_kind((qualifier[1] if qualifier else "") + match[1])
            is_stated = kind is not None and _is_stated_value(text, match, value, kind)
        elif form is _LABEL:
            is_stated = qualifier is not None and looks_random(value)
        elif form is _DISTANT_LABEL:
            is_stated = looks_generated(value) or has_random_case(value)
        else:
            kind = "password"
            is_stated = _is_adjacent_password(text, lower, match, value)
        if kind is not None and is_stated and not is_reference(value):
            yield Span(match.start(2), match.start(2) + len(value), KIND_FAMILIES[kind])


def _is_adjacent_password(text: str, lower: str, match: re.Match[str], value: str) -> bool:
    at = match.start()
    if not any(map(str.isalpha, value)) or "(" in value or "." in value:
        return False
    if _BEFORE_ADJACENT.search(lower, max(0, at - 60), at) is None:
        return False
    is_stated = lower[match.end(1)] == ":" and _is_stated_word(text, match, value)
    has_digit = len(value) >= 6 and _DIGIT_IN_WORD.match(value) is not None
    return is_stated or has_digit or has_random_case(value)


def _is_stated_value(text: str, match: re.Match[str], value: str, kind: FieldKind) -> bool:
    has_digit = any(map(str.isdigit, value))
    is_password = kind == "password" and (
        has_random_case(value.replace("-", "")) or _is_stated_word(text, match, value)
    )
    return (has_digit or is_password) and is_secret(value, kind)


def _is_stated_word(text: str, match: re.Match[str], value: str) -> bool:
    """Whether a word without digits is itself the password: not an ordinary word, and at the end of
    its clause.
    """
    return (
        len(value) >= 4
        and value.isalpha()
        and _ORDINARY_WORD.fullmatch(value.lower()) is None
        and _CLAUSE_END.match(text, match.start(2) + len(value)) is not None
    )
