"""What a request would cost by the published price list: an offline estimate, or unknown."""

import math
from datetime import UTC, datetime

from journeyman.records import Tokens


def estimated_cost(
    model: str, tokens: Tokens, *, base_url: str = "", at: float | None = None
) -> float | None:
    """The price in dollars of what was used, at the time `at`, or None. With an address, only the
    provider behind it sets the price: the same model on a server of one's own has none. Never
    raises.
    """
    if tokens.input_tokens is None or tokens.output_tokens is None:
        return None
    cached, stored = tokens.cache_read_tokens or 0, tokens.cache_write_tokens or 0
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - loads slowly

        price = calc_price(
            # There the input is the whole prompt; with us the cache is counted apart.
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
    # No such model or provider; counts or a time that make no sense; the list is not installed.
    except (LookupError, ValueError, ArithmeticError, OSError, ImportError):
        return None
    return cost if math.isfinite(cost) else None
