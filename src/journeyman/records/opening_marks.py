"""The lines that enclose an opening in text. Each holds a digest of the opening, so that no text
inside can end it early, and a recorded session shows which opening it had.
"""

import re

_WORDS = "=== Journeyman: examples from earlier sessions"
BEGIN_MARK = re.compile(rf"{_WORDS} begin here \(([0-9a-f]{{16}})\) ===")


def begin_mark(opening_id: str) -> str:
    return f"{_WORDS} begin here ({opening_id}) ==="


def end_mark(opening_id: str) -> str:
    return f"{_WORDS} end here ({opening_id}) ==="


def marked_opening(text: str) -> str:
    """Return the id of the first opening in a text, or "" if there is none."""
    if _WORDS not in text:
        return ""
    mark = BEGIN_MARK.search(text)
    return mark[1] if mark else ""
