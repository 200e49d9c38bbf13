"""Whether there is anything to learn, asked with the bare driver: like importing, learning is
called by hooks and schedules, and mostly finds nothing new.
"""

import sqlite3
from contextlib import closing
from typing import NamedTuple

from journeyman.store.driver import open_bare

# The same question as `Learned.missing` asks, for one database.
_MISSING = """
    SELECT EXISTS (
        SELECT 1 FROM sessions s LEFT JOIN mined m ON m.session_row = s.row_id
        WHERE m.session_row IS NULL OR m.digest <> s.digest OR m.rules <> ?
        OR m.outcome IS NOT s.outcome OR m.end_reason <> s.end_reason
    )"""
_REASONS = "SELECT reason, count(*) FROM mined GROUP BY 1"
_KINDS = "SELECT kind, count(*) FROM patterns WHERE quarantined = '' GROUP BY 1"
_HELD = """
    SELECT count(DISTINCT key) FROM kept_out
    WHERE key NOT IN (SELECT key FROM quarantine_decisions)"""


class KnownPatterns(NamedTuple):
    """Sessions by the reason why they teach nothing, and patterns by kind."""

    reasons: dict[str, int]
    kinds: dict[str, int]


def find_known(url: str, rules: str) -> KnownPatterns | None:
    """What was learned, if nothing is left to learn under these rules. None means that the store
    has to be asked.
    """
    try:
        connection = open_bare(url)
        if connection is None:
            return None
        with closing(connection):
            connection.execute("BEGIN")  # all questions are about one state
            if connection.execute(_MISSING, (rules,)).fetchone() != (0,):
                return None
            kinds = dict(connection.execute(_KINDS))
            if held := connection.execute(_HELD).fetchone()[0]:
                kinds["quarantined"] = held
            return KnownPatterns(dict(connection.execute(_REASONS)), kinds)
    except sqlite3.Error:
        return None
