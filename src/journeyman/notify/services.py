"""Notification services: open the service behind a URL, and send to it within a time limit. A URL
is a secret; only its scheme and the name of the service may be shown.
"""

import re
import threading
from collections.abc import Callable
from typing import Final, Literal, Protocol

from journeyman.records.errors import MissingPart

_SCHEME: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]{0,30})://")

BodyWriter = Callable[[int, bool], str]
"""Returns a body of up to this many characters, as Markdown (True) or as plain text."""
MessageKind = Literal["warning", "success", "failure"]


class DeliveryFailed(Exception):
    """A message was not delivered. The reason is safe for people and logs: no URL, no secret."""


class NotificationService(Protocol):
    """A service that delivers messages. `name` is the service's name, never its URL."""

    name: str

    def send(self, title: str, body: BodyWriter, kind: MessageKind) -> None:
        """Send a message, and block until the service has answered. Raise DeliveryFailed."""


def url_scheme(url: str) -> str:
    """Return the scheme of a URL in lower case; empty if it has none."""
    match = _SCHEME.match(url)
    return match[1].lower() if match else ""


def open_service(
    url: str, *, label: str, about: str, extra: str, attempts: int = 1, pause_s: float = 0.0
) -> NotificationService:
    """Return the service behind a URL.

    `label` names the URL in errors, `about` describes the messages to services that show a
    description, and `extra` is the optional dependency group to install. With more than one
    attempt, recipients that an earlier attempt reached are skipped. Raise BadSetting if the URL
    cannot be used, and MissingPart if apprise is not installed.
    """
    try:
        # Imported here because apprise is heavy, and most installations have no URL.
        from journeyman.notify.apprise_service import AppriseService  # noqa: PLC0415
    except ImportError as missing:
        raise MissingPart(
            f'Sending messages to a service needs the extra "{extra}", which is not installed: '
            f"pip install 'journeyman[{extra}]'."
        ) from missing
    return AppriseService(url, label=label, about=about, attempts=attempts, pause_s=pause_s)


def call_within(limit_s: float, send: Callable[[], None]) -> None:
    """Call `send` in a thread and wait up to `limit_s`. A thread cannot be ended: after the limit
    it is abandoned. Raise DeliveryFailed on failure or timeout.
    """
    failures: list[DeliveryFailed] = []

    def call() -> None:
        try:
            send()
        except DeliveryFailed as error:
            failures.append(error)
        except Exception:  # noqa: BLE001 - the text of the error may contain the URL
            failures.append(DeliveryFailed("it failed unexpectedly"))

    thread = threading.Thread(target=call, name="delivery", daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive():
        raise DeliveryFailed(f"no answer within {limit_s:g} s")
    if failures:
        raise failures[0]
