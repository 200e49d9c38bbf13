"""What is done about confirmations on the machine itself, without the service, and written down."""

import getpass
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO, TypeVar

from msgspec import Struct

from journeyman.confirm import credentials
from journeyman.confirm.audit import Anchor, Format, exported, read_head, verify
from journeyman.confirm.credentials import Signing, read_key
from journeyman.confirm.options import Options
from journeyman.confirm.policy import Policy, read_policy
from journeyman.confirm.schemas import Verified
from journeyman.records.confirmation import Confirmation, Credential, CredentialKind
from journeyman.records.errors import MissingPart
from journeyman.store.confirmations import Confirmations, Ledger

if TYPE_CHECKING:
    from journeyman.confirm.server.serving import Serving

P = ParamSpec("P")
T = TypeVar("T")


def _writes(
    work: Callable[Concatenate[Ledger, P], T],
) -> "Callable[Concatenate[Administration, P], T]":
    """A method that makes a change, if the audit reaches its noted head."""

    @wraps(work)
    def method(mine: "Administration", /, *given: P.args, **named: P.kwargs) -> T:
        mine.anchor.checked(mine.confirmations)
        with mine.writing() as ledger:
            return work(ledger, *given, **named)

    return method


class Login(Struct, frozen=True, kw_only=True):
    """The first approver's way in, made by the first start and shown once."""

    name: str
    key: str
    link: str

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Login(name={self.name!r})"


class Started(Struct, frozen=True, kw_only=True):
    """Where the service answers now."""

    agents_url: str
    page_url: str
    channels: tuple[str, ...]
    login: Login | None
    anonymous: bool


class Administration:
    """The everyday acts of who runs the service. `by` says in whose name something is done."""

    def __init__(
        self, confirmations: Confirmations, options: Options, clock: Callable[[], float]
    ) -> None:
        self.confirmations = confirmations
        self.options = options
        self._clock = clock
        self.anchor = Anchor(options.files / "confirm.anchor")

    add_agent = _writes(credentials.add_agent)
    add_approver = _writes(credentials.add_approver)
    revoke_credential = _writes(credentials.revoke)
    set_totp = _writes(credentials.set_totp)
    _note_login_link = _writes(credentials.note_login_link)

    def login_link(self, name: str, by: str = "setup", page_url: str = "") -> str:
        """A link that logs an approver in once, within a quarter of an hour."""
        self._note_login_link(name, by)
        signing = Signing(read_key(self.options.files / "confirm.key"))
        return f"{page_url or self.options.shown_page_url}/open#{signing.login_link(name)}"

    def credentials(self, kind: CredentialKind) -> Sequence[Credential]:
        """Agents or approvers, newest first, also those that were revoked."""
        return self.confirmations.credentials(kind)

    def list(self, *, limit: int | None = 50, **wanted: Any) -> Sequence[Confirmation]:
        """Cards, newest first; `wanted` is what the store's list takes, such as a `status`."""
        return self.confirmations.list(limit=limit, **wanted)

    def policy(self, path: Path | None = None) -> Policy:
        """The policy in the file of the settings, or in another. Raises BadSetting."""
        mine, is_needed = self.options, path is not None or self.options.policy_required
        return read_policy(path or mine.policy, rate_limit=mine.rate_limit, required=is_needed)

    def verify_audit(self, anchor: str = "") -> Verified:
        """Whether the audit holds, against the noted head or against one that is given."""
        noted = read_head(anchor, "What was given") if anchor else self.anchor.read()
        return verify(self.confirmations, noted)

    def export_audit(self, format_: Format = "jsonl") -> Iterator[str]:
        """Every entry, oldest first, as the lines of a file."""
        return exported(self.confirmations.audit_texts(), format_)

    def reset_anchor(self, by: str = "setup") -> str:
        """Note the audit's head as it is now, and write down that this was done."""
        noted = self.anchor.read()
        before = "" if noted is None else f"{noted[0]}:{noted[1]}"
        with self.writing(lowers=True) as ledger:
            entry = ledger.note("anchor_reset", by, before=before)
        return f"{entry.seq}:{entry.digest}"

    def serve(
        self, told: Callable[[Started], None] = lambda _: None, *, anonymous: bool = False
    ) -> None:
        """Serve until Ctrl-C or a signal; `told` hears when it answers."""
        serving, started = self._joined(anonymous=anonymous)
        serving.run(lambda _: told(started()))

    @contextmanager
    def served(self, *, terminal: TextIO | None = None) -> Iterator[Started]:
        """Serve in a thread for as long as the block lasts: for programs that bring the service
        along, and for tests. Port 0 is any that is free. Raises as `serve` does.
        """
        begun: list[Started] = []
        serving, started = self._joined(terminal=terminal)
        with serving.in_thread(lambda _: begun.append(started())):
            yield begun[0]

    def _joined(
        self, *, anonymous: bool = False, terminal: TextIO | None = None
    ) -> "tuple[Serving, Callable[[], Started]]":
        """The core, the notices, and a server that has its ports; and what is to be called on its
        event loop once it answers. Raises what `bind` and the settings of the notices raise.
        """
        try:
            from journeyman.confirm.notices.dispatch import Notifying  # noqa: PLC0415
            from journeyman.confirm.server.serving import Serving  # noqa: PLC0415
            from journeyman.confirm.service import Service  # noqa: PLC0415
        except ImportError as missing:
            raise MissingPart(
                f"Serving confirmations needs parts that are not installed here ({missing}). "
                "Install them with: pip install 'journeyman[confirm]'"
            ) from missing
        options, file = self.options, self.options.policy
        is_required = options.policy_required

        def policy() -> Policy:
            # Once it was there it must not go away, because its rules would go with it.
            nonlocal is_required
            is_required = is_required or os.path.lexists(file)
            return read_policy(file, rate_limit=options.rate_limit, required=is_required)

        def page_url() -> str:
            return serving.options.shown_page_url

        def started() -> Started:
            notifying.start()
            return Started(
                agents_url=serving.options.agents_url,
                page_url=page_url(),
                channels=notifying.channels,
                login=login,
                anonymous=anonymous,
            )

        service = Service(self.confirmations, options.files, policy, clock=self._clock)
        notifying = Notifying(service, self.confirmations, options.notify, page_url, terminal)
        serving = Serving(service, options, anonymous=anonymous, ending=notifying.stop)
        serving.bind()
        login = self._first_login(page_url())
        return serving, started

    def _first_login(self, page_url: str) -> Login | None:
        """An approver, where there never was one: without, nobody could decide anything."""
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
        """A transaction whose last entry is noted as the audit's head; it may be a lower one."""
        with self.confirmations.writing(self._clock()) as ledger:
            yield ledger
        if ledger.entries:
            last = ledger.entries[-1]
            self.anchor.write(last.seq, last.digest, lowers=lowers)
