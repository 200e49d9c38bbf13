"""Services outside, through apprise, by their URLs. A URL is a secret: neither it nor what the
library says of it leaves this module, only the service's name and a plain reason.
"""

import logging
import re
import warnings
from collections.abc import Callable
from typing import Final, Literal

from journeyman.confirm.notices.text import NoticeChannel, NoticeText, NotTold
from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import BadSetting, MissingPart

try:
    from apprise import Apprise, AppriseAsset, AppriseAttachment, NotifyBase
    from apprise.common import NotifyFormat, NotifyType
    from apprise.result import AppriseResultStatus, NotifyAttempt
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
_TITLE_BREAK: Final = 3
"""What is set around a title that stands in the body: a heading's mark and the end of the line."""

Body = Callable[[int, bool], str]
"""Makes a body of at most so many characters, as Markdown or as plain text."""
Kind = Literal["warning", "success", "failure"]


class AppriseService:
    """A service that texts can be sent to. Raises BadSetting where apprise cannot use the URL:
    `called` is how it is named there, `about` what the texts are, for services that show it.
    With more than one of `attempts`, whoever got it in an earlier one does not get it again.
    """

    def __init__(
        self, url: str, *, called: str, about: str, attempts: int = 1, pause_s: float = 0.0
    ) -> None:
        _keep_quiet()
        self.service = _service_of(url, called, about)
        self.name = str(self.service.service_name)
        # The library pauses between two texts, and the pause counts towards the time limit.
        self.service.request_rate_per_sec = min(self.service.request_rate_per_sec, _LONGEST_PAUSE_S)
        if attempts > 1:
            self.service.retry = attempts - 1
            self.service.wait = pause_s
        is_markdown = self.service.resolve_format(NotifyFormat.TEXT) is NotifyFormat.MARKDOWN
        is_markdown = is_markdown or self.name in _DRAWS_TEXT_AS_MARKDOWN
        self._format = NotifyFormat.MARKDOWN if is_markdown else NotifyFormat.TEXT
        self._sender = Apprise(asset=self.service.asset)
        self._sender.add(self.service)

    def send(self, title: str, body: Body, kind: Kind) -> None:
        """Send a text. Raises NotTold. It takes as long as the service does: who cannot wait
        calls it in a thread.
        """
        limit = self.service.body_maxlen
        # Some have no place for a title, others count it: then it takes room from the body.
        if self.service.title_maxlen <= 0 or self.service.overflow_amalgamate_title:
            limit -= len(title) + _TITLE_BREAK
        result = self._sender.notify(
            title=title,
            body=body(limit, self._format is NotifyFormat.MARKDOWN),
            body_format=self._format,
            notify_type=NotifyType(kind),
            interpret_escapes=False,
        )
        # Not the result's own word: with ?optional=yes in the address it calls every failure a
        # success.
        attempts = [attempt for service in result.results for attempt in service.attempts]
        if not attempts or attempts[-1].status != AppriseResultStatus.SUCCESS:
            raise NotTold(_reason(attempts[-1] if attempts else None))


class AppriseChannel(NoticeChannel):
    """One service of apprise, by its URL. Raises BadSetting where apprise cannot use it, naming no
    more of it than the service and its place in the list.
    """

    def __init__(self, url: str, position: int = 1) -> None:
        called = f"The notification address number {position}"
        self._to = AppriseService(url, called=called, about="Journeyman confirmations")
        self.name = self._to.name

    def send(self, text: NoticeText, confirmation: Confirmation) -> None:  # noqa: ARG002 - as every channel
        """Send a notice. Raises NotTold."""
        self._to.send(
            text.title,
            lambda limit, is_markdown: (text.markdown if is_markdown else text.plain)(limit),
            "warning",
        )


def _service_of(url: str, called: str, about: str) -> NotifyBase:
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    shown = f"{scheme}://…" if scheme else "without a service, as in ntfy://…"
    asset = AppriseAsset(
        app_id="Journeyman",
        app_desc=about,
        app_url="",
        image_url_mask="",  # no pictures from elsewhere beside the text
        image_url_logo="",
        async_mode=False,  # in our own thread, which the end of the program does not wait for
        service_timeout=0,
        interpret_emojis=False,
        secure_logging=True,
        storage_mode="memory",
    )
    with warnings.catch_warnings():
        # The first address loads every service there is, some with parts that Python will drop.
        warnings.simplefilter("ignore", DeprecationWarning)
        service = Apprise.instantiate(url, asset=asset) if scheme else None
    if service is None:
        raise BadSetting(
            f"{called} ({shown}) cannot be used: apprise does not know the service, or something "
            "is missing in the address. See the service's page on "
            "https://appriseit.com/services/ for how its address is written."
        )
    template = getattr(service, "template", None)
    if isinstance(template, AppriseAttachment) and template:
        raise BadSetting(
            f"{called} ({shown}) names a template file. What is sent is made safe for the plain "
            "layout only: take template= out of the address."
        )
    return service


def _reason(last: NotifyAttempt | None) -> str:
    """Why it failed, in our words: the library's may hold hosts and topics."""
    logged = "" if last is None else " ".join(entry.message for entry in last.logs)
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
