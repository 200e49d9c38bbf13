"""Bugs that are put into the `invoicer` project for scripted agents to find and fix.

Each is a row: which line is broken, which test notices, and what an agent would say about it.
"""

from msgspec import Struct


class Bug(Struct, frozen=True, kw_only=True):
    """`good` becomes `bad` in a module; fixing it is the way back. `clumsy` is a text of the
    module that a careless edit would look for: not there, or there more than once.
    """

    module: str
    good: str
    bad: str
    test: str
    report: str
    cause: str
    clumsy: str


BUGS: dict[str, Bug] = {
    "lost cents": Bug(
        module="money",
        good="    return [share + 1] * rest + [share] * (parts - rest)\n",
        bad="    return [share] * parts\n",
        test="test_split_keeps_every_cent",
        report="Splitting 10.00 among three people gives 3.33 three times. A cent is gone.",
        cause="the remainder of the division is computed and then never handed out",
        clumsy="    return [share for _ in range(parts)]\n",
    ),
    "lost sign": Bug(
        module="money",
        good="    return sign * cents\n",
        bad="    return cents\n",
        test="test_negative_amount",
        report="Credit notes come out positive: an amount of -3.50 is booked as 3.50.",
        cause="the sign is taken off before parsing and never put back",
        clumsy="    cents = sign * cents\n    return cents\n",
    ),
    "short year": Bug(
        module="dates",
        good="    if day.month == 12:\n        return date(day.year, 12, 31)\n",
        bad="    if day.month == 12:\n        return date(day.year, 12, 30)\n",
        test="test_december",
        report="Invoices with terms 'end of month' in December are due on the 30th.",
        cause="the special case for December returns the 30th",
        clumsy="date(day.year",
    ),
    "early is late": Bug(
        module="dates",
        good="    return max(0, (today - due).days)\n",
        bad="    return abs((today - due).days)\n",
        test="test_not_yet_due_is_not_late",
        report="Customers get reminders for invoices that are not due yet.",
        cause="the absolute value makes an early date look late",
        clumsy="    return abs((today - due).total_days)\n",
    ),
    "zero is a rate": Bug(
        module="tax",
        good="    return rates.get(category, rates[STANDARD])\n",
        bad="    return rates.get(category) or rates[STANDARD]\n",
        test="test_zero_rate_is_a_rate",
        report="Irish food invoices show 23 % tax. Food is zero-rated there.",
        cause="a rate of 0 is falsy, so `or` falls through to the standard rate",
        clumsy="rates[STANDARD]\n\n\ndef tax_on(net, rate):",
    ),
    "rounded too soon": Bug(
        module="tax",
        good="        sums[rate] = sums.get(rate, 0) + line.net\n"
        "    return {rate: tax_on(net, rate) for rate, net in sorted(sums.items())}\n",
        bad="        sums[rate] = sums.get(rate, 0) + tax_on(line.net, rate)\n"
        "    return dict(sorted(sums.items()))\n",
        test="test_added_up_before_rounding",
        report="Tax on long invoices is off by a few cents against the accountants' sheet.",
        cause="tax is rounded on every line and then added up",
        clumsy="rate",
    ),
    "whole hours": Bug(
        module="lines",
        good='    return int(whole or "0") * 1000 + int(fraction.ljust(3, "0") or "0")\n',
        bad='    return int(whole or "0") * 1000\n',
        test="test_half",
        report="7.5 hours of support are invoiced as 7.",
        cause="the fraction is parsed and then dropped",
        clumsy="    return int(whole) * 1000\n",
    ),
    "thirty days": Bug(
        module="report",
        good="        if late <= limit:\n",
        bad="        if late < limit:\n",
        test="test_thirty_days_is_the_first_bucket",
        report="The ageing report puts invoices due today under '1-30 days'.",
        cause="the buckets include their limit, but the comparison leaves it out",
        clumsy="        if late < limits:\n",
    ),
    "narrow table": Bug(
        module="report",
        good="    return [max(len(str(row[n])) for row in [header, *rows]) for n in "
        "range(len(header))]\n",
        bad="    return [max(len(str(row[n])) for row in rows) for n in range(len(header))]\n",
        test="test_widths_include_the_header",
        report="Tables are crooked when a heading is longer than the cells below it.",
        cause="the header is not looked at when the widths are computed",
        clumsy="widths",
    ),
}
