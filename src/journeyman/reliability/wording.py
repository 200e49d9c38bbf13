"""Rates and differences in words, the same in every sentence."""

from journeyman.reliability.differences import Difference
from journeyman.reliability.rates import Rate


def percent(rate: Rate) -> str:
    return "unknown" if rate.estimate is None else f"{100 * rate.estimate:.1f} %"


def errors_than(estimate: float, when: str = "") -> str:
    """How many more or fewer errors, up to the word before what it is compared with."""
    errors = f"errors {when}".rstrip()
    amount = _points(estimate)
    if amount == "0.0":
        return f"about as many {errors} as"
    unit = "percentage point" if amount == "1.0" else "percentage points"
    return f"{amount} {unit} {'fewer' if estimate < 0 else 'more'} {errors} than"


def span(difference: Difference) -> str:
    """The interval, said with fewer and more instead of signs; empty when it is not known."""
    low, high = difference.low, difference.high
    if low is None or high is None:
        return ""
    if high <= 0:
        return f"{_points(high)} to {_points(low)} points fewer"
    if low >= 0:
        return f"{_points(low)} to {_points(high)} points more"
    return f"{_points(low)} points fewer to {_points(high)} points more"


def missing(note: str) -> str:
    """What a note says is missing, for a sentence that already says that something is."""
    return note.removeprefix("not enough data: ")


def _points(value: float) -> str:
    return f"{100 * abs(value):.1f}"
