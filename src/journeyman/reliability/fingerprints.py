"""What failures have in common: their words without the numbers, names and places that differ each
time. Two calls that failed for one reason get one fingerprint, so that failures can be counted.
"""

import re
from typing import NamedTuple

READ_CHARACTERS = 1000
"""How much of the evidence is looked at; what went wrong is said at its beginning."""

LONGEST = 160
"""A fingerprint is cut to this, since evidence is cut too, and not always at the same word."""


class Rule(NamedTuple):
    """Something that differs from time to time and what stands for it; None keeps it as it is.
    Every repetition in a pattern has a limit, so that no text takes long.
    """

    id: str
    pattern: str
    placeholder: str | None
    example: str
    fingerprint: str
    reason: str


_EXTENSIONS = (
    "bat|bz2|cc?|cfg|conf|cpp|csv|css|db|docx?|env|gif|go|gz|h|hpp|html?|ini|ipynb|java|jpe?g|jsx?"
    "|jsonl?|kt|lock|log|md|mjs|parquet|pdf|php|png|pyi?|rb|rs|rst|sh|sqlite3?|sql|svg|swift|tar"
    "|toml|tsx?|txt|xlsx?|xml|ya?ml|zip"
)
_LINE = r"(?::\d{1,7}){0,2}"
_OPENS = r"(?<![^\s(\[{<=:,])"

RULES: tuple[Rule, ...] = (
    Rule(
        "colour",
        r"\x1b\[[0-9;]{0,16}[A-Za-z]",
        "",
        "\x1b[31mFAILED\x1b[0m to start",
        "FAILED to start",
        "a terminal's colours are no words",
    ),
    Rule(
        "rule_line",
        r"[=_*#~-]{3,200}",
        "",
        "====== 1 failed in 3 files ======",
        "<n> failed in <n> files",
        "programs draw lines as wide as the window",
    ),
    Rule(
        "telling_number",
        r"(?:(?<=[Cc]ode )|(?<=[Cc]ode: )|(?<=code>)|(?<=[Ss]tatus )|(?<=[Ss]tatus: )"
        r"|(?<=[Ee]rrno )|(?<=HTTP )|(?<=HTTP/1\.1 ))\d{1,5}\b",
        None,
        "Exit code 127 of job 4, HTTP 404",
        "Exit code 127 of job <n>, HTTP 404",
        "an exit code or an HTTP status is what went wrong",
    ),
    Rule(
        "compiler_code",
        r"\b[A-Z]{1,5}-?\d{3,5}(?=[:\])])",
        None,
        "error TS2304: no such name",
        "error TS2304: no such name",
        "compilers and linters number their complaints",
    ),
    Rule(
        "json_key",
        r"\{?[ ]{0,4}\"(?:error|message|detail|reason)\"[ ]{0,4}:[ ]{0,4}\"",
        "",
        '{"error": "Seat taken"}',
        "Seat taken",
        "what a message says counts, not that it came as JSON",
    ),
    Rule(
        "tag",
        r"</?(?!returncode)[a-z][a-z_-]{0,40}>",
        " ",
        "<error>Seat taken</error> <returncode>1</returncode>",
        "Seat taken <returncode>1</returncode>",
        "harnesses wrap messages in tags; the one that names an exit code stays",
    ),
    Rule(
        "url",
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s\"'`<>)\]}]{1,500}",
        "<url>",
        "GET https://api.example.com/v1/users?page=2 timed out",
        "GET <url> timed out",
        "the address differs",
    ),
    Rule(
        "email",
        r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}",
        "<email>",
        "No user with mia.li@example.com",
        "No user with <email>",
        "the person differs",
    ),
    Rule(
        "time",
        r"\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?"
        r"(?: ?Z|[+-]\d\d:?\d\d)?|\b\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?",
        "<time>",
        "2026-03-01T12:00:05.120Z worker lost at 09:30:00",
        "<time> worker lost at <time>",
        "the moment differs",
    ),
    Rule(
        "duration",
        r"(?<![\w.])\d{1,12}(?:\.\d{1,9})?(?: ?(?:ns|us|µs|ms|s|secs?|mins?|hrs?|h)"
        r"|[ -](?:milliseconds?|seconds?|minutes?|hours?|days?))\b",
        "<duration>",
        "timed out after 30s, then after 1.5 seconds",
        "timed out after <duration>, then after <duration>",
        "the limit differs",
    ),
    Rule(
        "uuid",
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "<id>",
        "No session 28596a79-6247-4bc2-a031-f5848b31e039",
        "No session <id>",
        "the thing differs",
    ),
    Rule(
        "windows_path",
        r"\b[A-Za-z]:[\\/][^\s\"'`<>|:*?,;()]{1,300}" + _LINE,
        "<path>",
        r"Cannot open C:\work\notes.txt:12 now",
        "Cannot open <path> now",
        "the place differs",
    ),
    Rule(
        "path",
        r"(?<![\w<./~-])(?:~|\.{1,2}|[\w@.+-]{1,100})?(?:/[\w@.+=%~-]{1,100}){2,40}/?" + _LINE,
        "<path>",
        "cat: /var/log/app/today: denied, src/main/app too",
        "cat: <path>: denied, <path> too",
        "the place differs; two slashes are needed, for and/or is no place",
    ),
    Rule(
        "short_path",
        r"(?<![\w<./~-])(?:~|\.{1,2})?/[\w@.+=%~-]{1,100}/?" + _LINE,
        "<path>",
        "ls: /data and ~/notes and ./x: denied",
        "ls: <path> and <path> and <path>: denied",
        "the place differs",
    ),
    Rule(
        "file",
        rf"(?<![\w./-])\.?(?:[\w@.+-]{{1,100}}/)?[\w@+-]{{1,100}}(?:\.[\w-]{{1,40}}){{0,3}}"
        rf"\.(?:{_EXTENSIONS})\b" + _LINE,
        "<path>",
        "tests/test_main.py:12: undefined, as in setup.cfg",
        "<path>: undefined, as in <path>",
        "the file differs",
    ),
    Rule(
        "double_quoted",
        _OPENS + r"\"[^\"]{0,300}(?:\"(?!\w)|\Z)",
        "<value>",
        'No column "price" in "sales of May"',
        "No column <value> in <value>",
        "what is quoted is a value",
    ),
    Rule(
        "single_quoted",
        _OPENS + r"'[^']{0,300}(?:'(?!\w)|\Z)",
        "<value>",
        "name 'total' isn't defined, it's 'sum'",
        "name <value> isn't defined, it's <value>",
        "what is quoted is a value; an apostrophe is no quote",
    ),
    Rule(
        "back_quoted",
        r"`[^`]{1,300}`",
        "<value>",
        "the result of `writer.Close` is not checked",
        "the result of <value> is not checked",
        "what is quoted is a value",
    ),
    Rule(
        "address",
        r"\b0[xX][0-9a-fA-F]{1,32}\b",
        "<id>",
        "object at 0x7f3a10 is gone",
        "object at <id> is gone",
        "a place in memory differs each time",
    ),
    Rule(
        "hex",
        r"\b(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,64}\b",
        "<id>",
        "bad object a1b2c3d, but defaced stays",
        "bad object <id>, but defaced stays",
        "digests and commits differ; a word has no digit",
    ),
    Rule(
        "numbered_name",
        r"(?<![\w-])#?(?=[\w-]{0,60}\d{3})(?=[\d_-]{0,60}[A-Za-z])[\w-]{5,120}(?![\w-])",
        "<id>",
        "Payment method credit_card_7815826 of #W2378156 not found",
        "Payment method <id> of <id> not found",
        "a name with three digits in a row is an id",
    ),
    Rule(
        "named_code",
        r"(?:(?<=eservation )|(?<=ooking )|(?<=rder )|(?<=icket )|(?<= id )|(?<= code ))"
        r"[A-Z0-9]{5,10}\b",
        "<id>",
        "Reservation XEWRGB not found",
        "Reservation <id> not found",
        "a booking code may be letters only: the word before it tells",
    ),
    Rule(
        "code",
        r"\b(?=[A-Z]{0,11}\d)(?=\d{0,11}[A-Z])[A-Z0-9]{6,12}\b",
        "<id>",
        "No flight for EHGLP3",
        "No flight for <id>",
        "capital letters with a digit are a code",
    ),
    Rule(
        "number",
        r"(?<![\w.])[-+]?\d{1,30}(?:[.,:]\d{1,30}){0,6}(?:%|[kKMGT]i?B?|B)?(?!\w)",
        "<n>",
        "total is 375, but 299.50 paid, -3 or 40% or 20MB left",
        "total is <n>, but <n> paid, <n> or <n> or <n> left",
        "the amount differs",
    ),
)

# Most of a message is plain words. To pass over them at once, before any rule is tried, and to look
# for rules only where a word may begin is what makes this fast.
_WORDS = r"(?P<words>(?:[A-Za-z][a-z']{0,40}[,;:.]? ){1,80})"
_INSIDE_WORDS = ("colour", "tag")


def _alternatives(*, inside_words: bool) -> str:
    rules = [rule for rule in RULES if (rule.id in _INSIDE_WORDS) == inside_words]
    return "|".join(f"(?P<{rule.id}>{rule.pattern})" for rule in rules)


_together = re.compile(
    rf"(?<!\w)(?:{_WORDS}|{_alternatives(inside_words=False)})|{_alternatives(inside_words=True)}"
)
_placeholders = {"words": None, **{rule.id: rule.placeholder for rule in RULES}}


def fingerprint(evidence: str) -> str:
    """The evidence on one line, with placeholders for what differs. Where several rules fit at one
    place, the first in the table wins.
    """
    read = " ".join(evidence[:READ_CHARACTERS].split())
    line = " ".join(_together.sub(_replaced, read).split()).strip("\"'{} ")
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


def _replaced(found: re.Match[str]) -> str:
    assert found.lastgroup is not None
    placeholder = _placeholders[found.lastgroup]
    return found[0] if placeholder is None else placeholder
