"""Estimates the cost of a request from published prices, offline."""

import math
from datetime import UTC, datetime

from journeyman.records import Tokens


def estimated_cost(
    model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
) -> float | None:
    """Return the cost in US dollars of these tokens at the time `at`, or None if unknown. With a
    `base_url`, only that provider's price counts: the same model on a private server has none.
    Never raise.
    """
    if tokens.input_tokens is None or tokens.output_tokens is None:
        return None
    cached, stored = tokens.cache_read_tokens or 0, tokens.cache_write_tokens or 0
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - loads slowly

        price = calc_price(
            # genai-prices counts the whole prompt as input; Journeyman counts the cache separately.
            Usage(
                input_tokens=tokens.input_tokens + cached + stored,
                cache_read_tokens=cached,
                cache_write_tokens=stored,
                output_tokens=tokens.output_tokens,
            ),
            model,
            provider_api_url=base_url or None,
            genai_request_timestamp=None if at is None else datetime.fromtimestamp(at, UTC),
        )
        cost = float(price.total_price)
    # Unknown model or provider, impossible counts or times, or the package is not installed.
    except (LookupError, ValueError, ArithmeticError, OSError, ImportError):
        return None
    return cost if math.isfinite(cost) else None
