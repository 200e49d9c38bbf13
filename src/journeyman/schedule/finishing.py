"""Keeping what became of a run, with patience for a database that is away for a while."""

import time
from collections.abc import Callable

from journeyman.records.errors import JourneymanError, StoreUnavailable
from journeyman.records.job import Job, Run
from journeyman.schedule.backing_off import settled
from journeyman.schedule.standing import known_following
from journeyman.store.job_claims import JobClaims

TRIES = 100
_LONGEST_PAUSE_S = 30.0


def finish(
    claims: JobClaims,
    run: Run,
    *,
    clock: Callable[[], float],
    lost_at: float | None = None,
    tries: int = TRIES,
    pause: Callable[[float], object] = time.sleep,
    tell: Callable[[str], None] = lambda _line: None,
) -> Job | None:
    """How the job stands after the run; None when it was said before what became of the run, or
    when that cannot be kept. With `lost_at`, only if there was no sign of life of it then.
    """

    def settle(job: Job) -> Job:
        return settled(job, run, now=clock(), following=known_following)

    for attempt in range(tries):
        try:
            return claims.finish(run, settle, lost_at=lost_at)
        except StoreUnavailable as error:
            tell(str(error))
            if attempt + 1 < tries:
                pause(min(2.0**attempt, _LONGEST_PAUSE_S))
        except JourneymanError as error:
            tell(str(error))
            break
    return None  # it stays as running, until it is taken for lost
