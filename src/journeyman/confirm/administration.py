"""Administration of confirmations on this machine: credentials, audit, policy, and serving."""

import getpass
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

from msgspec import Struct

from journeyman.confirm import credentials
from journeyman.confirm.audit import Anchor, export_lines, read_head, verify
from journeyman.confirm.policy import Policy, read_policy
from journeyman.confirm.schemas import Verified
from journeyman.confirm.service_options import ServiceOptions, missing_part_error
from journeyman.records.confirmation import Confirmation, Credential, CredentialKind
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

if TYPE_CHECKING:
    from journeyman.confirm.server.daemon import ConfirmationServer

P = ParamSpec("P")
T = TypeVar("T")


def _writes(
    work: Callable[Concatenate[Ledger, P], T],
) -> "Callable[Concatenate[Administration, P], T]":
    """Return a method that makes a change, provided that the audit reaches its anchored head."""

    @wraps(work)
    def method(admin: "Administration", /, *args: P.args, **kwargs: P.kwargs) -> T:
        admin.anchor.checked(admin.confirmations)
        with admin.writing() as ledger:
            return work(ledger, *args, **kwargs)

    return method


class Login(Struct, frozen=True, kw_only=True):
    """The first approver's login, created at the first start and shown once."""

    name: str
    key: str
    link: str

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Login(name={self.name!r})"


class ServiceInfo(Struct, frozen=True, kw_only=True):
    """The addresses and channels of a running service."""

    agents_url: str
    page_url: str
    channels: tuple[str, ...]
    login: Login | None
    anonymous: bool


class Administration:
    """What the operator of the service does. Every change is recorded in the audit; `by` is the
    name it is recorded under.
    """

    def __init__(
        self, confirmations: Confirmations, options: ServiceOptions, clock: Callable[[], float]
    ) -> None:
        self.confirmations = confirmations
        self.options = options
        self._clock = clock
        self.anchor = Anchor(options.files / "confirm.anchor")

    add_agent = _writes(credentials.add_agent)
    add_approver = _writes(credentials.add_approver)
    revoke_credential = _writes(credentials.revoke)
    _add_link = _writes(credentials.add_link)

    def login_link(self, name: str, by: str = "setup", page_url: str = "") -> str:
        """Return a link that logs an approver in once, within 15 minutes."""
        secret = self._add_link(name, by)
        return f"{page_url or self.options.shown_page_url}/open#{secret}"

    def credentials(self, kind: CredentialKind) -> Sequence[Credential]:
        """Return agents or approvers, newest first, including revoked ones."""
        return self.confirmations.credentials(kind)

    def list(self, *, limit: int | None = 50, **filters: Any) -> Sequence[Confirmation]:
        """Return cards, newest first; `filters` are those of the store, such as `status`."""
        return self.confirmations.list(limit=limit, **filters)

    def verify_audit(self, anchor: str = "") -> Verified:
        """Verify the audit against its anchored head, or against the head in `anchor`."""
        anchored = read_head(anchor, f"{anchor[:100]!r}") if anchor else self.anchor.read()
        return verify(self.confirmations, anchored)

    def export_audit(self) -> Iterator[str]:
        """Yield every entry, oldest first, as the lines of a file."""
        return export_lines(self.confirmations.audit_texts())

    def reset_anchor(self, by: str = "setup") -> str:
        """Anchor the audit's head as it is now, and record that in the audit."""
        anchored = self.anchor.read()
        before = "" if anchored is None else f"{anchored[0]}:{anchored[1]}"
        with self.writing(lowers=True) as ledger:
            entry = ledger.note("anchor_reset", by, before=before)
        return f"{entry.seq}:{entry.digest}"

    def serve(
        self, on_started: Callable[[ServiceInfo], None] = lambda _: None, *, anonymous: bool = False
    ) -> None:
        """Serve until Ctrl-C or a signal; `on_started` is called once the service answers."""
        serving, started = self._assemble(anonymous=anonymous)
        serving.run(lambda _: on_started(started()))

    @contextmanager
    def served(
        self, *, terminal: TextIO | None = None, with_login: bool = True
    ) -> Iterator[ServiceInfo]:
        """Serve in a thread while the block runs, for programs that embed the service and for
        tests; without creating a first approver, if no one would see its login. Port 0 means any
        free port. Raise what `serve` raises.
        """
        results: list[ServiceInfo] = []
        serving, started = self._assemble(terminal=terminal, with_login=with_login)
        with serving.in_thread(lambda _: results.append(started())):
            yield results[0]

    def _assemble(
        self,
        *,
        anonymous: bool = False,
        terminal: TextIO | None = None,
        with_login: bool = True,
    ) -> "tuple[ConfirmationServer, Callable[[], ServiceInfo]]":
        """Return a server with its service, notifier and bound ports, and a function to call on its
        event loop once it answers. Raise what `bind` and the notification settings raise.
        """
        with missing_part_error():
            from journeyman.confirm.notices import Notifier  # noqa: PLC0415
            from journeyman.confirm.server.daemon import ConfirmationServer  # noqa: PLC0415
            from journeyman.confirm.service import Service  # noqa: PLC0415
        options, file = self.options, self.options.policy_file
        is_required = bool(options.policy)

        def policy() -> Policy:
            # A file that existed must not disappear, because its rules would disappear with it.
            nonlocal is_required
            is_required = is_required or os.path.lexists(file)
            return read_policy(file, rate_limit=options.rate_limit, required=is_required)

        def page_url() -> str:
            return serving.options.shown_page_url

        def started() -> ServiceInfo:
            notifier.start()
            return ServiceInfo(
                agents_url=serving.options.agents_url,
                page_url=page_url(),
                channels=notifier.channels,
                login=login,
                anonymous=anonymous,
            )

        service = Service(self.confirmations, options.files, policy, clock=self._clock)
        notifier = Notifier(service, options.notify, page_url, terminal)
        serving = ConfirmationServer(service, options, anonymous=anonymous, ending=notifier.stop)
        serving.bind()
        login = self._first_login(page_url()) if with_login else None
        return serving, started

    def _first_login(self, page_url: str) -> Login | None:
        """Create the first approver, if there never was one: otherwise no one could decide."""
        if self.credentials("approver"):
            return None
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        name = re.sub(r"[^A-Za-z0-9._@-]", "", user).lstrip("._@-")[:64] or "owner"
        _, key = self.add_approver(name, by="first start")
        return Login(name=name, key=key, link=self.login_link(name, "first start", page_url))

    @contextmanager
    def writing(self, *, lowers: bool = False) -> Iterator[Ledger]:
        """Open a transaction, and anchor its last entry as the audit's head; with `lowers`, even if
        a later head was anchored.
        """
        with self.confirmations.writing(self._clock()) as ledger:
            yield ledger
        if ledger.entries:
            last = ledger.entries[-1]
            self.anchor.write(last.seq, last.digest, lowers=lowers)
