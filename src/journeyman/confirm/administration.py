"""What is done about confirmations on the machine itself, without the service: agents' tokens,
approvers, the policy in force, and the audit. Who can do this can read the database; everything is
written down under the name of who says to do it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from msgspec.structs import replace

from journeyman.confirm import credentials
from journeyman.confirm.anchor import Anchor, read_head
from journeyman.confirm.answers import Verified
from journeyman.confirm.checking import anchored, verify
from journeyman.confirm.exporting import Format, exported
from journeyman.confirm.options import Options
from journeyman.confirm.policy import Policy
from journeyman.confirm.policy_file import PolicyFile, read_policy
from journeyman.confirm.second_factor import totp_url
from journeyman.confirm.signing import Signing, read_key
from journeyman.records.confirmation import (
    Confirmation,
    ConfirmationStatus,
    Credential,
    CredentialKind,
)
from journeyman.records.errors import WrongInput
from journeyman.store.confirmations import Confirmations
from journeyman.store.ledger import Ledger

if TYPE_CHECKING:
    from journeyman.confirm.running import Started

T = TypeVar("T")

_SETUP = "setup"


class Administration:
    """The everyday acts of who runs the service. `by` says in whose name something is done."""

    def __init__(
        self, confirmations: Confirmations, options: Options, clock: Callable[[], float]
    ) -> None:
        self._confirmations = confirmations
        self._options = options
        self._clock = clock
        self._anchor = Anchor(options.files / "confirm.anchor")

    def at(self, page_url: str) -> "Administration":
        """The same for a page at another address than the settings say."""
        options = replace(self._options, page_url=page_url)
        return Administration(self._confirmations, options, self._clock)

    def add_agent(self, name: str, owner: str = "", by: str = _SETUP) -> tuple[Credential, str]:
        """A token for an agent, shown this once. Its `owner` cannot approve what it asks for."""
        return self._write(lambda ledger: credentials.add_agent(ledger, name, by, owner))

    def add_approver(
        self, name: str, telegram_id: int | None = None, by: str = _SETUP
    ) -> tuple[Credential, str]:
        """A person who may decide, with the key to log in, shown this once."""
        return self._write(lambda ledger: credentials.add_approver(ledger, name, by, telegram_id))

    def credentials(self, kind: CredentialKind | None = None) -> Sequence[Credential]:
        """Agents and approvers, newest first, also those that were revoked."""
        return self._confirmations.credentials(kind)

    def revoke_credential(
        self, kind: CredentialKind, name_or_id: str, by: str = _SETUP
    ) -> Credential:
        """Take back an agent's token or an approver's account."""
        names = (
            one.name
            for one in self.credentials(kind)
            if one.revoked_at is None and name_or_id in (one.name, one.id)
        )
        name = next(names, name_or_id)
        return self._write(lambda ledger: credentials.revoke(ledger, kind, name, by))

    def login_link(self, name: str, by: str = _SETUP) -> str:
        """A link that logs an approver in once, within a quarter of an hour."""

        def note(ledger: Ledger) -> None:
            if ledger.find_credential("approver", name) is None:
                raise WrongInput(
                    f"There is no approver {name!r}. See: journeyman confirm approver list"
                )
            ledger.note("link_made", by, approver=name)

        self._write(note)
        return f"{self._options.shown_page_url}/open#{self._signing().login_link(name)}"

    def set_totp(self, name: str, by: str = _SETUP) -> tuple[str, str]:
        """A new secret for one-time codes, and the address that apps take it from."""
        _, secret = self._write(lambda ledger: credentials.set_totp(ledger, name, by))
        return secret, totp_url(secret, name)

    def list(
        self, *, status: ConfirmationStatus | None = None, limit: int | None = 50
    ) -> Sequence[Confirmation]:
        """Cards, newest first."""
        return self._confirmations.list(status=status, limit=limit)

    def policy(self, path: Path | None = None) -> Policy:
        """The policy in the file of the settings, or in another. Raises BadSetting."""
        limit = self._options.rate_limit
        if path is not None:
            return read_policy(path, rate_limit=limit)
        required = self._options.policy_required
        return PolicyFile(self._options.policy, rate_limit=limit, required=required).read()

    def verify_audit(self, anchor: str = "") -> Verified:
        """Whether the audit holds, against the noted head or against one that is given."""
        noted = read_head(anchor, "What was given") if anchor else self._anchor.read()
        return verify(self._confirmations, noted)

    def export_audit(self, format_: Format = "jsonl") -> Iterator[str]:
        """Every entry, oldest first, as the lines of a file."""
        return exported(self._confirmations.audit_texts(), format_)

    def reset_anchor(self, by: str = _SETUP) -> str:
        """Note the audit's head as it is now, and write down that this was done."""
        noted = self._anchor.read()
        before = "" if noted is None else f"{noted[0]}:{noted[1]}"
        self._write(lambda ledger: ledger.note("anchor_reset", by, before=before), checked=False)
        seq, digest = self._confirmations.audit_head()
        return f"{seq}:{digest}"

    def serve(
        self,
        told: Callable[["Started"], None] = lambda _: None,
        *,
        anonymous: bool = False,
    ) -> None:
        """Serve until Ctrl-C or a signal; `told` hears when both ports answer. Raises MissingPart
        when the parts for it are not installed.
        """
        from journeyman.confirm.running import Running  # noqa: PLC0415

        Running(self._confirmations, self, self._options, self._clock, anonymous=anonymous).serve(
            told
        )

    @contextmanager
    def served(self, *, terminal: TextIO | None = None) -> "Iterator[Started]":
        """Serve in a thread for as long as the block lasts: for programs that bring the service
        along, and for tests. Port 0 is any that is free. Raises as `serve` does.
        """
        from journeyman.confirm.running import Running  # noqa: PLC0415

        running = Running(self._confirmations, self, self._options, self._clock, terminal=terminal)
        with running.in_thread() as started:
            yield started

    def _signing(self) -> Signing:
        return Signing(read_key(self._options.files / "confirm.key"))

    def _write(self, work: Callable[[Ledger], T], *, checked: bool = True) -> T:
        if checked:
            anchored(self._confirmations, self._anchor.read(), self._anchor.path)
        with self._confirmations.writing(self._clock()) as ledger:
            result = work(ledger)
        if ledger.entries:
            last = ledger.entries[-1]
            self._anchor.write(last.seq, last.digest, lowers=not checked)
            self._anchor.close()
        return result
