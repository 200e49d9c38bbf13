"""The reliability of some sessions: what reports show about them."""

from collections.abc import Sequence
from typing import get_args

from msgspec.structs import replace

from journeyman.records import JudgedSession
from journeyman.records.errors import WrongInput
from journeyman.reliability import By
from journeyman.reliability.groups import Group, grouped, without_tools
from journeyman.reliability.profile import Profile, profile


class Reliability:
    """Judged sessions, and how reliable their calls were. `sessions` are without the calls of the
    trivial tools, and `bots` counts the sessions of bots that were left out.
    """

    def __init__(
        self, judged: Sequence[JudgedSession], trivial: Sequence[str], bots: int = 0
    ) -> None:
        self._judged, self._trivial, self._bots = judged, trivial, bots
        self.sessions = [*without_tools(judged, trivial)]

    def profile(self) -> Profile:
        """Return the profile; it names the calls that were left out."""
        return replace(profile(self._judged, trivial=self._trivial), bots=self._bots)

    def grouped(self, by: By) -> tuple[Group, ...]:
        """Return the error rates by tool, model and so on, with early and late calls compared
        except by tool.
        """
        if by not in get_args(By):
            raise WrongInput(
                f"Sessions can be grouped by {', '.join(get_args(By))}, not by {by!r}."
            )
        return grouped(self.sessions, by, with_learning=True)
