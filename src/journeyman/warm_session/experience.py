"""What the tool needs of whoever keeps the experience. The facade has it all; the tool stands below
it, so that the facade can hand it to its own agent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from journeyman.records import Template

if TYPE_CHECKING:
    from pathlib import Path

    from journeyman.reliability.comparison import Comparison
    from journeyman.reliability.compression import CompressionReport
    from journeyman.reliability.profile import Profile
    from journeyman.store.sessions import Choice
    from journeyman.templates.library import Library
    from journeyman.templates.shown.opening import Opening


class Experience(Protocol):
    """Templates, openings and reports, as `Journeyman` offers them."""

    @property
    def templates(self) -> "Library": ...

    def build_template(
        self,
        name: str,
        *,
        min_messages: int = ...,
        max_sessions: int = ...,
        source: str | None = ...,
        tags: Iterable[str] | None = ...,
        description: str | None = ...,
    ) -> Template: ...

    def opening(
        self,
        task: str = ...,
        *,
        project: "Path | str" = ...,
        tools: Sequence[Mapping[str, Any]] | None = ...,
        model: str = ...,
        budget_tokens: int | None = ...,
        max_patterns: int | None = ...,
        alike: bool = ...,
        template: str | None = ...,
    ) -> "Opening": ...

    def profile(self, sessions: str | None = ..., **chosen: "Unpack[Choice]") -> "Profile": ...

    def compression(self, session_id: str) -> "CompressionReport": ...

    def compare(self, warm: str, cold: str) -> "Comparison": ...
