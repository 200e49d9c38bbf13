"""Token usage: one row for one model answer, or one sum where the recorder keeps only sums."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Tokens and cost as recorded; None where the recorder said nothing, which is not zero.

    `input_tokens` leaves out what the cache served or stored: the prompt was
    input + cache_read + cache_write. `output_tokens` includes `reasoning_tokens`. `task` is empty
    for the conversation itself and names side work (compression, titles, background review).
    """

    key: str
    model: str = ""
    task: str = ""
    at: float | None = None
    api_calls: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    cost_origin: str = ""


class Tokens(Struct, frozen=True, kw_only=True):
    """Usage added up; a sum over nothing known is None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int | None:
        """Prompt and answer together, or None when neither is known."""
        parts = (
            self.input_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.output_tokens,
        )
        known = [part for part in parts if part is not None]
        return sum(known) if known else None
