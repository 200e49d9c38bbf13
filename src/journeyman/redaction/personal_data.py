"""Finds personal data: e-mail addresses, card and account numbers, and user names."""

import re
from collections.abc import Iterator
from functools import lru_cache

from journeyman.redaction.families import load_families
from journeyman.redaction.secret_values import Span

_DOMAIN = re.compile(r"@(?:[^\W_][\w-]{0,62}\.){1,6}([^\W\d_]{2,24})(?![\w@(]|-\w|\.\w)")
_LOCAL_PART = re.compile(r"[\w.+-]{1,64}\Z")
_FILE_EXTENSIONS = frozenset(
    {
        *("png", "jpg", "jpeg", "gif", "svg", "webp", "ico"),  # images such as icon@2x.png
        *("service", "socket", "timer", "mount", "target", "slice", "scope"),  # systemd units
        *("js", "mjs", "ts", "tsx", "jsx", "css", "html", "json", "yaml", "yml", "toml", "tgz"),
        *("shape", "dtype", "weight", "weights", "transpose", "patch"),
    }
)
_SERVICE_ACCOUNTS = frozenset({"git", "hg", "svn"})

# Each pattern begins with the digit, and a look-behind follows it: this is faster to search for.
_DIGIT_RUN = re.compile(r"[0-9][0-9][0-9 .-]{7,}")
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
_SPELLED_EMAIL = re.compile(
    r"[\w.+-]{1,64} ?(?:\[at\]|\(at\)) ?(?:[\w-]{1,63} ?(?:\[dot\]|\(dot\)) ?){1,4}[a-z]{2,24}\b"
)
_CARD_ISSUERS = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14}"
)
_PATH_BEFORE = re.compile(
    r"[\w.)}\]*@%-](?<!\\[nrt])(?<!/var)(?<!/export)(?<!/usr)(?<!/nfs)(?<!/data)(?<!/private)"
    r"(?<!/mnt/[a-z])(?<!wsl\+Ubuntu)(?<!wsl\+Debian)(?<![:/][A-Za-z])(?<!\.\.)"
    r"(?<!\s[ab])\Z"  # a/home/… and b/home/… in a diff
)
_MOUNT_POINT = re.compile(r"/(?:Volumes|mnt|media)/[^/\n]{1,40}\Z")
_DRIVE = re.compile(r"(?:\A|[^\w])[A-Za-z]:\Z")
_FILE_NAME = re.compile(r".+\.(?:html?|[jt]sx?|py|md|json|php|css|vue|go|rs|txt)")


def find_personal_data(text: str) -> Iterator[Span]:
    """Yield every personal e-mail address and number."""
    if "@" in text:
        yield from _emails(text)
    if "[at]" in text or "(at)" in text:
        for match in _SPELLED_EMAIL.finditer(text):
            yield Span(*match.span(), "email", match[0].casefold())
    if _DIGIT_RUN.search(text):
        yield from _account_numbers(text)


def _account_numbers(text: str) -> Iterator[Span]:
    """Yield the account, card and social security numbers of a text."""
    for match in _IBAN.finditer(text):
        account = match[0].replace(" ", "")
        digits = "".join(str(int(letter, 36)) for letter in account[4:] + account[:4])
        if 15 <= len(account) <= 34 and int(digits) % 97 == 1:  # valid check digits
            yield Span(*match.span(), "iban", account)
    for match in _CARD.finditer(text):
        digits = "".join(filter(str.isdigit, match[0]))
        if is_card(digits):
            yield Span(*match.span(), "card", digits)
    for match in _SSN.finditer(text):
        yield Span(*match.span(), "ssn")


def _emails(text: str) -> Iterator[Span]:
    searched_to = 0
    for match in _DOMAIN.finditer(text):
        local = _LOCAL_PART.search(text, max(searched_to, match.start() - 64), match.start())
        if local is None or local[0] in _SERVICE_ACCOUNTS or match[1].lower() in _FILE_EXTENSIONS:
            continue
        if match[0].startswith("@self.") or not any(map(str.isalnum, local[0])):
            continue
        # A letter before the address may belong to an escaped line break.
        escaped = text[local.start() - 1 : local.start()] == "\\" and local[0][0] in "nrt"
        start = local.start() + escaped
        yield Span(start, match.end(), "email", text[start : match.end()].casefold())
        searched_to = match.end()


def is_card(digits: str) -> bool:
    """Whether the digits have the prefix and length of an issuer, and a valid check digit."""
    if not _CARD_ISSUERS.fullmatch(digits) or len(set(digits)) < 2:
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def is_home_of_person(match: re.Match[str]) -> bool:
    """Whether a match of a home folder row names a person, and is not part of another path."""
    if not is_personal(match[match.lastindex or 0]):
        return False
    return match[0][0] not in "/-" or not _is_inside_path(match.string, match.start())


def _is_inside_path(text: str, start: int) -> bool:
    """Whether the folder is only part of another path, such as a page of a web site."""
    if text.startswith(("/run/media/", "/scratch/"), start):
        return False
    before = text[max(0, start - 48) : start]
    if _MOUNT_POINT.search(before):
        return False
    return _PATH_BEFORE.search(before) is not None and _DRIVE.search(before) is None


@lru_cache(maxsize=4096)
def is_personal(name: str) -> bool:
    """Whether a user name may belong to a person."""
    stem = name.casefold()
    generic = load_families().users.generic
    return (
        stem not in generic
        and stem.rstrip("0123456789") not in generic
        and not name.isdigit()
        and "{" not in name
        and not _FILE_NAME.fullmatch(name)
    )


@lru_cache(maxsize=1024)
def bare_name_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern for the name on its own. One that is also an ordinary word matches only
    where it can be a name.
    """
    word = re.escape(name)
    if name.casefold().rstrip("0123456789") in load_families().users.ordinary:
        return re.compile(rf"(?:(?<=~)|(?<![\w<.-])(?={word}@[A-Za-z])){word}(?![A-Za-z0-9_>])")
    return re.compile(rf"(?:(?<![A-Za-z0-9_<])|(?<=\\[nrt])){word}(?![A-Za-z0-9_>(])")
