"""What belongs to people: addresses, numbers of phones, cards and accounts, names of users."""

import re
from collections.abc import Iterator
from functools import lru_cache

from journeyman.redaction.families import table
from journeyman.redaction.values import Found

_DOMAIN = re.compile(r"@(?:[^\W_][\w-]{0,62}\.){1,6}([^\W\d_]{2,24})(?![\w@(]|-\w|\.\w)")
_LOCAL_PART = re.compile(r"[\w.+-]{1,64}\Z")
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
_DIGITS = re.compile(r"[0-9][0-9][0-9 ().-]{5,}")
_FEWEST_DIGITS = 9
"""Shorter numbers are phone numbers only behind a word that says so, or behind a plus sign."""
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
_INTERNATIONAL = re.compile(
    r"(?:\+(?<![\w+.=]\+)|00(?<![\d.]00)(?=[1-9]\d ))\d[\d ().\u00a0-]{5,18}\d"
    r"(?![\w.]?\d|\w|[\d ().-]{0,8}#)"
)
_NATIONAL = re.compile(r"[(\d](?:(?<=\()\d{3}\) ?|(?<=\d)\d\d[.-])\d{3}[.-]\d{4}(?![\w-]|\.\d)")
_BEFORE_NATIONAL = re.compile(r"(?:\A|[^\w.+/:=-])(?:1[ .-])?\Z")
_AFTER_WORD = re.compile(
    r"(?i:phone|tel|telephone|telefon|mobile|mobil|handy|cell|fax|whatsapp|call)"
    r"((?: ?(?i:number|no\.?|nr\.?|me at|us at|at|is|\.?:|\.|#)){0,3}) {1,3}"
    r"(\+?\(?\d[\d ()./-]{5,18}\d)(?![\w.]?\d)(?P<after> [a-z])?"
)
_AROUND = 48
"""How far around some digits a number of a person may reach, with the word before it."""
_TIME_OR_NUMBER = re.compile(r"\(?\d{4}-\d\d-\d\d.*|[\d.]+")
_DECIMAL = re.compile(r"\+\d+\.\d+|.*--.*")
_CODES_IN_A_ROW = re.compile(r"00\d\d(?: \d{4})+")
_INSIDE_A_PATH = re.compile(
    r"[\w.)}\]*@%-](?<!\\[nrt])(?<!/var)(?<!/export)(?<!/usr)(?<!/nfs)(?<!/data)(?<!/private)"
    r"(?<!/mnt/[a-z])(?<!wsl\+Ubuntu)(?<!wsl\+Debian)(?<![:/][A-Za-z])(?<!\.\.)\Z"
)
_MOUNTED = re.compile(r"/(?:Volumes|mnt|media)/[^/\n]{1,40}\Z")
_DRIVE = re.compile(r"(?:\A|[^\w])[A-Za-z]:\Z")
_FILE = re.compile(r".+\.(?:html?|[jt]sx?|py|md|json|php|css|vue|go|rs|txt)")


def find_people(text: str) -> Iterator[Found]:
    """Every address and number of a person."""
    if "@" in text:
        yield from _emails(text)
    if "[at]" in text or "(at)" in text:
        for found in _SPELLED.finditer(text):
            yield Found(*found.span(), "email", value=found[0].casefold())
    first, last, is_long = -1, -1, False
    for digits in (*_DIGITS.finditer(text), None):
        if first >= 0 and (digits is None or digits.start() > last + 2 * _AROUND):
            start, end = max(0, first - _AROUND), last + _AROUND
            # Only if the digits are many can they be more than a phone's.
            yield from _numbers(text, start, end) if is_long else ()
            yield from _phones(text, start, end)
            first, is_long = -1, False
        if digits is not None:
            first, last = digits.start() if first < 0 else first, digits.end()
            is_long = is_long or len(_digits_of(digits[0])) >= _FEWEST_DIGITS


def _numbers(text: str, start: int, end: int) -> Iterator[Found]:
    """The numbers of people in a part of a text, but for phone numbers."""
    for found in _IBAN.finditer(text, start, end):
        account = found[0].replace(" ", "")
        digits = "".join(str(int(letter, 36)) for letter in account[4:] + account[:4])
        if 15 <= len(account) <= 34 and int(digits) % 97 == 1:  # the check digits are right
            yield Found(*found.span(), "iban", value=account)
    for found in _CARD.finditer(text, start, end):
        digits = _digits_of(found[0])
        if is_card(digits):
            quotes = text[found.start() - 1 : found.start()] in (":", " ", "[", ",")
            yield Found(*found.span(), "card", quotes and _is_json_number(text, found), digits)
    for found in _SSN.finditer(text, start, end):
        yield Found(*found.span(), "ssn")


def _phones(text: str, start: int, end: int) -> Iterator[Found]:
    for pattern in (_NATIONAL, _INTERNATIONAL, _AFTER_WORD):
        for found in pattern.finditer(text, start, end):
            number = slice(*found.span(2 if pattern is _AFTER_WORD else 0))
            if _is_phone(found, text[number], text):
                yield Found(number.start, number.stop, "phone", value=_digits_of(text[number]))


def _emails(text: str) -> Iterator[Found]:
    done = 0
    for found in _DOMAIN.finditer(text):
        local = _LOCAL_PART.search(text, max(done, found.start() - 64), found.start())
        if local is None or local[0] in _MACHINES or found[1].lower() in _NO_DOMAINS:
            continue
        if found[0].startswith("@self.") or not any(map(str.isalnum, local[0])):
            continue
        # A letter before the address may belong to an escaped line break.
        escaped = text[local.start() - 1 : local.start()] == "\\" and local[0][0] in "nrt"
        start = local.start() + escaped
        yield Found(start, found.end(), "email", value=text[start : found.end()].casefold())
        done = found.end()


def _is_json_number(text: str, found: re.Match[str]) -> bool:
    """Whether the digits are a number of JSON, in whose place a string needs quotes."""
    before = text[max(0, found.start() - 40) : found.start()].rstrip()
    after = text[found.end() : found.end() + 40].lstrip()[:1]
    return found[0].isdigit() and before.endswith(('":', "[", ",")) and after in ("}", "]", ",")


def is_card(digits: str) -> bool:
    """Whether the digits begin like an issuer's, are as many, and their check digit is right."""
    if not _ISSUERS.fullmatch(digits) or len(set(digits)) < 2:
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def _digits_of(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _is_phone(found: re.Match[str], number: str, text: str) -> bool:
    digits = sum(map(str.isdigit, number))
    start = found.start()
    if found.re is _AFTER_WORD:
        if not 7 <= digits <= 15 or _TIME_OR_NUMBER.fullmatch(number):
            return False
        return bool(found[1]) or number[0] in "+(0" or not (number.count(" ") and found["after"])
    if found.re is _NATIONAL:
        before = _BEFORE_NATIONAL.search(text, max(0, start - 3), start)
        return before is not None and _library_agrees(number, must_exist=True)
    is_plain = number[1:].isdigit()
    if _CODES_IN_A_ROW.fullmatch(number) or _DECIMAL.fullmatch(number):
        return False
    if not 8 <= digits <= 15 or (is_plain and _is_added_line(text, start)):
        return False
    return _library_agrees(number, must_exist=is_plain)


def _is_added_line(text: str, start: int) -> bool:
    """Whether the plus sign is that of a change to a file: its lines all begin with a sign."""
    if start == 0 or text[start - 1] != "\n":
        return False
    line_before = text.rfind("\n", 0, start - 1) + 1
    return text[line_before] in "+-@ \\"


def _library_agrees(number: str, *, must_exist: bool) -> bool:
    """What the library says; a number with spaces in it need only be possible."""
    import phonenumbers  # noqa: PLC0415 - it is large and seldom needed

    try:
        parsed = phonenumbers.parse(re.sub(r"\A00", "+", number), "US")
    except phonenumbers.NumberParseException:
        return False
    agrees = phonenumbers.is_valid_number if must_exist else phonenumbers.is_possible_number
    return agrees(parsed)


def is_home(found: re.Match[str]) -> bool:
    """Whether a match of a row of home folders names a person, and is no part of another path."""
    if not is_personal(found[found.lastindex or 0]):
        return False
    return found[0][0] not in "/-" or not _is_inside(found.string, found.start())


def _is_inside(text: str, start: int) -> bool:
    """Whether the folder is only a part of another path, such as a page of a web site."""
    if text.startswith(("/run/media/", "/scratch/"), start):
        return False
    before = text[max(0, start - 48) : start]
    if _MOUNTED.search(before):
        return False
    return _INSIDE_A_PATH.search(before) is not None and _DRIVE.search(before) is None


@lru_cache(maxsize=4096)
def is_personal(name: str) -> bool:
    """Whether a name may be a person's."""
    stem = name.casefold()
    generic = table().users.generic
    return (
        stem not in generic
        and stem.rstrip("0123456789") not in generic
        and not name.isdigit()
        and "{" not in name
        and not _FILE.fullmatch(name)
    )


@lru_cache(maxsize=1024)
def as_a_word(name: str) -> re.Pattern[str]:
    """The name where it stands bare; one that is an ordinary word only where it can be a name."""
    word = re.escape(name)
    if name.casefold().rstrip("0123456789") in table().users.ordinary:
        return re.compile(rf"(?:(?<=~)|(?<![\w<.-])(?={word}@[A-Za-z])){word}(?![A-Za-z0-9_>])")
    return re.compile(rf"(?:(?<![A-Za-z0-9_<])|(?<=\\[nrt])){word}(?![A-Za-z0-9_>(])")
