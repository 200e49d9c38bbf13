"""A whole session in one value: what `sessions export` writes and `import` reads back."""

from msgspec import Struct

from journeyman.records.message import Message
from journeyman.records.session import Session
from journeyman.records.usage import Usage


class ExportedSession(Struct, frozen=True, kw_only=True):
    """A session with everything that is known of it. `journeyman` is the version of this form; it
    comes first, so that the file is known by its first bytes.
    """

    journeyman: int = 1
    session: Session
    messages: list[Message]
    usage: list[Usage] = []
