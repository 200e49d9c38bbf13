"""How much of time and text the tools of a workspace may use."""

from msgspec import Struct


class ToolLimits(Struct, frozen=True, kw_only=True):
    """The limits of one agent's tools. `timeout_s` is what a command gets when it asks for no time
    of its own, `longest_s` the most it can ask for.
    """

    timeout_s: float = 60.0
    longest_s: float = 600.0
    search_s: float = 20.0
    output_characters: int = 20_000
    read_lines: int = 500
    read_characters: int = 50_000
    matches: int = 50

    @property
    def timeout_parameter(self) -> dict[str, object]:
        """The schema of the parameter with which a call asks for time."""
        about = f"Seconds it may take (default {self.timeout_s:g}, most {self.longest_s:g})."
        return {"type": "number", "exclusiveMinimum": 0, "description": about}

    def allowed_s(self, asked: float | None) -> float:
        """The time a command gets that asked for this much."""
        return self.timeout_s if asked is None else min(asked, self.longest_s)
