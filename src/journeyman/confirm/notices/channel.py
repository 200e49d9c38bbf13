"""A channel to people, as `telling` sees it: a name, a sending that works or says why not, and for
some a word when the matter is settled.
"""

from typing import Protocol, runtime_checkable

from journeyman.confirm.notices.text import NoticeText
from journeyman.records.confirmation import Confirmation


class NotTold(Exception):
    """A way did not work. The reason is for people and for the log: no address, no secret."""


class NoticeChannel(Protocol):
    """One way to tell people. `name` is the service's, never the address."""

    @property
    def name(self) -> str: ...

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice. Raises NotTold when nobody was told."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """A way that also shows what became of a confirmation."""

    def settled(self, confirmation: Confirmation) -> None:
        """Show where the notice was sent that it is settled. Raises NotTold."""
        ...


@runtime_checkable
class Listens(Protocol):
    """A way by which people answer."""

    def start(self) -> None: ...

    def stop(self) -> None: ...
