"""Confirmations put together from the settings: administration, client, and an agent's gate."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from journeyman.records.errors import BadSetting, JourneymanError, MissingPart
from journeyman.settings import Settings
from journeyman.store.store import Store

if TYPE_CHECKING:
    from journeyman.agent.dispatch import Ask, Question
    from journeyman.confirm.administration import Administration
    from journeyman.confirm.client import ConfirmClient
    from journeyman.confirm.options import Options

_LOOK_UP_S = 1.0
"""How often an agent that waits looks whether it was stopped."""
_LATE_S = 5.0
"""How long after its end a card should surely be expired."""


def administration(
    settings: Settings, store: Store, clock: Callable[[], float]
) -> "Administration":
    """What is done about confirmations on this machine."""
    with _installed():
        from journeyman.confirm.administration import Administration  # noqa: PLC0415
    return Administration(store.confirmations, _options(settings), clock)


def _options(settings: Settings) -> "Options":
    from journeyman.confirm.options import Options  # noqa: PLC0415

    given, home = asdict(settings.confirm), settings.home
    policy = given.pop("policy")
    return Options(
        files=home,
        policy=Path(policy).expanduser() if policy else home / "confirm.toml",
        policy_required=bool(policy),
        **{name: value for name, value in given.items() if name in Options.__struct_fields__},
    )


def client(settings: Settings, credential: str) -> "ConfirmClient":
    """The service in the settings, asked with an agent's token or an approver's key."""
    with _installed():
        from journeyman.confirm.client import ConfirmClient  # noqa: PLC0415
    if not credential:
        raise BadSetting(
            "No token is set for asking the confirmation service. Make one with `journeyman "
            "confirm token add NAME`, and set it: JOURNEYMAN_CONFIRM_TOKEN, or token below "
            "[confirm] in config.toml."
        )
    return ConfirmClient(settings.confirm.url or _options(settings).agents_url, credential)


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
    card = service.request(question.tool, question.reason, details, session_key=question.session)
    if card.status == "pending":
        tell(f"Waiting for a person to decide on {card.short_id}: {card.page_url}")
    until = time.monotonic() + card.expires_in_s + _LATE_S
    while card.status == "pending" and time.monotonic() < until and not question.cancelled():
        card = service.wait(card, timeout_s=_LOOK_UP_S)
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


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingPart(
            f"Confirmations need parts that are not installed here ({error}). Install them with: "
            "pip install 'journeyman[confirm]'"
        ) from error
