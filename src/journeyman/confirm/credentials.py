"""Who may do what: agents' tokens, approvers' keys, and the sessions of approvers in a browser. A
secret is shown once, when it is made; what is kept is its digest.
"""

import hashlib
import re
import secrets

from msgspec.structs import replace

from journeyman.confirm.answers import LoggedIn
from journeyman.confirm.deciding import actor_of
from journeyman.confirm.second_factor import new_secret
from journeyman.records.confirmation import Credential, CredentialKind, Refusal
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger

SESSION_S = 12 * 3_600.0
VIEWING_S = 3_600.0

_PREFIXES: dict[CredentialKind, str] = {"agent": "jma_", "approver": "jmk_", "session": "jms_"}
"""So that a secret in the wrong place is recognised, by people and by scanners."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_RESERVED = frozenset(("anonymous", "policy", "service"))
_WRONG_LOGIN = Refusal(code="unauthenticated", message="This name and key do not fit together.")


def secret_digest(secret: str) -> str:
    """What is kept of a secret. Plain SHA-256 will do: the secret is 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def session_secret(cookie: str, token: str) -> str:
    """A session's secret: the half in the cookie and the half that the page keeps. Browsers send a
    cookie to every port of this machine, so the cookie alone must be worth nothing.
    """
    return f"{cookie}.{token}"


def add_agent(ledger: Ledger, name: str, by: str, owner: str = "") -> tuple[Credential, str]:
    """A token for an agent. Raises WrongInput when the name is taken or cannot be one."""
    if owner and ledger.find_credential("approver", owner) is None:
        raise WrongInput(
            f"There is no approver {owner!r} to own the token. "
            "See who there is: journeyman confirm approver list"
        )
    return _add(ledger, "agent", name, by, owner=owner)


def add_approver(
    ledger: Ledger, name: str, by: str, telegram_id: int | None = None
) -> tuple[Credential, str]:
    """An approver's account. Raises WrongInput when the name is taken or cannot be one."""
    return _add(ledger, "approver", name, by, telegram_id=telegram_id)


def revoke(ledger: Ledger, kind: CredentialKind, name: str, by: str) -> Credential:
    """Take a credential back, and the approver's sessions with it."""
    known = ledger.find_credential(kind, name)
    if known is None:
        raise WrongInput(
            f"There is no {kind} {name!r}, or it was revoked. "
            f"See who there is: journeyman confirm {_COMMANDS[kind]} list"
        )
    gone = replace(known.credential, revoked_at=ledger.now)
    ledger.save_credential(gone, totp_secret="")
    if kind == "approver":
        ledger.revoke_sessions(name)
    ledger.note("credential_revoked", by, credential=gone.id, kind=kind, name=name)
    return gone


def set_totp(ledger: Ledger, name: str, by: str) -> tuple[Credential, str]:
    """A new device for one-time codes; the one before stops working."""
    known = ledger.find_credential("approver", name)
    if known is None:
        raise WrongInput(f"There is no approver {name!r}. See: journeyman confirm approver list")
    secret = new_secret()
    credential = replace(known.credential, has_totp=True)
    ledger.save_credential(credential, totp_secret=secret)
    ledger.use_totp_step(credential.id, 0)
    ledger.note("credential_made", by, credential=credential.id, kind="totp", name=name)
    return credential, secret


def log_in(ledger: Ledger, name: str, known: Credential | None) -> LoggedIn | Refusal:
    """A session for the approver whose key was given. Who is turned away is for the door to write
    down: it knows how many there were.
    """
    if known is None or known.kind != "approver" or known.name != name:
        return _WRONG_LOGIN
    return open_session(ledger, name, "key")


def open_session(ledger: Ledger, name: str, how: str) -> LoggedIn | Refusal:
    """A session for an approver who proved who they are."""
    known = ledger.find_credential("approver", name)
    if known is None:
        return _WRONG_LOGIN
    opened = _session(ledger, name, has_totp=known.credential.has_totp)
    ledger.note("logged_in", actor_of(opened.credential), session=opened.credential.id, how=how)
    return opened


def open_viewing(ledger: Ledger, confirmation: str) -> LoggedIn:
    """A session that may look at one card and do nothing else."""
    opened = _session(ledger, "link", view_only=confirmation)
    ledger.note("link_opened", "link", confirmation, session=opened.credential.id)
    return opened


def log_out(ledger: Ledger, session: Credential) -> None:
    ledger.save_credential(replace(session, revoked_at=ledger.now))
    ledger.note("logged_out", actor_of(session), session=session.id)


_COMMANDS: dict[CredentialKind, str] = {
    "agent": "token",
    "approver": "approver",
    "session": "approver",
}


def _session(ledger: Ledger, name: str, *, has_totp: bool = False, view_only: str = "") -> LoggedIn:
    lasts = VIEWING_S if view_only else SESSION_S
    session = Credential(
        id=secrets.token_hex(8),
        kind="session",
        name=name,
        has_totp=has_totp,
        created_at=ledger.now,
        expires_at=ledger.now + lasts,
        view_only=view_only,
    )
    cookie, token = _secret("session"), secrets.token_urlsafe(32)
    ledger.add_credential(session, secret_digest(session_secret(cookie, token)))
    return LoggedIn(credential=session, secret=cookie, csrf=token)


def _add(
    ledger: Ledger,
    kind: CredentialKind,
    name: str,
    by: str,
    *,
    owner: str = "",
    telegram_id: int | None = None,
) -> tuple[Credential, str]:
    if not _NAME.fullmatch(name) or name.casefold() in _RESERVED:
        raise WrongInput(
            f"{name!r} cannot be a name: use up to 64 letters, digits and . _ @ - "
            f"(not {', '.join(sorted(_RESERVED))})."
        )
    for other in ("agent", "approver"):
        if ledger.find_credential(other, name) is not None:
            raise WrongInput(
                f"There is an {other} named {name!r} already. Take another name, or revoke it: "
                f"journeyman confirm {_COMMANDS[other]} revoke {name}"
            )
    credential = Credential(
        id=secrets.token_hex(8),
        kind=kind,
        name=name,
        owner=owner,
        telegram_id=telegram_id,
        created_at=ledger.now,
    )
    secret = _secret(kind)
    ledger.add_credential(credential, secret_digest(secret))
    ledger.note("credential_made", by, credential=credential.id, kind=kind, name=name, owner=owner)
    return credential, secret


def _secret(kind: CredentialKind) -> str:
    return _PREFIXES[kind] + secrets.token_urlsafe(32)
