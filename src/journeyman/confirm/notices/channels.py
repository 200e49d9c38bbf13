"""The channels that notices are sent through."""

from journeyman.confirm.notices.text import NoticeText
from journeyman.notify.services import NotificationService
from journeyman.records.confirmation import Confirmation


class NoticeChannel:
    """One way to notify people. `name` is the name of the service, never its URL."""

    name: str
    shows_outcomes = False
    """Whether it also shows how a confirmation was settled."""

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:
        """Send a notice. Raise DeliveryFailed if it reached no one."""
        raise NotImplementedError

    def show_outcome(self, confirmation: Confirmation) -> None:
        """Show, where the notice was sent, that it is settled. Raise DeliveryFailed."""

    def start(self) -> None:
        """Start accepting answers, if people can answer on this channel."""

    def stop(self) -> None:
        """Stop accepting answers."""


class ServiceChannel(NoticeChannel):
    """A notification service that only delivers; decisions are made on the page."""

    def __init__(self, service: NotificationService) -> None:
        self._service = service
        self.name = service.name

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:  # noqa: ARG002 - the interface
        """Send a notice. Raise DeliveryFailed."""
        self._service.send(
            text.title,
            lambda limit, is_markdown: (text.markdown if is_markdown else text.plain)(limit),
            "warning",
        )
