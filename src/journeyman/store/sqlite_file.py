"""Where a SQLite database is; loaded without SQLAlchemy, because settings need it."""

from pathlib import Path
from urllib.parse import quote, unquote

_PREFIX = "sqlite:///"


def sqlite_url(path: Path) -> str:
    """The URL of a file; what has a meaning in URLs is quoted."""
    return _PREFIX + quote(str(path))


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names, or None when it is no plain SQLite URL."""
    if not url.startswith(_PREFIX) or "?" in url:
        return None
    return Path(unquote(url.removeprefix(_PREFIX)))
