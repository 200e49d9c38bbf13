"""The second factor of an approver: codes of six digits that change every thirty seconds (TOTP).
Where the secret and the last step are kept is for the ledger.
"""

import hmac

import pyotp

STEP_S = 30
_AROUND = 1
"""Steps before and after the present one that are taken too, because clocks differ."""
_ISSUER = "Journeyman"


def new_secret() -> str:
    return pyotp.random_base32()


def totp_url(secret: str, name: str) -> str:
    """What a program for codes reads from a picture or a link."""
    return pyotp.TOTP(secret, interval=STEP_S).provisioning_uri(name=name, issuer_name=_ISSUER)


def check_code(secret: str, code: str, now: float, last_step: int) -> int | None:
    """The step that a code is for, to be kept as the next `last_step`; None for a wrong code, and
    for one of a step that was already used.
    """
    given = "".join(code.split())
    if not (len(given) == 6 and given.isascii() and given.isdigit()):
        return None
    codes = pyotp.TOTP(secret, interval=STEP_S)
    present = int(now // STEP_S)
    accepted = None
    for step in range(max(present - _AROUND, 0), present + _AROUND + 1):
        # Every step is compared, whether one was found or not: how long it takes tells nothing.
        right = hmac.compare_digest(codes.generate_otp(step), given)
        if right and step > last_step:
            accepted = step
    return accepted
