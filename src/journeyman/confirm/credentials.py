"""Tokens of agents, keys of approvers, sessions, and links that log in. Of secrets only digests are
stored.
"""

import hashlib
import re
import secrets
from typing import Any

from msgspec.structs import replace

from journeyman.confirm.schemas import LoggedIn
from journeyman.records.confirmation import Credential, CredentialKind, Refusal
from journeyman.records.errors import WrongInput
from journeyman.store.ledger import Ledger

SESSION_S = 12 * 3_600.0
LOGIN_LINK_S = 900

_PREFIXES: dict[CredentialKind, str] = {
    "agent": "jma_",
    "approver": "jmk_",
    "session": "jms_",
    "link": "jml_",
}
"""Prefixes by which people and scanners recognise a leaked secret."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_SETUP = "setup"
_RESERVED = frozenset(("anonymous", "policy", "service"))
_COMMANDS = {"agent": "token", "approver": "approver"}
_WRONG_LOGIN = Refusal("unauthenticated", "This name and key do not match.")


def actor_of(credential: Credential) -> str:
    """Return the name under which the audit records the holder of a credential."""
    kind = "agent" if credential.kind == "agent" else "approver"
    return f"{kind}:{credential.name}"


def may_decide(credential: Credential) -> bool:
    """Return whether the holder may decide: never an agent."""
    return credential.kind in ("approver", "session")


def approver_refusal(ledger: Ledger, by: Credential, operation: str) -> Refusal | None:
    """Return a refusal unless the holder is an approver who has not been revoked."""
    if may_decide(by) and ledger.find_credential("approver", by.name) is not None:
        return None
    return Refusal(
        "not_allowed",
        f"Only an approver can {operation}. An agent's token and a revoked approver cannot.",
    )


def is_name(name: str) -> bool:
    """Return whether an agent or an approver can have this name."""
    return bool(_NAME.fullmatch(name)) and name.casefold() not in _RESERVED


def secret_digest(secret: str) -> str:
    """Return what is stored of a secret. SHA-256 is enough: the secret is 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def session_secret(cookie: str, token: str) -> str:
    """Join the halves of a session secret. Browsers send cookies to every port, so the cookie alone
    is not enough.
    """
    return f"{cookie}.{token}"


def add_agent(
    ledger: Ledger, name: str, owner: str = "", by: str = _SETUP
) -> tuple[Credential, str]:
    """Add an agent and return its token, which is shown only once. Its `owner` cannot approve its
    requests. Raise WrongInput if the name is taken or not allowed.
    """
    if owner:
        _get_credential(ledger, "approver", owner)
    return _add(ledger, "agent", name, by, owner=owner)


def add_approver(
    ledger: Ledger, name: str, telegram_id: int | None = None, by: str = _SETUP
) -> tuple[Credential, str]:
    """Add a person who may decide and return the login key, which is shown only once. Raise
    WrongInput.
    """
    return _add(ledger, "approver", name, by, telegram_id=telegram_id)


def _add(
    ledger: Ledger, kind: CredentialKind, name: str, by: str, **fields: Any
) -> tuple[Credential, str]:
    if not is_name(name):
        raise WrongInput(
            f"{name!r} is not a valid name. Use up to 64 letters, digits and . _ @ - "
            f"(not {', '.join(sorted(_RESERVED))})."
        )
    for other in ("agent", "approver"):
        if ledger.find_credential(other, name) is not None:
            raise WrongInput(
                f"There already is an {other} named {name!r}. Use another name, or revoke it: "
                f"journeyman confirm {_COMMANDS[other]} revoke {name}"
            )
    secret = _new_secret(kind)
    added = _store(ledger, kind, name, secret, **fields)
    ledger.note("credential_made", by, credential=added.id, kind=kind, name=name, owner=added.owner)
    return added, secret


def _new_secret(kind: CredentialKind) -> str:
    return _PREFIXES[kind] + secrets.token_urlsafe(32)


def _store(
    ledger: Ledger, kind: CredentialKind, name: str, secret: str, **fields: Any
) -> Credential:
    id_ = secrets.token_hex(8)
    credential = Credential(id=id_, kind=kind, name=name, created_at=ledger.now, **fields)
    ledger.add(credential, secret_digest=secret_digest(secret))
    return credential


def revoke(ledger: Ledger, kind: CredentialKind, name: str, by: str = _SETUP) -> Credential:
    """Revoke a credential, and with an approver's key their sessions and links."""
    revoked = replace(_get_credential(ledger, kind, name), revoked_at=ledger.now)
    ledger.save(revoked)
    if kind == "approver":
        ledger.revoke_sessions(revoked.name)
    ledger.note("credential_revoked", by, credential=revoked.id, kind=kind, name=revoked.name)
    return revoked


def add_link(ledger: Ledger, name: str, by: str = _SETUP) -> str:
    """Return the secret of a link that logs an approver in once, within 15 minutes."""
    approver, secret = _get_credential(ledger, "approver", name).name, _new_secret("link")
    _store(ledger, "link", approver, secret, expires_at=ledger.now + LOGIN_LINK_S)
    ledger.note("link_made", by, approver=approver)
    return secret


def _get_credential(ledger: Ledger, kind: CredentialKind, name: str) -> Credential:
    credential = ledger.find_credential(kind, name)
    if credential is None:
        raise WrongInput(
            f"There is no {kind} {name!r}, or it was revoked. "
            f"List them with: journeyman confirm {_COMMANDS[kind]} list"
        )
    return credential


def log_in(ledger: Ledger, name: str, key: Credential | None) -> LoggedIn | Refusal:
    """Open a session for the approver with this key. The server records refused logins."""
    is_right = key is not None and key.kind == "approver" and key.name == name
    return _open_session(ledger, name, "key") if is_right else _WRONG_LOGIN


def open_link(ledger: Ledger, link: Credential | None) -> LoggedIn | Refusal:
    """Open a session for the approver of a one-time link."""
    if link is None or not ledger.spend_link(link.id):
        return Refusal(
            "unauthenticated",
            "This link was already used, has expired, or is not valid. Log in with your name and "
            "key instead.",
        )
    return _open_session(ledger, link.name, "link")


def _open_session(ledger: Ledger, name: str, how: str) -> LoggedIn | Refusal:
    if ledger.find_credential("approver", name) is None:
        return _WRONG_LOGIN
    cookie, token = _new_secret("session"), secrets.token_urlsafe(32)
    secret, ends = session_secret(cookie, token), ledger.now + SESSION_S
    session = _store(ledger, "session", name, secret, expires_at=ends)
    ledger.note("logged_in", actor_of(session), session=session.id, how=how)
    return LoggedIn(credential=session, secret=cookie, csrf=token)


def log_out(ledger: Ledger, session: Credential) -> None:
    """End a session; tokens and keys stay valid."""
    if session.kind == "session":
        ledger.save(replace(session, revoked_at=ledger.now))
        ledger.note("logged_out", actor_of(session), session=session.id)
