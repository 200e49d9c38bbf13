"""What the service signs: one-time links into the page, and the grants of redeemed approvals. The
key is a file in the home that only its owner can read.
"""

import hashlib
import os
import secrets
from pathlib import Path

from itsdangerous import BadData, URLSafeSerializer, URLSafeTimedSerializer
from msgspec import Struct

from journeyman.records.confirmation import Confirmation
from journeyman.records.errors import OutsideProblem

LOGIN_LINK_S = 900
CARD_LINK_S = 3_600


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
        self._grants = URLSafeSerializer(key, salt="journeyman.grant", signer_kwargs=how)
        self._key = key.encode()

    def button_key(self) -> bytes:
        """The key for the buttons of a chat, so that they need not know the service's own."""
        return hashlib.sha256(b"journeyman.button:" + self._key).digest()

    def login_link(self, approver: str) -> str:
        return str(self._links.dumps({"n": secrets.token_hex(16), "a": approver}))

    def card_link(self, confirmation: str) -> str:
        return str(self._links.dumps({"n": secrets.token_hex(16), "c": confirmation}))

    def read_link(self, token: str) -> Link | None:
        """What a link opens, or None when it is not ours or too old."""
        try:
            found = self._links.loads(token, max_age=CARD_LINK_S)
            if found.get("a"):
                found = self._links.loads(token, max_age=LOGIN_LINK_S)
        except BadData:
            return None
        return Link(nonce=found["n"], approver=found.get("a", ""), confirmation=found.get("c", ""))

    def grant(self, card: Confirmation) -> str:
        """The signed word that this was approved and is now used up."""
        return str(
            self._grants.dumps(
                {"id": card.id, "digest": card.digest, "redeemed_at": card.redeemed_at}
            )
        )


def read_key(path: Path) -> str:
    """The key in this file, which is made when it is not there."""
    try:
        if not path.exists():
            _make_key(path)
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OutsideProblem(
            f"The key {path} for links and grants cannot be read or made: {error}. Mend its "
            "rights, or move it away: a new one is made, and open links end."
        ) from error
    if len(key) < 64:
        raise OutsideProblem(
            f"The key {path} is too short to be one. Move it away: a new one is made, and open "
            "links end."
        )
    return key


def _make_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Written aside and linked into place: nobody reads half a key, and the first one stays.
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, secrets.token_hex(32).encode())
    finally:
        os.close(descriptor)
    try:
        path.hardlink_to(aside)
    except FileExistsError:
        return
    finally:
        aside.unlink()
