"""One-time codes (TOTP): validity, clock drift and single use."""

import base64

from tests.tables import table

from journeyman.confirm.credentials import STEP_S, check_code

SECRET = base64.b32encode(b"12345678901234567890").decode()
KNOWN = [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")]
"""Times and codes from the appendix of RFC 6238, shortened to six digits."""


@table(("now", "code"), KNOWN)
def test_rfc_6238_codes_are_accepted(now: int, code: str) -> None:
    assert check_code(SECRET, code, now, -1) == now // STEP_S
    assert check_code(SECRET, f" {code[:3]} {code[3:]}\n", now, -1) == now // STEP_S


@table(("steps", "taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_clocks_may_differ_by_one_step(steps: int, taken: bool) -> None:
    now, code = KNOWN[1]
    found = check_code(SECRET, code, now + steps * STEP_S, -1)
    assert found == (now // STEP_S if taken else None)


def test_code_is_accepted_once() -> None:
    now, code = KNOWN[1]
    step = check_code(SECRET, code, now, 0)
    assert step is not None
    assert check_code(SECRET, code, now, step) is None
    assert check_code(SECRET, code, now + STEP_S, step) is None
    assert check_code(SECRET, code, now, step - 1) == step


@table("code", ["", "81804", "0081804", "08180x", "٠٨١٨٠٤", "-81804", "081805"], ids=ascii)
def test_wrong_codes_are_refused(code: str) -> None:
    assert check_code(SECRET, code, KNOWN[1][0], -1) is None
