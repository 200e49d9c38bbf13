"""From a call that the model asks for to its result: find the tool, read the arguments, pass the
gate, ask a person where the gate says so, run. Whatever goes wrong becomes a result that the model
can read; nothing is raised.
"""

import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    failed,
    parameters,
    refused,
    text,
    worked,
)
from journeyman.agent.tools.toolbox import Toolbox, read_arguments
from journeyman.gate.decision import Decision
from journeyman.records import Provenance, Recorded, ToolCall
from journeyman.records.errors import JourneymanError

logger = logging.getLogger(__name__)

_SIDE_BY_SIDE = 8

Decide = Callable[[str, dict[str, object]], Decision]

_BETWEEN_COMMANDS = frozenset({"|", "||", "&&", ";"})
_ACTING_OPTIONS = ("--output", "--pre", "--ext-diff", "--textconv", "--open-files")
_EXPANDED = "$`\\\n\r*?[{"


class Question(Struct, frozen=True, kw_only=True):
    """A call that needs a person's word. Who waits long for it looks whether it was `cancelled`."""

    tool: str
    arguments: dict[str, object]
    rule: str
    reason: str
    session: str = ""
    cancelled: Callable[[], bool] = lambda: False


_CHANGED = (
    "A person allowed it, but a file that it is about has changed since. It was not run; ask for "
    "it again as it is now."
)
_OFFLINE = "It failed for want of the network, which is off. A yes runs it again, with the network."
NEEDS_NETWORK = Decision(answer="ask", rule="network.needed", reason=_OFFLINE)

Ask = Callable[[Question], bool | None]
"""Asks a person: yes, no, or None where nobody can answer, which is a no."""


def nobody(_question: Question) -> None:
    """For where no person can be asked."""


def request_confirmation_tool(ask: Ask) -> Tool:
    """The tool with which the model asks a person before it does something."""

    def run(call: Invocation) -> Result:
        action = call.arguments["action"]
        question = Question(
            tool=action,
            arguments=call.arguments.get("details", {}),
            rule="agent.asks",
            reason=call.arguments["description"],
            session=call.origin.session,
            cancelled=call.cancelled,
        )
        reason = "A person said no. Do not do it, and do not ask again."
        match ask(question):
            case True:
                return worked(approved=True, status="approved", action=action)
            case None:
                reason = "Nobody is there to confirm this. Do not do it; say that it is left to do."
        return refused(reason, approved=False)

    return Tool(
        name="request_confirmation",
        description="Ask a person before an action that cannot be undone; wait for the answer.",
        parameters=parameters(
            *("action", "description"),
            action=text("The action in a word or two."),
            description=text("What will happen, and to what."),
            details={"type": "object", "description": "Exact values the person should see."},
        ),
        run=run,
    )


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
        self._toolbox, self._decide, self._ask = toolbox, decide, ask
        self._origin, self._cancelled = origin, cancelled

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
                    yield place, self._finished(self._prepared(call))
                continue
            with ThreadPoolExecutor(min(len(together), _SIDE_BY_SIDE)) as pool:
                ready = [(place, self._prepared(call)) for place, call in together]
                begun = {pool.submit(self._finished, one): place for place, one in ready}
                for done in as_completed(begun):
                    yield begun[done], done.result()

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self._toolbox.find(call.name)
        return tool is not None and tool.reads_only

    def _prepared(self, call: ToolCall) -> Result | tuple[Tool, Invocation]:
        """What is to be run, or the result, once everything that may speak against the call has
        been asked.
        """
        if self._cancelled():
            return interrupted(call.name)
        tool = self._toolbox.find(call.name)
        if tool is None:
            return self._toolbox.unknown(call.name)
        arguments = read_arguments(tool, call.arguments)
        if isinstance(arguments, Result):
            return arguments
        decision = self._decide(tool.name, arguments)
        if decision.answer == "refuse":
            return refused(f"{decision.reason} It was not run.", rule=decision.rule)
        invocation = Invocation(
            call_id=call.id,
            arguments=arguments,
            origin=self._origin(),
            cancelled=self._cancelled,
            network=decision.answer == "ask" and decision.network,
        )
        if decision.answer == "ask":
            answer = self._answer(tool, invocation, decision)
            if not answer:
                who = "nobody is here to allow it" if answer is None else "the user said no"
                reason = f"{decision.reason} It needs a person's word, and {who}. It was not run; "
                return refused(f"{reason}do not try it another way.", rule=decision.rule)
            if self._decide(tool.name, arguments) != decision:
                return refused(_CHANGED, rule=decision.rule)
        if self._cancelled():  # while the person was thinking
            return interrupted(call.name)
        return tool, invocation

    def _answer(self, tool: Tool, call: Invocation, decision: Decision) -> bool | None:
        question = Question(
            tool=tool.name,
            arguments=call.arguments,
            rule=decision.rule,
            reason=decision.reason,
            session=call.origin.session,
            cancelled=self._cancelled,
        )
        return self._ask(question)

    def _finished(self, prepared: Result | tuple[Tool, Invocation]) -> Result:
        """The result of a call, made again with the network if it lacks that and a person allows
        it. Otherwise the result itself says what it lacks.
        """
        if isinstance(prepared, Result):
            return prepared
        tool, call = prepared
        result = _tried(tool, call)
        if not result.lacks_network or self._cancelled():
            return result
        if not self._answer(tool, call, NEEDS_NETWORK):
            return result
        return _tried(tool, replace(call, network=True))


def _tried(tool: Tool, call: Invocation) -> Result:
    try:
        result = tool.run(call)
        result.text.encode()  # what cannot be written down fails here, not later
    except JourneymanError as error:
        return failed(str(error))
    except Exception as error:
        # A tool is a stranger's code as far as the loop goes: its failure is a result.
        logger.exception("The tool %s broke down", tool.name)
        return failed(f"The tool {tool.name} broke down: {type(error).__name__}: {error!r}")
    return result


def ask_unconfined(decide: Decide, why: str, harmless: Sequence[str]) -> Decide:
    """The gate where no kernel holds commands: what it would allow is asked about as well, but for
    commands with one of these beginnings.
    """

    def decided(tool: str, arguments: dict[str, object]) -> Decision:
        decision = decide(tool, arguments)
        runs = tool in ("terminal", "execute_code")
        command = str(arguments.get("command", "")) if tool == "terminal" else ""
        if not runs or decision.answer != "allow" or _is_harmless(command, harmless):
            return decision
        reason = f"Nothing confines commands here: {why}."
        return Decision(answer="ask", rule="unconfined", reason=reason)

    return decided


def _is_harmless(line: str, beginnings: Sequence[str]) -> bool:
    """Whether a line is made of commands with these beginnings and plain words that stay in the
    folder: no expansions, no redirections, no options that write or run something.
    """
    if any(character in line for character in _EXPANDED):
        return False
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.commenters = ""
    try:
        words = list(reader)
    except ValueError:
        return False
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _BETWEEN_COMMANDS:
            commands.append([])
        elif word[0] in "<>()&|;/~" or ".." in word or word.startswith(_ACTING_OPTIONS):
            return False
        else:
            commands[-1].append(word)
    harmless = [beginning.split() for beginning in beginnings if beginning.strip()]
    return all(any(command[: len(words)] == words for words in harmless) for command in commands)


def interrupted(name: str, why: str = "The user stopped the work before it was done.") -> Result:
    """The result of a call that was not run, or not known to have run to its end."""
    return Result(
        content={"status": "interrupted", "error": f"[{name} was interrupted] {why}"},
        recorded=Recorded(interrupted=True),
    )
