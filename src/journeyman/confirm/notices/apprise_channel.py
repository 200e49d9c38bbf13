"""A notice through any service that apprise knows, by its URL. The URL is a secret: neither it nor
what the library says of it leaves this module, only the service's name and a plain reason.
"""

import logging
import re
import warnings
from typing import Final

from journeyman.confirm.notices.channel import NotTold
from journeyman.confirm.notices.text import NoticeText
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import BadSetting, MissingPart

try:
    from apprise import Apprise, AppriseAsset, AppriseAttachment, NotifyBase
    from apprise.common import NotifyFormat, NotifyType
    from apprise.result import AppriseResult, AppriseResultStatus
except ImportError as missing:
    raise MissingPart(
        "Notices need the extra \"confirm\": pip install 'journeyman[confirm]'."
    ) from missing

_SCHEME: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]{0,30})://")
_STATUS: Final = re.compile(r"\berror=([345]\d\d)\b")
_UNREACHED: Final = re.compile(r"connection error", re.IGNORECASE)

# Their plain text is drawn as Markdown all the same, so the escapes have to be ours.
_DRAWS_TEXT_AS_MARKDOWN: Final = frozenset(("Discord", "Guilded"))

_LONGEST_PAUSE_S: Final = 1.0
_TITLE_BREAK: Final = 2


class AppriseChannel:
    """One service of apprise."""

    def __init__(self, service: NotifyBase) -> None:
        self.name = str(service.service_name)
        self.service = service
        # The library pauses between two notices, and the pause counts towards the time limit.
        service.request_rate_per_sec = min(service.request_rate_per_sec, _LONGEST_PAUSE_S)
        self._format = _format_for(service)
        self._sender = Apprise(asset=service.asset)
        self._sender.add(service)

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:  # noqa: ARG002 - as every channel
        """Send a notice. Raises NotTold."""
        limit = self.service.body_maxlen
        if self.service.title_maxlen <= 0:
            limit -= len(text.title) + _TITLE_BREAK
        is_markdown = self._format is NotifyFormat.MARKDOWN
        result = self._sender.notify(
            title=text.title,
            body=text.markdown(limit) if is_markdown else text.plain(limit),
            body_format=self._format,
            notify_type=NotifyType.WARNING,
            interpret_escapes=False,
        )
        if not _was_sent(result):
            raise NotTold(_reason(result))


def apprise_channel(url: str, position: int = 1) -> AppriseChannel:
    """The channel for a URL. Raises BadSetting where apprise cannot use it, naming no more of it
    than the service and its place in the list.
    """
    _keep_quiet()
    found = _SCHEME.match(url)
    scheme = f"{found[1].lower()}://…" if found else "without a service, as in ntfy://…"
    asset = AppriseAsset(
        app_id="Journeyman",
        app_desc="Journeyman confirmations",
        app_url="",
        image_url_mask="",  # no pictures from elsewhere beside the notice
        image_url_logo="",
        async_mode=False,  # in our own thread, which has its own time limit
        service_timeout=0,
        interpret_emojis=False,
        secure_logging=True,
        storage_mode="memory",
    )
    with warnings.catch_warnings():
        # The first address loads every service there is, some with parts that Python will drop.
        warnings.simplefilter("ignore", DeprecationWarning)
        service = Apprise.instantiate(url, asset=asset) if found else None
    if service is None:
        raise BadSetting(
            f"The notification address number {position} ({scheme}) cannot be used: apprise does "
            "not know the service, or something is missing in the address. See the service's page "
            "on https://appriseit.com/services/ for how its address is written."
        )
    template = getattr(service, "template", None)
    if isinstance(template, AppriseAttachment) and template:
        raise BadSetting(
            f"The notification address number {position} ({scheme}) names a template file. Notices "
            "are escaped for the plain layout only: take template= out of the address."
        )
    return AppriseChannel(service)


def _format_for(service: NotifyBase) -> NotifyFormat:
    is_markdown = service.resolve_format(NotifyFormat.TEXT) is NotifyFormat.MARKDOWN
    if is_markdown or str(service.service_name) in _DRAWS_TEXT_AS_MARKDOWN:
        return NotifyFormat.MARKDOWN
    return NotifyFormat.TEXT


def _was_sent(result: AppriseResult) -> bool:
    # Not the result's own word: with ?optional=yes in the address it calls every failure a success.
    attempts = [attempt for service in result.results for attempt in service.attempts]
    return bool(attempts) and attempts[-1].status == AppriseResultStatus.SUCCESS


def _reason(result: AppriseResult) -> str:
    """Why it failed, in our words: the library's may hold hosts and topics."""
    logged = " ".join(entry.message for service in result.results for entry in service.logs())
    if status := _STATUS.search(logged):
        return f"the service answered {status[1]}"
    if _UNREACHED.search(logged):
        return "the service could not be reached"
    return "the service did not take it"


def _keep_quiet() -> None:
    """Keep the libraries' own log lines, which hold addresses, out of everybody's log."""
    for name in ("apprise", "urllib3"):
        library = logging.getLogger(name)
        library.propagate = False
        if not library.handlers:
            library.addHandler(logging.NullHandler())
