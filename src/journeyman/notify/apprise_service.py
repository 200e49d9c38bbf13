"""Notification services supported by apprise. A URL is a secret: neither it nor what the library
says about it leaves this module, only the name of the service and a plain reason.
"""

import logging
import re
import warnings
from typing import Final

from apprise import Apprise, AppriseAsset, AppriseAttachment, NotifyBase
from apprise.common import NotifyFormat, NotifyType
from apprise.result import AppriseResultStatus, NotifyAttempt

from journeyman.notify.services import (
    BodyWriter,
    DeliveryFailed,
    MessageKind,
    NotificationService,
    url_scheme,
)
from journeyman.records.errors import BadSetting

_STATUS: Final = re.compile(r"\berror=([345]\d\d)\b")
_CONNECTION_ERROR: Final = re.compile(r"connection error", re.IGNORECASE)

# These render plain text as Markdown, so the text must be escaped as Markdown.
_RENDERS_MARKDOWN: Final = frozenset(("Discord", "Guilded"))

_MAX_PAUSE_S: Final = 1.0
_TITLE_MARKUP: Final = 3
"""Characters added to a title that is sent inside the body: the heading mark and a newline."""


class AppriseService(NotificationService):
    """A notification service opened by its apprise URL; see `open_service` for the parameters.
    Raise BadSetting if apprise cannot use the URL.
    """

    def __init__(
        self, url: str, *, label: str, about: str, attempts: int = 1, pause_s: float = 0.0
    ) -> None:
        _silence_library_logs()
        self.plugin = _load_plugin(url, label, about)
        self.name = str(self.plugin.service_name)
        # The library pauses between two messages, and the pause counts towards the time limit.
        self.plugin.request_rate_per_sec = min(self.plugin.request_rate_per_sec, _MAX_PAUSE_S)
        if attempts > 1:
            self.plugin.retry = attempts - 1
            self.plugin.wait = pause_s
        is_markdown = self.plugin.resolve_format(NotifyFormat.TEXT) is NotifyFormat.MARKDOWN
        is_markdown = is_markdown or self.name in _RENDERS_MARKDOWN
        self._format = NotifyFormat.MARKDOWN if is_markdown else NotifyFormat.TEXT
        self._sender = Apprise(asset=self.plugin.asset)
        self._sender.add(self.plugin)

    def send(self, title: str, body: BodyWriter, kind: MessageKind) -> None:
        """Send a message, and block until the service has answered. Raise DeliveryFailed."""
        limit = self.plugin.body_maxlen
        # Without a field for the title, or where it counts towards the limit, it takes up room in
        # the body.
        if self.plugin.title_maxlen <= 0 or self.plugin.overflow_amalgamate_title:
            limit -= len(title) + _TITLE_MARKUP
        result = self._sender.notify(
            title=title,
            body=body(limit, self._format is NotifyFormat.MARKDOWN),
            body_format=self._format,
            notify_type=NotifyType(kind),
            interpret_escapes=False,
        )
        # The overall result is not reliable: with ?optional=yes in the URL, apprise reports every
        # failure as a success.
        attempts = [attempt for service in result.results for attempt in service.attempts]
        if not attempts or attempts[-1].status != AppriseResultStatus.SUCCESS:
            raise DeliveryFailed(_failure_reason(attempts[-1] if attempts else None))


def _load_plugin(url: str, label: str, about: str) -> NotifyBase:
    scheme = url_scheme(url)
    shown = f"{scheme}://…" if scheme else "without a service, as in ntfy://…"
    asset = AppriseAsset(
        app_id="Journeyman",
        app_desc=about,
        app_url="",
        image_url_mask="",  # no images loaded from elsewhere
        image_url_logo="",
        async_mode=False,  # stay in the caller's thread, which may be abandoned at exit
        service_timeout=0,
        interpret_emojis=False,
        secure_logging=True,
        storage_mode="memory",
    )
    with warnings.catch_warnings():
        # The first URL loads every plugin, some of which use deprecated parts of Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        plugin = Apprise.instantiate(url, asset=asset) if scheme else None
    if plugin is None:
        raise BadSetting(
            f"{label} ({shown}) cannot be used: apprise does not know the service, or part of the "
            "address is missing. The service's page on https://appriseit.com/services/ shows how "
            "to write its address."
        )
    template = getattr(plugin, "template", None)
    if isinstance(template, AppriseAttachment) and template:
        raise BadSetting(
            f"{label} ({shown}) names a template file. Messages are made safe for the plain layout "
            "only: remove template= from the address."
        )
    return plugin


def _failure_reason(last: NotifyAttempt | None) -> str:
    """Return why sending failed, in our own words: the library's may contain hosts or topics."""
    log_text = "" if last is None else " ".join(entry.message for entry in last.logs)
    if status := _STATUS.search(log_text):
        return f"the service answered {status[1]}"
    if _CONNECTION_ERROR.search(log_text):
        return "the service could not be reached"
    return "the service did not accept the message"


def _silence_library_logs() -> None:
    """Keep the log lines of the libraries, which contain URLs, out of the program's log."""
    for name in ("apprise", "urllib3"):
        library = logging.getLogger(name)
        library.propagate = False
        if not library.handlers:
            library.addHandler(logging.NullHandler())
