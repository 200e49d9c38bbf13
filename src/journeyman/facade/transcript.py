"""A session as people read it: its messages, its calls and the verdicts on them, by number."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from journeyman.records import Call, Message, SessionOverview, Verdict, join_calls
from journeyman.records.errors import WrongInput
from journeyman.store.sessions import Sessions


class Transcript(Struct, frozen=True, kw_only=True):
    """A session with its messages in order, and its calls with a verdict each. `is_redacted` is
    true if something was replaced.
    """

    overview: SessionOverview
    messages: list[Message]
    calls: list[Call]
    verdicts: list[Verdict]
    is_redacted: bool = False

    def message(self, number: int) -> Message:
        """Return a message by its number, counted from 1."""
        return self.messages[_index(number, len(self.messages), "message")]

    def call(self, number: int) -> tuple[Call, Verdict]:
        """Return a call and its verdict by the call's number, counted from 1."""
        index = _index(number, len(self.calls), "call")
        return self.calls[index], self.verdicts[index]

    def number_of(self, key: str) -> int:
        """Return the number of the message with this key."""
        return next(n for n, message in enumerate(self.messages, start=1) if message.key == key)

    def request_of(self, call: Call) -> str:
        """Return the last text that a person wrote before the call; empty if there is none."""
        before = self.messages[: self.number_of(call.asked_key)]
        written = (m.text for m in reversed(before) if m.role == "user" and m.kind == "plain")
        return next(written, "")


def transcript(
    sessions: Sessions, judge: Callable[[Call], Verdict], session_id: str, *, raw: bool
) -> Transcript:
    """Read a session. Calls are judged as they were recorded, before anything is redacted. All its
    texts are redacted together: what one of them reveals as a secret is replaced in every other.
    """
    overview = sessions.get(session_id)
    messages = list(sessions.messages(overview.session.id))
    calls = join_calls(messages)
    verdicts = [judge(call) for call in calls]
    if raw:
        return Transcript(overview=overview, messages=messages, calls=calls, verdicts=verdicts)
    from journeyman.learning.session_judge import redacted_verdict
    from journeyman.redaction.redactor import redacted_record

    evidence = [verdict.evidence for verdict in verdicts]
    recorded = (overview.session, messages, evidence)
    session, redacted_messages, evidence = redacted_record(recorded)
    # Commands need the ids of the session and of its parent as they are.
    kept = {"id": overview.session.id, "lineage": overview.session.lineage}
    session = msgspec.structs.replace(session, **kept)
    return Transcript(
        overview=msgspec.structs.replace(overview, session=session),
        messages=redacted_messages,
        calls=join_calls(redacted_messages),
        verdicts=[
            redacted_verdict(msgspec.structs.replace(verdict, evidence=line), call)
            for verdict, line, call in zip(verdicts, evidence, calls, strict=True)
        ],
        is_redacted=redacted_messages != messages,
    )


def _index(number: int, total: int, noun: str) -> int:
    if not 0 < number <= total:
        raise WrongInput(f"There is no {noun} {number}: the session has {total:,}.")
    return number - 1
