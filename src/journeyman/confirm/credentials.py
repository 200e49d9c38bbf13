"""Agents' tokens, approvers' keys and one-time codes, sessions, and links into the page that are
signed with a key in the home. Of secrets only digests are kept.
"""

import hashlib
import hmac
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyotp
from itsdangerous import BadData, URLSafeTimedSerializer
from msgspec import Struct
from msgspec.structs import asdict, replace

from journeyman.confirm.schemas import LoggedIn
from journeyman.records.confirmation import Credential, CredentialKind, Refusal
from journeyman.records.errors import OutsideProblem, WrongInput
from journeyman.store.confirmations import Ledger

SESSION_S = 12 * 3_600.0
VIEWING_S = 3_600.0
LOGIN_LINK_S = 900
CARD_LINK_S = 3_600

_PREFIXES: dict[CredentialKind, str] = {"agent": "jma_", "approver": "jmk_", "session": "jms_"}
"""So that a secret in the wrong place is recognised, by people and by scanners."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
STEP_S = 30
_STEPS_AROUND = 1
"""Steps before and after the present one that are taken too, because clocks differ."""
_SETUP = "setup"
_RESERVED = frozenset(("anonymous", "policy", "service"))
_COMMANDS = {"agent": "token", "approver": "approver"}
_WRONG_LOGIN = Refusal("unauthenticated", "This name and key do not fit together.")


def actor_of(credential: Credential) -> str:
    """How the audit names who did something."""
    kind = "agent" if credential.kind == "agent" else "approver"
    return f"{kind}:{credential.name}"


def may_decide(credential: Credential) -> bool:
    """An agent's credential never may, nor a link that only opens one card."""
    return credential.kind in ("approver", "session") and not credential.view_only


def objection_to(ledger: Ledger, by: Credential, what: str) -> Refusal | None:
    """Why somebody may not do what only an approver may, who is still one."""
    if may_decide(by) and ledger.find_credential("approver", by.name) is not None:
        return None
    return Refusal(
        "not_allowed",
        f"Only an approver can {what}: not an agent's token, not a link that opens one card, and "
        "nobody who was an approver.",
    )


def is_name(name: str) -> bool:
    """Whether an agent or an approver can have this name."""
    return bool(_NAME.fullmatch(name)) and name.casefold() not in _RESERVED


def secret_digest(secret: str) -> str:
    """What is kept of a secret. Plain SHA-256 will do: the secret is 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def session_secret(cookie: str, token: str) -> str:
    """Both halves of a secret: browsers send cookies to every port, so one alone is nothing."""
    return f"{cookie}.{token}"


def add_agent(
    ledger: Ledger, name: str, owner: str = "", by: str = _SETUP
) -> tuple[Credential, str]:
    """A token for an agent, shown this once. Its `owner` cannot approve what it asks for. Raises
    WrongInput when the name is taken or cannot be one.
    """
    if owner:
        _needed(ledger, "approver", owner)
    return _add(ledger, "agent", name, by, owner=owner)


def add_approver(
    ledger: Ledger, name: str, telegram_id: int | None = None, by: str = _SETUP
) -> tuple[Credential, str]:
    """A person who may decide, with the key to log in, shown this once. Raises WrongInput."""
    return _add(ledger, "approver", name, by, telegram_id=telegram_id)


def _add(
    ledger: Ledger, kind: CredentialKind, name: str, by: str, **facts: Any
) -> tuple[Credential, str]:
    if not is_name(name):
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
    secret = _secret(kind)
    made = _kept(ledger, kind, name, secret, **facts)
    ledger.note("credential_made", by, credential=made.id, kind=kind, name=name, owner=made.owner)
    return made, secret


def _secret(kind: CredentialKind) -> str:
    return _PREFIXES[kind] + secrets.token_urlsafe(32)


def _kept(ledger: Ledger, kind: CredentialKind, name: str, secret: str, **facts: Any) -> Credential:
    id_ = secrets.token_hex(8)
    credential = Credential(id=id_, kind=kind, name=name, created_at=ledger.now, **facts)
    ledger.add(credential, secret_digest=secret_digest(secret))
    return credential


def revoke(ledger: Ledger, kind: CredentialKind, name: str, by: str = _SETUP) -> Credential:
    """Take a credential back, and the approver's sessions with it."""
    gone = replace(_needed(ledger, kind, name), revoked_at=ledger.now)
    ledger.save(gone, totp_secret="")
    if kind == "approver":
        ledger.revoke_sessions(gone.name)
    ledger.note("credential_revoked", by, credential=gone.id, kind=kind, name=gone.name)
    return gone


def note_login_link(ledger: Ledger, name: str, by: str) -> None:
    """Write down that a link was made that logs an approver in."""
    ledger.note("link_made", by, approver=_needed(ledger, "approver", name).name)


def _needed(ledger: Ledger, kind: CredentialKind, name: str) -> Credential:
    known = ledger.find_credential(kind, name)
    if known is None:
        raise WrongInput(
            f"There is no {kind} {name!r}, or it was revoked. "
            f"See who there is: journeyman confirm {_COMMANDS[kind]} list"
        )
    return known


def log_in(ledger: Ledger, name: str, known: Credential | None) -> LoggedIn | Refusal:
    """A session for the approver whose key was given. Who is turned away the door writes down."""
    is_right = known is not None and known.kind == "approver" and known.name == name
    return _open_session(ledger, name, "key") if is_right else _WRONG_LOGIN


def open_link(ledger: Ledger, link: "Link | None") -> LoggedIn | Refusal:
    """A session for the approver of a one-time link, or one that only looks at its card."""
    if link is None or not ledger.spend_link(link.nonce):
        return Refusal(
            "unauthenticated",
            "This link was used already, is too old, or is not one of ours. Log in "
            "with your name and key instead.",
        )
    if link.approver:
        return _open_session(ledger, link.approver, "link")
    opened = _session(ledger, "link", VIEWING_S, view_only=link.confirmation)
    ledger.note("link_opened", "link", link.confirmation, session=opened.credential.id)
    return opened


def _open_session(ledger: Ledger, name: str, how: str) -> LoggedIn | Refusal:
    known = ledger.find_credential("approver", name)
    if known is None:
        return _WRONG_LOGIN
    opened = _session(ledger, name, SESSION_S, has_totp=known.has_totp)
    ledger.note("logged_in", actor_of(opened.credential), session=opened.credential.id, how=how)
    return opened


def _session(ledger: Ledger, name: str, lasts_s: float, **facts: Any) -> LoggedIn:
    cookie, token = _secret("session"), secrets.token_urlsafe(32)
    facts["expires_at"] = ledger.now + lasts_s
    session = _kept(ledger, "session", name, session_secret(cookie, token), **facts)
    return LoggedIn(credential=session, secret=cookie, csrf=token)


def log_out(ledger: Ledger, session: Credential) -> None:
    """End a session; a token or a key stays."""
    if session.kind == "session":
        ledger.save(replace(session, revoked_at=ledger.now))
        ledger.note("logged_out", actor_of(session), session=session.id)


def set_totp(ledger: Ledger, name: str, by: str = _SETUP) -> tuple[str, str]:
    """The secret of a new device for one-time codes, and the address that programs for codes take
    it from; the device before stops working.
    """
    secret = pyotp.random_base32()
    credential = replace(_needed(ledger, "approver", name), has_totp=True)
    ledger.save(credential, totp_secret=secret, totp_step=0)
    ledger.note("credential_made", by, credential=credential.id, kind="totp", name=name)
    codes = pyotp.TOTP(secret, interval=STEP_S)
    return secret, codes.provisioning_uri(name=name, issuer_name="Journeyman")


def check_code(secret: str, code: str, now: float, last_step: int) -> int | None:
    """The step of a code, to be kept as the next `last_step`; None for a wrong or used one."""
    given = "".join(code.split()).encode("utf-8", "replace")
    codes = pyotp.TOTP(secret, interval=STEP_S)
    present = int(now // STEP_S)
    around = range(max(present - _STEPS_AROUND, 0), present + _STEPS_AROUND + 1)
    # Every step is compared, whether one was found or not: how long it takes tells nothing.
    right = [hmac.compare_digest(codes.generate_otp(step).encode(), given) for step in around]
    fresh = (step for step, is_right in zip(around, right, strict=True) if is_right)
    return max((step for step in fresh if step > last_step), default=None)


class Link(Struct, frozen=True, kw_only=True):
    """What a link opens: the page for an approver, or one card to look at."""

    nonce: str
    approver: str = ""
    confirmation: str = ""


class Signing:
    """Makes and reads what is signed with one key."""

    def __init__(self, key: str) -> None:
        how = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}
        self._links = URLSafeTimedSerializer(key, salt="journeyman.link", signer_kwargs=how)
        self._key = key.encode()

    def button_key(self) -> bytes:
        """The key for the buttons of a chat, so that they need not know the service's own."""
        return hashlib.sha256(b"journeyman.button:" + self._key).digest()

    def login_link(self, approver: str) -> str:
        return self._link(approver=approver)

    def card_link(self, confirmation: str) -> str:
        return self._link(confirmation=confirmation)

    def _link(self, **opens: str) -> str:
        return str(self._links.dumps(asdict(Link(nonce=secrets.token_hex(16), **opens))))

    def read_link(self, token: str) -> Link | None:
        """What a link opens, or None when it is not ours or too old."""
        try:
            link = Link(**self._links.loads(token, max_age=CARD_LINK_S))
            if link.approver:
                self._links.loads(token, max_age=LOGIN_LINK_S)
        except (BadData, TypeError):  # the latter for a link of another version
            return None
        return link


def read_key(path: Path) -> str:
    """The key in this file, which is made when it is not there, for its owner alone."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Written aside and linked into place: nobody reads half a key, and the first one stays.
            with tempfile.NamedTemporaryFile(dir=path.parent) as aside:
                aside.write(secrets.token_hex(32).encode())
                aside.flush()
                with suppress(FileExistsError):
                    path.hardlink_to(aside.name)
        key, problem = path.read_text(encoding="ascii").strip(), "it is too short"
    except (OSError, UnicodeDecodeError) as error:
        key, problem = "", str(error)
    if len(key) < 64:
        raise OutsideProblem(
            f"The key {path} for links cannot be read or made: {problem}. Mend its rights, or "
            "move it away: a new one is made, and open links end."
        )
    return key
