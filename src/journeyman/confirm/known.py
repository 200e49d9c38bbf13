"""Credentials that were looked up a moment ago, so that a busy agent's token is not looked up for
every request. Short enough that a revocation by another process is soon in force.
"""

import threading
from collections.abc import Callable

from journeyman.records.confirmation import Credential

_RECENT_S = 1.0
_MOST = 10_000


class Known:
    """Remembers credentials for a second; used from several threads."""

    def __init__(
        self, find: Callable[[str], Credential | None], clock: Callable[[], float]
    ) -> None:
        self._find = find
        self._clock = clock
        self._kept: dict[str, tuple[Credential, float]] = {}
        self._round = 0
        self._lock = threading.Lock()

    def recent(self, digest: str) -> Credential | None:
        """The credential, if it was looked up a moment ago and is still good."""
        found = self._kept.get(digest)
        if found is None or not 0 <= self._clock() - found[1] < _RECENT_S:
            return None
        return self._good(found[0])

    def look_up(self, digest: str) -> Credential | None:
        """The credential as the store has it."""
        before = self._round
        found = self._find(digest)
        if found is None:
            return None
        with self._lock:
            # Forgotten while it was looked up: what was found may be what was revoked.
            if before == self._round:
                if len(self._kept) >= _MOST:
                    self._kept.clear()
                self._kept[digest] = (found, self._clock())
        return self._good(found)

    def forget(self) -> None:
        """Something about credentials changed."""
        with self._lock:
            self._round += 1
            self._kept.clear()

    def _good(self, credential: Credential) -> Credential | None:
        ends = credential.expires_at
        return None if ends is not None and ends <= self._clock() else credential
