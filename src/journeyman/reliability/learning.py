"""Whether an agent gets better inside its sessions: late calls against early ones, and later uses
of a tool against the first. Reads come early and writes late, so only calls of the same tool are
compared; the crude figure stands beside it because people expect it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from journeyman.records.verdict import JudgedCall, JudgedSession
from journeyman.reliability.bootstrap import SEED, SessionTable, bootstrap_difference
from journeyman.reliability.clusters import MIN_SESSIONS, distinct
from journeyman.reliability.differences import Difference
from journeyman.reliability.rates import Rate, wilson
from journeyman.reliability.wording import errors_than, missing, span

SHARE = 0.2
MIN_CALLS = 5
"""A session with fewer calls that count has no early and no late part."""

_LONG_ENOUGH = f"at least {MIN_CALLS} calls that count"
_IN_BOTH_PARTS = "calls of a tool that is used early and late"
_USED_AGAIN = "calls of a tool that is used again"
_CRUDE = "bootstrap over sessions 95 %"
_BY_TOOL = "Mantel-Haenszel by tool, bootstrap over sessions 95 %"


class Learning(Struct, frozen=True, kw_only=True):
    """Early against late, and first against later use. Differences are late minus early and later
    minus first, so negative is improvement.

    `sessions` counts those that have an early and a late part, `strata` the tools used in both;
    `used` is the share of the early and late calls that these tools have.
    """

    share: float
    sessions: int
    early: Rate
    late: Rate
    crude: Difference
    stratified: Difference
    strata: int
    used: float | None
    first: Rate
    later: Rate
    first_later: Difference
    reading: str


def learning(
    sessions: Sequence[JudgedSession], *, share: float = SHARE, seed: int = SEED
) -> Learning:
    """Late calls against early ones, each `share` of a session (0.5 for halves)."""
    if not 0 < share <= 0.5:
        raise ValueError(f"the share of a session must be above 0 and at most 0.5, not {share}")
    counted = [
        [call for call in session.calls if call.verdict.counts] for session in distinct(sessions)
    ]
    parts = [_table(_parts(calls, share)) for calls in counted if len(calls) >= MIN_CALLS]
    uses = [_table(_uses(calls)) for calls in counted if calls]
    alike, used_again = _in_both(parts), _in_both(uses)
    late, early = _rates(parts)
    later, first = _rates(uses)
    crude = bootstrap_difference(
        [_summed(table) for table in parts], method=_CRUDE, having=_LONG_ENOUGH, seed=seed
    )
    enough = len(parts) >= MIN_SESSIONS
    stratified = bootstrap_difference(
        alike, method=_BY_TOOL, having=_IN_BOTH_PARTS if enough else _LONG_ENOUGH, seed=seed
    )
    calls = early.total + late.total
    return Learning(
        share=share,
        sessions=len(parts),
        early=early,
        late=late,
        crude=crude,
        stratified=stratified,
        strata=len({tool for table in alike for tool in table}),
        used=sum(_calls(table) for table in alike) / calls if calls else None,
        first=first,
        later=later,
        first_later=bootstrap_difference(
            used_again, method=_BY_TOOL, having=_USED_AGAIN if uses else "calls", seed=seed
        ),
        reading=_reading(crude, stratified),
    )


def _parts(calls: Sequence[JudgedCall], share: float) -> Iterator[tuple[JudgedCall, bool]]:
    """The late calls, marked True, and the early ones."""
    size = min(max(1, round(share * len(calls))), len(calls) // 2)
    yield from ((call, True) for call in calls[-size:])
    yield from ((call, False) for call in calls[:size])


def _uses(calls: Iterable[JudgedCall]) -> Iterator[tuple[JudgedCall, bool]]:
    """The later uses of each tool, marked True, and the first.

    A tool used once counts too. Agents try again after an error, so among tools used again the
    first use failed more often, and any agent would seem to learn.
    """
    seen = set()
    for call in calls:
        yield call, call.tool in seen
        seen.add(call.tool)


def _table(marked: Iterable[tuple[JudgedCall, bool]]) -> SessionTable:
    errors: Counter[tuple[str, bool]] = Counter()
    calls: Counter[tuple[str, bool]] = Counter()
    for call, is_first_side in marked:
        calls[call.tool, is_first_side] += 1
        errors[call.tool, is_first_side] += call.verdict.is_error
    return {
        tool: (errors[tool, True], calls[tool, True], errors[tool, False], calls[tool, False])
        for tool in dict.fromkeys(tool for tool, _ in calls)
    }


def _summed(table: SessionTable) -> SessionTable:
    one, two, three, four = (sum(column) for column in zip(*table.values(), strict=True))
    return {"": (one, two, three, four)}


def _calls(table: SessionTable) -> int:
    return sum(row[1] + row[3] for row in table.values())


def _in_both(tables: Sequence[SessionTable]) -> list[SessionTable]:
    """The tables, with only the tools that have calls on both sides, in whatever sessions."""
    sides = [{tool for table in tables for tool in table if table[tool][at]} for at in (1, 3)]
    both = sides[0] & sides[1]
    kept = ({tool: row for tool, row in table.items() if tool in both} for table in tables)
    return [table for table in kept if table]


def _rates(tables: Sequence[SessionTable]) -> tuple[Rate, Rate]:
    rows = [row for table in tables for row in table.values()]
    first, second = (
        wilson(sum(row[at] for row in rows), sum(row[at + 1] for row in rows)) for at in (0, 2)
    )
    return first, second


def _reading(crude: Difference, stratified: Difference) -> str:
    said = _finding(stratified)
    if crude.estimate is None or stratified.estimate is None:
        return said
    if crude.estimate * stratified.estimate < 0:
        said += (
            f" All tools thrown together point the other way ({_change(crude.estimate)}),"
            " because other tools are used late than early; do not go by that figure."
        )
    return said


def _finding(stratified: Difference) -> str:
    if stratified.estimate is None or stratified.low is None:
        asked = "whether the agent improves within a session"
        return f"Not enough data to say {asked}: {missing(stratified.note)}."
    change = (
        f"with the same tools it makes {_change(stratified.estimate)}"
        f" (95 % interval: {span(stratified)})"
    )
    if not stratified.decided:
        return f"No change within a session is shown: {change}, which may be chance."
    verb = "improves" if stratified.estimate < 0 else "gets worse"
    return f"The agent {verb} within a session: {change}."


def _change(estimate: float) -> str:
    return f"{errors_than(estimate, 'late')} early"
