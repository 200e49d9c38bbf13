"""Builds the parts of confirmations from the settings: administration, client, approver."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from journeyman.confirm.service_options import ServiceOptions, missing_part_error
from journeyman.gate.decision import ApprovalRequest, Approver, Notify
from journeyman.records.errors import JourneymanError
from journeyman.settings import Settings
from journeyman.store.store import Store

if TYPE_CHECKING:
    from journeyman.confirm.administration import Administration
    from journeyman.confirm.client import ConfirmClient
    from journeyman.confirm.schemas import Card


def administration(
    settings: Settings, store: Store, clock: Callable[[], float]
) -> "Administration":
    """Return the administration of confirmations on this machine."""
    with missing_part_error():
        from journeyman.confirm.administration import Administration  # noqa: PLC0415
    return Administration(store.confirmations, _options(settings), clock)


def _options(settings: Settings) -> ServiceOptions:
    return ServiceOptions(files=settings.home, **asdict(settings.confirm))


def client(settings: Settings, credential: str, *, url: str = "") -> "ConfirmClient":
    """Return a client of the configured service, with an agent's token or an approver's key. It may
    be empty: a service can accept requests without a token. Without a configured address, the
    service is at `url`, by default on its usual port.
    """
    with missing_part_error():
        from journeyman.confirm.client import ConfirmClient  # noqa: PLC0415
    address = settings.confirm.url or url or _options(settings).agents_url
    return ConfirmClient(address, credential)


def service_approver(settings: Settings, workspace: str, notify: Notify) -> Approver:
    """Return an approver that asks the service. It approves only if an approval was redeemed for
    exactly these arguments. Errors are reported through `notify` and count as no answer.
    """

    def ask(request: ApprovalRequest) -> bool | None:
        details = {"arguments": request.arguments, "workspace": workspace, "rule": request.rule}
        try:
            with client(settings, settings.confirm.token) as service:
                answer = service.ask(
                    request.tool,
                    request.reason,
                    details,
                    session_key=request.session,
                    on_waiting=_tell_waiting,
                    cancelled=request.cancelled,
                )
        except JourneymanError as error:
            notify(str(error))
            return None
        if answer:
            return True
        notify(answer.why)
        card = answer.card
        is_no = card is not None and (card.status == "denied" or card.edited is not None)
        return False if is_no else None

    def _tell_waiting(card: "Card") -> None:
        notify(f"Waiting for a person to decide on {card.short_id}: {card.page_url}")

    return ask
