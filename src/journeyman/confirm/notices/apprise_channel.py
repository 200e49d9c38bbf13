"""A notice through any service that apprise knows, by its URL. How texts get there, and that the
URL stays secret, is left to `apprise_service`.
"""

from journeyman.confirm.notices.apprise_service import AppriseService
from journeyman.confirm.notices.text import NoticeText
from journeyman.records.confirmation import Confirmation


class AppriseChannel:
    """One service of apprise."""

    def __init__(self, to: AppriseService) -> None:
        self.name = to.name
        self._to = to

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:  # noqa: ARG002 - as every channel
        """Send a notice. Raises NotTold."""

        def body(limit: int, is_markdown: bool) -> str:  # noqa: FBT001 - as `Body` has it
            return text.markdown(limit) if is_markdown else text.plain(limit)

        self._to.send(text.title, body, "warning")


def apprise_channel(url: str, position: int = 1) -> AppriseChannel:
    """The channel for a URL. Raises BadSetting where apprise cannot use it, naming no more of it
    than the service and its place in the list.
    """
    called = f"The notification address number {position}"
    return AppriseChannel(AppriseService(url, called=called, about="Journeyman confirmations"))
