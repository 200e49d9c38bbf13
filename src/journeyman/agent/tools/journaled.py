"""Writing so that it can be traced: a change is planned, checked, made and kept in the journal. A
change that the journal did not take is undone.
"""

import secrets
from collections.abc import Callable

import msgspec
from msgspec import Struct

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.tools.tool import Invocation, Result, failed, refused
from journeyman.records import JournalEntry, ReviewId, Write, WriteId, WriteKind
from journeyman.records.errors import JourneymanError, NotWritten

Keep = Callable[[Write, Invocation], None]
"""Puts a change that was made into the journal."""

Check = Callable[[Write, Invocation], None]
"""Raises NotWritten where a rule forbids a planned change."""


def allow(_write: Write, _invocation: Invocation) -> None:
    """Every change that memory and skills take themselves."""


class Journaled(Struct, frozen=True, kw_only=True):
    """Knowledge whose changes are checked before and kept in the journal after."""

    knowledge: Knowledge
    keep: Keep
    check: Check = allow

    def change(
        self, invocation: Invocation, kind: WriteKind, plan: Callable[[], Write]
    ) -> Write | Result:
        """Make a change: what was written, or the answer of a call that wrote nothing."""
        forbidden = ""

        def checked(write: Write) -> None:
            nonlocal forbidden
            try:
                self.check(write, invocation)
            except NotWritten as error:
                forbidden = str(error)
                raise

        try:
            write = self.knowledge.change(kind, plan, checked)
            self._keep(write, invocation)
        except JourneymanError as error:
            if forbidden:
                return refused(forbidden, success=False)
            return failed(str(error), success=False)
        return write

    def _keep(self, write: Write, invocation: Invocation) -> None:
        kept = False
        try:
            self.keep(write, invocation)
            kept = True
        finally:
            if not kept:
                self.knowledge.take_back(write)


def journal_entry(
    write: Write,
    invocation: Invocation,
    knowledge: Knowledge,
    at: float,
    review: ReviewId | None = None,
) -> JournalEntry:
    """A write with where it came from and where it was made, for the journal."""
    return JournalEntry(
        id=WriteId(secrets.token_hex(4)),
        at=at,
        write=write,
        review=review,
        provenance=msgspec.structs.replace(
            invocation.origin,
            tool_call=invocation.call_id,
            folder=str(knowledge.folder.resolve()),
        ),
        evidence=str(invocation.arguments.get("evidence") or ""),
    )
