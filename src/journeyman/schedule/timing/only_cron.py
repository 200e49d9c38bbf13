"""What the other texts cannot say: the words that ask for it, and what to write for them, mostly a
cron expression to begin with.
"""

import re

_MONTHS = "january february march april may june july august september october november december"
_HINTS = (
    (
        r"hours?|minutes?",
        'write "every hour at :15" for a minute of every hour, and for some hours of the day a '
        'cron expression: "*/30 9-16 * * 1-5" is each half an hour from 9:00 to 16:30, Monday to '
        "Friday",
    ),
    (
        r"between|from|until|till|to|through|during|[0-9:apm]+-[0-9:apm]+",
        'for some hours of the day, write a cron expression: "0 9-17 * * 1-5" is each hour from '
        '9:00 to 17:00, and "*/30 9-16 * * 1-5" each half an hour, Monday to Friday',
    ),
    (
        rf"months|years?|quarters?|quarterly|{'|'.join(f'{m}|{m[:3]}' for m in _MONTHS.split())}",
        'for some months of the year, write a cron expression: "0 9 1 1 *" is 9:00 on the 1st of '
        'January, and "0 9 1 */3 *" that of every third month',
    ),
    (
        r"other|alternate|fortnight|fortnightly|biweekly",
        'for every second week, write "every 2 weeks", which is counted from now, or '
        '"first and third monday of the month at 9am"',
    ),
)
_RULES = tuple((re.compile(words), hint) for words, hint in _HINTS)


def find_hint(text: str) -> str:
    """What to write instead of a text in small letters that cannot be read, by its words; empty
    when they do not tell.
    """
    words = text.split()
    return next((hint for rule, hint in _RULES if any(map(rule.fullmatch, words))), "")
