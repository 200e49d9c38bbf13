"""Confirmations put together from the settings: what is done on this machine, the client that asks
the service, and the question that an agent's gate puts to it.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from journeyman.records.errors import (
    BadSetting,
    JourneymanError,
    MissingPart,
    ServiceUnavailable,
)
from journeyman.settings import Settings
from journeyman.store.store import Store

if TYPE_CHECKING:
    from journeyman.agent.dispatch import Ask, Question
    from journeyman.confirm.administration import Administration
    from journeyman.confirm.client import ConfirmClient
    from journeyman.confirm.options import Options

_LOOK_UP_S = 1.0
"""How often an agent that waits looks whether it was stopped."""


def administration(
    settings: Settings, store: Store, clock: Callable[[], float]
) -> "Administration":
    """What is done about confirmations on this machine."""
    try:
        from journeyman.confirm.administration import Administration  # noqa: PLC0415
    except ImportError as error:
        raise _missing(error) from error
    return Administration(store.confirmations, options(settings), clock)


def options(settings: Settings) -> "Options":
    """How a service on this machine is set up."""
    from journeyman.confirm.options import Options  # noqa: PLC0415

    given = settings.confirm
    return Options(
        files=settings.home,
        policy=Path(given.policy).expanduser() if given.policy else settings.home / "confirm.toml",
        policy_required=bool(given.policy),
        rate_limit=given.rate_limit,
        host=given.host,
        port=given.port,
        page_port=given.page_port,
        hosts=given.hosts,
        page_hosts=given.page_hosts,
        page_url=given.page_url,
        notify=given.notify,
    )


def client(settings: Settings, credential: str) -> "ConfirmClient":
    """The service in the settings, asked with an agent's token or an approver's key."""
    try:
        from journeyman.confirm.client import ConfirmClient  # noqa: PLC0415
    except ImportError as error:
        raise _missing(error) from error
    if not credential:
        raise BadSetting(
            "No token is set for asking the confirmation service. Make one with `journeyman "
            "confirm token add NAME`, and set it: JOURNEYMAN_CONFIRM_TOKEN, or token below "
            "[confirm] in config.toml."
        )
    return ConfirmClient(service_url(settings), credential)


def asking_service(settings: Settings, workspace: str, tell: Callable[[str], None]) -> "Ask":
    """The question of an agent's gate, put to the service: yes only for an approval that was
    redeemed for exactly these arguments. Whatever goes wrong is told, and nobody has answered.
    """

    def ask(question: "Question") -> bool | None:
        try:
            with client(settings, settings.confirm.token) as service:
                return _answer(service, question, workspace, tell)
        except JourneymanError as error:
            tell(str(error))
            return None

    return ask


def _answer(
    service: "ConfirmClient", question: "Question", workspace: str, tell: Callable[[str], None]
) -> bool | None:
    details = {"arguments": question.arguments, "workspace": workspace, "rule": question.rule}
    if question.files:
        details["files"] = question.files
    card = service.request(question.tool, question.reason, details, session_key=question.session)
    if card.status == "pending":
        tell(f"Waiting for a person to decide on {card.short_id}: {card.page_url}")
    until = time.monotonic() + card.expires_in_s
    while card.status == "pending" and not question.cancelled():
        try:
            card = service.wait(card.id, timeout_s=_LOOK_UP_S)
        except ServiceUnavailable:
            # It may come back, and the card with it; but not for longer than the card lasts.
            if time.monotonic() > until:
                raise
            time.sleep(_LOOK_UP_S)
    if card.status == "pending":
        service.cancel(card.id, reason="the agent was stopped")
        return None
    if not card.is_approved:
        tell(card.outcome)
        return False if card.status == "denied" else None
    if card.edited is not None:
        tell("It was approved with other arguments, which the agent has to ask for by itself.")
        return False
    service.redeem(card, details)
    return True


def service_url(settings: Settings) -> str:
    """Where the service is asked."""
    given = settings.confirm
    if given.url:
        return given.url.rstrip("/")
    from journeyman.confirm.options import reached  # noqa: PLC0415

    return f"http://{reached(given.host)}:{given.port}"


def _missing(error: ImportError) -> MissingPart:
    return MissingPart(
        f"Confirmations need parts that are not installed here ({error}). Install them with: "
        "pip install 'journeyman[confirm]'"
    )
