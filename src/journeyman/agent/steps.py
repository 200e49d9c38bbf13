"""What happens in a turn, one value for each thing that a person watching would want to see."""

from msgspec import Struct

from journeyman.agent.limits import Stop
from journeyman.agent.tools.tool import Result
from journeyman.models.model import Reply
from journeyman.records import Call, SessionId, ToolCall
from journeyman.templates.shown.opening import Opening


class Begun(Struct, frozen=True, kw_only=True):
    """A turn begins, in a session that can be resumed from now on. `opening` is what a new session
    starts with; None where it goes on.
    """

    session: SessionId
    opening: Opening | None = None


class Replied(Struct, frozen=True, kw_only=True):
    """The model answered; the answer is saved."""

    reply: Reply


class Called(Struct, frozen=True, kw_only=True):
    """A call was made or refused; its result is saved."""

    call: ToolCall
    result: Result

    @property
    def joined(self) -> Call:
        """The call with its result, as it is judged."""
        return Call(
            id=self.call.id,
            tool=self.call.name,
            arguments=self.call.arguments,
            result=self.result.text,
            recorded=self.result.recorded,
        )


class Compressed(Struct, frozen=True, kw_only=True):
    """The conversation became too long and goes on in a new session, with a summary of the old."""

    parent: SessionId
    child: SessionId
    messages: int


class Stopped(Struct, frozen=True, kw_only=True):
    """The turn is over: why, and a sentence for people where it did not simply end."""

    stop: Stop
    note: str = ""


Step = Begun | Replied | Called | Compressed | Stopped
