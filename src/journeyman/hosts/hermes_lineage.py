"""Which session of Hermes continues which. A compression or a branch may give a conversation a new
id that no hook reports, so the resident process reads it from Hermes' database. Hermes' own process
must not: it would lose its locks on that file.
"""

from pathlib import Path

from journeyman.logs.log_file import LogFile
from journeyman.logs.sqlite_database import open_database
from journeyman.records.errors import LogUnreadable, NotALog

_COLUMNS = {"sessions": {"id", "parent_session_id"}}
_BUSY_TIMEOUT_S = 0.3
_LONGEST = 50


def ancestors(database: str, session: str) -> tuple[str, ...]:
    """Return the sessions that this one continues, the nearest first; none if the database cannot
    be read.
    """
    found: list[str] = []
    try:
        with open_database(
            LogFile(Path(database)), _COLUMNS, busy_timeout_s=_BUSY_TIMEOUT_S
        ) as opened:
            statement = "SELECT parent_session_id FROM sessions WHERE id = ?"
            while len(found) < _LONGEST:
                row = opened.execute(statement, found[-1] if found else session).fetchone()
                parent = row["parent_session_id"] if row else None
                if not isinstance(parent, str) or parent in found:
                    break
                found.append(parent)
    except (LogUnreadable, NotALog):
        return ()
    return tuple(found)
