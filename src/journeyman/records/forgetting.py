"""What a person asked to forget."""

from msgspec import Struct

from journeyman.records.session import SessionId

EVERY_REQUEST = -1
"""In place of a request's number: all requests of a session."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be. `sessions` and `projects` are those it was learned from.
    `templates_changed` and `templates_deleted` name versions, such as web@2.
    """

    sessions: tuple[SessionId, ...] = ()
    projects: tuple[str, ...] = ()
    episodes: int = 0
    templates_changed: tuple[str, ...] = ()
    templates_deleted: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing learned is affected."""
        return not any((self.episodes, self.templates_changed, self.templates_deleted))


class ForgottenSession(Struct, frozen=True, kw_only=True):
    """A session that is not learned from. If only some of its requests are excluded, `requests` has
    their numbers.
    """

    session: SessionId
    requests: tuple[int, ...] = ()
    at: float
