"""What a row of the login tables is."""

from typing import NamedTuple


class Login(NamedTuple):
    """A form in which a program, an address or a call takes a secret: the only group. `gate`
    stands in every text that the pattern fits; `must_look` is "random" where the form has other
    uses too, and "basic" for user and password in base64.
    """

    id: str
    gate: str
    pattern: str
    example: str
    reason: str
    family: str = "password"
    must_look: str = ""
