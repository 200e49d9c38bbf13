"""What belongs to people: e-mail addresses, card numbers, social security numbers. Digits that are
ids, times, sizes or parts of longer numbers stay. Phone numbers are for `phones`.
"""

import re

from journeyman.redaction.placeholders import Placeholders

_DOMAIN = re.compile(r"(?:@|%40)(?:[^\W_][\w-]{0,62}\.){1,6}([^\W\d_]{2,24})(?![\w@(]|-\w|\.\w)")
_LOCAL_PART = re.compile(r"[\w.%+-]{1,64}\Z")
_NO_DOMAINS = frozenset(
    {
        *("png", "jpg", "jpeg", "gif", "svg", "webp", "ico"),  # images for dense screens
        *("service", "socket", "timer", "mount", "target", "slice", "scope"),  # of systemd
        *("js", "mjs", "ts", "tsx", "jsx", "css", "html", "json", "yaml", "yml", "toml", "tgz"),
        *("shape", "dtype", "weight", "weights", "transpose", "patch"),
    }
)
_MACHINES = frozenset({"git", "hg", "svn"})

# Each begins with the digit itself, not with what must not stand before it: so it is found faster.
_CARD = re.compile(
    r"[2-6](?<![\w.+-]\d)(?<!\d[ ,]\d)\d{3}"
    r"(?:\d{10,15}|([ .-])\d{4}\1\d{4}\1\d{4}|([ -])\d{6}\2\d{4,5})(?![\w-]|\.\d| \d)"
)
_SSN = re.compile(
    r"[0-8](?<![\w.-]\d)\d\d-(?<!000-)(?<!666-)(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)"
)
_IBAN = re.compile(
    r"[A-Z]{2}(?<![A-Za-z0-9_]..)\d\d(?=[ A-Z0-9]{11})(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"
    r"(?![A-Za-z0-9_])"
)
_SPELLED = re.compile(
    r"[\w.+-]{1,64} ?(?:\[at\]|\(at\)) ?(?:[\w-]{1,63} ?(?:\[dot\]|\(dot\)) ?){1,4}[a-z]{2,24}\b"
)
_ISSUERS = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14}"
)


def without_people(text: str, placeholders: Placeholders) -> str:
    """The text with addresses and numbers of people replaced."""
    if "@" in text or "%40" in text:
        text = _without_emails(text, placeholders)
    if "at" in text and "dot" in text:
        text = _SPELLED.sub(lambda found: placeholders.put("email", found[0].casefold()), text)
    if not _DIGITS.search(text):
        return text
    text = _IBAN.sub(lambda found: _iban(found, placeholders), text)
    text = _CARD.sub(lambda found: _card(found, placeholders), text)
    return _SSN.sub(lambda found: placeholders.put("ssn", found[0]), text)


_DIGITS = re.compile(r"\d{3}[\d-][\d -]\d")


def _without_emails(text: str, placeholders: Placeholders) -> str:
    pieces: list[str] = []
    done = 0
    for found in _DOMAIN.finditer(text):
        local = _LOCAL_PART.search(text, max(done, found.start() - 64), found.start())
        if local is None or not _is_email(local[0], found[0], found[1]):
            continue
        start = local.start() + _escapes(text, local)
        address = text[start : found.end()].casefold().replace("%40", "@")
        pieces += (text[done:start], placeholders.put("email", address))
        done = found.end()
    return "".join(pieces) + text[done:] if pieces else text


def _is_email(local: str, domain: str, top: str) -> bool:
    return (
        local not in _MACHINES
        and top.lower() not in _NO_DOMAINS
        and not domain.startswith("@self.")
        and any(map(str.isalnum, local))
    )


def _escapes(text: str, local: re.Match[str]) -> int:
    """How many letters before an address belong to an escape: a line break, a percent code."""
    if text[local.start() - 1 : local.start()] == "\\" and local[0][0] in "nrt":
        return 1
    code = re.match(r"(?:%[0-9A-F]{2})+", local[0])
    return code.end() if code else 0


def _iban(found: re.Match[str], placeholders: Placeholders) -> str:
    """An account number is one if its check digits are right: the remainder by 97 is 1."""
    account = found[0].replace(" ", "")
    turned = account[4:] + account[:4]
    digits = "".join(str(int(letter, 36)) for letter in turned)
    if not 15 <= len(account) <= 34 or int(digits) % 97 != 1:
        return found[0]
    return placeholders.put("iban", account)


def _card(found: re.Match[str], placeholders: Placeholders) -> str:
    digits = re.sub(r"\D", "", found[0])
    return placeholders.put("card", digits) if is_card(digits) else found[0]


def is_card(digits: str) -> bool:
    """Whether the digits begin like an issuer's, are as many, and their check digit is right."""
    if not _ISSUERS.fullmatch(digits) or len(set(digits)) < 2:
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0
