"""All rows of the quarantine together, ready to be tried: how text gives orders to its reader, in
many languages, plays another role, or sends secrets away.
"""

import re
from collections.abc import Iterable

from journeyman.redaction.quarantine_languages import LANGUAGE_ROWS
from journeyman.redaction.quarantine_leaks import LEAKS
from journeyman.redaction.quarantine_orders import ORDERS
from journeyman.redaction.quarantine_readers import READERS
from journeyman.redaction.quarantine_roles import ROLES
from journeyman.redaction.quarantine_row import Row

ROWS: tuple[Row, ...] = (*ORDERS, *READERS, *LANGUAGE_ROWS, *ROLES, *LEAKS)


class Rules:
    """Rows that read the same form of a text. Most texts hold none of the words that rows need, so
    that these are looked for first, each once.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple((row, re.compile(row.pattern, re.MULTILINE)) for row in rows)
        self._gates = tuple(dict.fromkeys(gate for row, _ in self._rows for gate in row.gates))

    def find(self, text: str, *, asked: bool) -> tuple[Row, int] | None:
        """The first row that fits, and where."""
        held = {gate for gate in self._gates if gate in text}
        if not held:
            return None
        for row, pattern in self._rows:
            if held.isdisjoint(row.gates) or (asked and not row.requests):
                continue
            if row.also and not any(word in text for word in row.also):
                continue
            if found := pattern.search(text):
                return row, found.start()
        return None


RAW = Rules(row for row in ROWS if row.raw)
SENTENCES = Rules(row for row in ROWS if not row.raw)
