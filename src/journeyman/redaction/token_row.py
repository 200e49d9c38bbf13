"""What a row of the token tables is."""

from typing import NamedTuple


class Token(NamedTuple):
    """A family of tokens. `gate` stands in every text that the pattern fits; `hint` is a
    quick pattern to try first where the gate is common. Lengths are lower than
    the real ones, because recorded results are cut. Examples are made by formula, so that no
    scanner takes them for real.
    """

    family: str
    gate: str
    pattern: str
    example: str
    reason: str
    hint: str = ""
