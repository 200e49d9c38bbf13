"""Watches the turn of a job's agent: what there is to remark about it, whether its limits can hold,
and what came of it.
"""

import msgspec

from journeyman.agent.steps import Begun, Called, Replied, Step
from journeyman.agent.turn import Turn
from journeyman.records.job import Job
from journeyman.schedule.outcome import Outcome, outcome_of

LONGEST_ANSWER = 100_000
UNTOLD = (
    "The model's server does not tell what it uses, so the limit on tokens or cost cannot hold. It "
    "was stopped after the first request; limit the job's --turns and --seconds instead."
)


class Watch:
    """One turn of an agent, as it goes on. `is_over` says that it must not go on."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._limits_use = job.tokens is not None or job.cost_usd is not None
        self.session = ""
        self.tokens: int | None = None
        self._told: list[str] = []
        self._refused = 0
        self.is_over = False

    def tell(self, line: str) -> None:
        """Hear what is to be told to people."""
        self._told.append(line)

    def see(self, step: Step) -> None:
        """See a step of the turn."""
        if isinstance(step, Begun):
            self.session = step.session
        if isinstance(step, Replied) and step.reply.tokens.total is not None:
            self.tokens = (self.tokens or 0) + step.reply.tokens.total
        if isinstance(step, Replied) and self._limits_use and step.reply.tokens.total is None:
            self.is_over = True
        if isinstance(step, Called) and step.result.recorded.status == "blocked":
            self._refused += 1

    @property
    def remarks(self) -> tuple[str, ...]:
        calls = "1 call was" if self._refused == 1 else f"{self._refused} calls were"
        refused = f"{calls} refused."
        return (*dict.fromkeys(self._told), *((refused,) if self._refused else ()))

    def outcome(self, turn: Turn) -> Outcome:
        """What came of the turn. An answer of absurd length is cut; the session has all of it."""
        answer = turn.final_response
        if len(answer) > LONGEST_ANSWER:
            cut = f"[… cut here: the answer has {len(answer):,} characters …]"
            answer = f"{answer[:LONGEST_ANSWER]}\n{cut}"
        found = outcome_of(stop=turn.stop, answer=answer, note=turn.note)
        if self.is_over and turn.stop == "interrupted":
            return msgspec.structs.replace(found, status="over_budget", reason=UNTOLD)
        if turn.stop == "time" and self._job.seconds is not None:
            reason = f"Its time of {self._job.seconds:g} seconds is over."
            return msgspec.structs.replace(found, reason=reason)
        return found
