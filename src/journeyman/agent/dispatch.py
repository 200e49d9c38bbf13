"""From a call that the model asks for to its result: find the tool, read the arguments, pass the
gate, ask a person where the gate says so, run. Whatever goes wrong becomes a result that the model
can read; nothing is raised.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby

from msgspec import Struct

from journeyman.agent.tools.arguments import read_arguments
from journeyman.agent.tools.tool import Invocation, Result, Tool, failed, refused
from journeyman.agent.tools.toolbox import Toolbox
from journeyman.gate.decision import Decision
from journeyman.records import Provenance, Recorded, ToolCall
from journeyman.records.errors import JourneymanError

logger = logging.getLogger(__name__)

_SIDE_BY_SIDE = 8

Decide = Callable[[str, dict[str, object]], Decision]


class Question(Struct, frozen=True, kw_only=True):
    """A call that needs a person's word. Who waits long for it looks whether it was `cancelled`."""

    tool: str
    arguments: dict[str, object]
    rule: str
    reason: str
    files: dict[str, str] = {}
    """The texts of files that it would run, by path."""
    session: str = ""
    cancelled: Callable[[], bool] = lambda: False


_CHANGED = (
    "A person allowed it, but a file that it would run has changed since. It was not run; ask for "
    "it again as it is now."
)

Ask = Callable[[Question], bool | None]
"""Asks a person: yes, no, or None where nobody can answer, which is a no."""


def nobody(_question: Question) -> None:
    """For where no person can be asked."""


class Dispatch:
    """Runs the calls of one agent. `origin` is asked for each call, because the session changes
    when the conversation is compressed.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        decide: Decide,
        ask: Ask,
        origin: Callable[[], Provenance],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._toolbox = toolbox
        self._decide = decide
        self._ask = ask
        self._origin = origin
        self._cancelled = cancelled

    def run(self, calls: Sequence[ToolCall]) -> Iterator[tuple[int, Result]]:
        """The result of each call with its place among the calls, as they come. Neighbours that
        only read run side by side; the others run one after the other, in their order. A person is
        asked one question at a time.
        """
        numbered = enumerate(calls)
        for only_read, group in groupby(numbered, key=lambda one: self._only_reads(one[1])):
            together = list(group)
            if not only_read or len(together) == 1:
                for place, call in together:
                    yield place, self._prepared(call)()
                continue
            with ThreadPoolExecutor(min(len(together), _SIDE_BY_SIDE)) as pool:
                ready = [(place, self._prepared(call)) for place, call in together]
                begun = {pool.submit(run): place for place, run in ready}
                for done in as_completed(begun):
                    yield begun[done], done.result()

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self._toolbox.find(call.name)
        return tool is not None and tool.reads_only

    def _prepared(self, call: ToolCall) -> Callable[[], Result]:
        """What is left to do for the result, once everything that may speak against the call has
        been asked.
        """
        if self._cancelled():
            return lambda: interrupted(call.name)
        tool = self._toolbox.find(call.name)
        if tool is None:
            return lambda: self._toolbox.unknown(call.name)
        arguments = read_arguments(tool, call.arguments)
        if isinstance(arguments, Result):
            return lambda: arguments
        decision = self._decide(tool.name, arguments)
        if decision.answer == "refuse":
            return lambda: refused(f"{decision.reason} It was not run.", rule=decision.rule)
        if decision.answer == "ask":
            if no := self._no(tool, arguments, decision):
                return lambda: no
            if self._decide(tool.name, arguments) != decision:
                return lambda: refused(_CHANGED, rule=decision.rule)
        if self._cancelled():  # while the person was thinking
            return lambda: interrupted(call.name)
        return lambda: self._tried(tool, call, arguments)

    def _no(self, tool: Tool, arguments: dict[str, object], decision: Decision) -> Result | None:
        """The refusal, unless a person said yes."""
        question = Question(
            tool=tool.name,
            arguments=arguments,
            rule=decision.rule,
            reason=decision.reason,
            files=decision.files,
            session=self._origin().session,
            cancelled=self._cancelled,
        )
        answer = self._ask(question)
        if answer:
            return None
        who = "nobody is here to allow it" if answer is None else "the user said no"
        return refused(
            f"{decision.reason} It needs a person's word, and {who}. It was not run; do not try "
            "it another way.",
            rule=decision.rule,
        )

    def _tried(self, tool: Tool, call: ToolCall, arguments: dict[str, object]) -> Result:
        invocation = Invocation(
            call_id=call.id,
            arguments=arguments,
            origin=self._origin(),
            cancelled=self._cancelled,
        )
        try:
            result = tool.run(invocation)
            result.text.encode()  # what cannot be written down fails here, not later
        except JourneymanError as error:
            return failed(str(error))
        except Exception as error:
            # A tool is a stranger's code as far as the loop goes: its failure is a result.
            logger.exception("The tool %s broke down", tool.name)
            return failed(f"The tool {tool.name} broke down: {type(error).__name__}: {error!r}")
        return result


def interrupted(name: str, why: str = "The user stopped the work before it was done.") -> Result:
    """The result of a call that was not run, or not known to have run to its end."""
    return Result(
        content={"status": "interrupted", "error": f"[{name} was interrupted] {why}"},
        recorded=Recorded(interrupted=True),
    )
