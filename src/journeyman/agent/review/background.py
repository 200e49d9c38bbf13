"""Reviews beside the agent's work: a thread that begins when enough has happened and gives way as
soon as a new turn begins. Whatever goes wrong in it is logged and told once; it never reaches the
turn.
"""

import logging
import threading
from collections.abc import Callable

from journeyman.agent.agent import Finished
from journeyman.agent.review.reviewer import Reviewed, Reviewer
from journeyman.agent.review.wording import told

logger = logging.getLogger(__name__)

WAIT_S = 2.0
"""How long a new turn waits for a review to give way."""


class BackgroundReview:
    """Decides when a turn is reviewed, and does it in a thread. `tell` gets the one line that a
    person sees, if there is one, and with `tells_all` also that nothing was kept. `since` counts
    the turns and calls of earlier agents that no review has followed.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        *,
        every_turns: int,
        every_calls: int,
        tell: Callable[[str], None] = lambda _line: None,
        tells_all: bool = False,
        since: tuple[int, int] = (0, 0),
    ) -> None:
        self._reviewer = reviewer
        self._every_turns, self._every_calls = every_turns, every_calls
        self._tell, self._tells_all = tell, tells_all
        self._turns, self._calls = since
        self._stop, self._done = threading.Event(), threading.Event()
        self._done.set()  # not the thread itself is asked: a join that Ctrl-C breaks off forgets it
        self._told_failure = False

    def consider(self, finished: Finished) -> None:
        """Count a finished turn, and review it if it is time. While a review is still at work, the
        next one waits for a later turn.
        """
        self._turns += 1
        self._calls += finished.new_calls
        if self._turns < self._every_turns and self._calls < self._every_calls:
            return
        if not self._done.is_set():
            return
        self._stop, self._done = threading.Event(), threading.Event()
        threading.Thread(
            target=self._run,
            args=(finished, self._stop, self._done),
            name="background-review",
            daemon=True,
        ).start()

    def cancel(self) -> None:
        """Ask a running review to give way, and wait a moment until it has."""
        self._stop.set()
        self._done.wait(WAIT_S)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a running review is done; whether it is."""
        return self._done.wait(timeout_s)

    def _run(self, finished: Finished, stop: threading.Event, done: threading.Event) -> None:
        try:
            self._review(finished, stop)
        finally:
            done.set()

    def _review(self, finished: Finished, stop: threading.Event) -> None:
        try:
            reviewed = self._reviewer.review(finished, stop.is_set)
        except Exception as error:
            # One turn of a background loop: the conversation must go on, whatever happened here.
            logger.exception("A background review failed")
            self._say_once(f"The review failed: {error}")
            return
        if reviewed.review.status != "cancelled":  # else what it would have seen is still due
            self._turns = self._calls = 0
        self._say(reviewed)

    def _say(self, reviewed: Reviewed) -> None:
        line = told(reviewed.review, reviewed.entries, tells_all=self._tells_all)
        if reviewed.review.status == "failed":
            logger.warning("%s", line)
            self._say_once(line)
        elif line:
            self._tell(line)

    def _say_once(self, line: str) -> None:
        if not self._told_failure:
            self._told_failure = True
            self._tell(line)
