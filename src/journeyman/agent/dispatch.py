"""Runs the tool calls that a model requests: find the tool, read the arguments, consult the gate,
ask a person if the gate says so, run. Every error becomes a result that the model can read; nothing
is raised.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby

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
from journeyman.gate.command import OUTPUT
from journeyman.gate.decision import ApprovalRequest, Approver, Decision
from journeyman.gate.parser import read_script
from journeyman.records import Provenance, ResultFlags, ToolCall
from journeyman.records.errors import JourneymanError

logger = logging.getLogger(__name__)

_MAX_PARALLEL = 8

Decide = Callable[[Tool, dict[str, object]], Decision]

_UNSAFE_OPTIONS = ("--output", "--pre", "--ext-diff", "--textconv", "--open-files")
_EXPANSION_CHARACTERS = "$`\\\n\r*?[{"

_CHANGED_SINCE = (
    "A person allowed it, but a file that it concerns has changed since. It was not run; request "
    "it again as it is now."
)
_NEEDS_NETWORK = Decision(
    answer="ask",
    rule="network.needed",
    reason="It failed because the network is off. If you allow it, it runs again with the network.",
)


def no_approver(_request: ApprovalRequest) -> None:
    """The approver for when no person can be asked."""


def request_confirmation_tool(ask: Approver) -> Tool:
    """The tool with which the model asks a person before it does something."""

    def run(call: Invocation) -> Result:
        action = call.arguments["action"]
        request = ApprovalRequest(
            tool=action,
            arguments=call.arguments.get("details", {}),
            rule="agent.asks",
            reason=call.arguments["description"],
            session=call.origin.session,
            cancelled=call.cancelled,
        )
        reason = "A person said no. Do not do it, and do not ask again."
        match ask(request):
            case True:
                return worked(approved=True, status="approved", action=action)
            case None:
                reason = "No one can confirm this now. Do not do it; report it as not done."
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
        risk="report",
        teaches=False,
    )


class Dispatch:
    """Runs the calls of one agent. `origin` is evaluated for each call, because the session changes
    when the conversation is compressed.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        decide: Decide,
        ask: Approver,
        origin: Callable[[], Provenance],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._toolbox, self._decide, self._ask = toolbox, decide, ask
        self._origin, self._cancelled = origin, cancelled

    def run(self, calls: Sequence[ToolCall]) -> Iterator[tuple[int, Result]]:
        """Yield each result with the index of its call, as results arrive. Adjacent calls that only
        read run in parallel; all others run one at a time, in order. A person is asked one question
        at a time.
        """
        for reads_only, group in groupby(enumerate(calls), key=lambda item: self._reads(item[1])):
            batch = list(group)
            if not reads_only or len(batch) == 1:
                for index, call in batch:
                    yield index, self._execute(self._prepare(call))
                continue
            with ThreadPoolExecutor(min(len(batch), _MAX_PARALLEL)) as pool:
                prepared = [(index, self._prepare(call)) for index, call in batch]
                futures = {pool.submit(self._execute, job): index for index, job in prepared}
                for future in as_completed(futures):
                    yield futures[future], future.result()

    def _reads(self, call: ToolCall) -> bool:
        tool = self._toolbox.find(call.name)
        return tool is not None and tool.reads_only

    def _prepare(self, call: ToolCall) -> Result | tuple[Tool, Invocation]:
        """Return the tool and the invocation to run, or the result of a call that must not run."""
        if self._cancelled():
            return interrupted_result(call.name)
        tool = self._toolbox.find(call.name)
        if tool is None:
            return self._toolbox.unknown(call.name)
        arguments = read_arguments(tool, call.arguments)
        if isinstance(arguments, Result):
            return arguments
        decision = self._decide(tool, arguments)
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
            answer = self._request_approval(tool, invocation, decision)
            if not answer:
                why = "no one is here to allow it" if answer is None else "the user said no"
                reason = f"{decision.reason} It needs a person's decision, and {why}. "
                reason += "It was not run; do not try it another way."
                return refused(reason, rule=decision.rule)
            if self._decide(tool, arguments) != decision:
                return refused(_CHANGED_SINCE, rule=decision.rule)
        if self._cancelled():  # while waiting for the person
            return interrupted_result(call.name)
        return tool, invocation

    def _request_approval(self, tool: Tool, call: Invocation, decision: Decision) -> bool | None:
        request = ApprovalRequest(
            tool=tool.name,
            arguments=call.arguments,
            rule=decision.rule,
            reason=decision.reason,
            session=call.origin.session,
            cancelled=self._cancelled,
        )
        return self._ask(request)

    def _execute(self, prepared: Result | tuple[Tool, Invocation]) -> Result:
        """Return the result of a prepared call. A call that fails for lack of network runs again
        with the network if a person allows it; otherwise its result states what it lacks.
        """
        if isinstance(prepared, Result):
            return prepared
        tool, call = prepared
        result = _run_tool(tool, call)
        if not result.lacks_network or self._cancelled():
            return result
        if not self._request_approval(tool, call, _NEEDS_NETWORK):
            return result
        return _run_tool(tool, replace(call, network=True))


def _run_tool(tool: Tool, call: Invocation) -> Result:
    try:
        result = tool.run(call)
        result.text.encode()  # a result that cannot be stored fails here, not later
    except JourneymanError as error:
        return failed(str(error))
    except Exception as error:
        # Tools may be third-party code: any exception becomes a failed result.
        logger.exception("The tool %s failed unexpectedly", tool.name)
        return failed(
            f"The tool {tool.name} failed unexpectedly: {type(error).__name__}: {error!r}"
        )
    return result


def ask_when_unconfined(decide: Decide, why: str, harmless: Sequence[str]) -> Decide:
    """Wrap the gate for a machine where the kernel does not confine commands: a command that it
    allows needs approval as well, unless it begins with one of `harmless`.
    """

    def decide_unconfined(tool: Tool, arguments: dict[str, object]) -> Decision:
        decision = decide(tool, arguments)
        command = str(arguments.get("command", "")) if tool.risk == "command" else ""
        if not tool.runs_commands or decision.answer != "allow" or _is_harmless(command, harmless):
            return decision
        reason = f"Nothing confines commands here: {why}."
        return Decision(answer="ask", rule="unconfined", reason=reason)

    return decide_unconfined


def _is_harmless(line: str, prefixes: Sequence[str]) -> bool:
    """Return whether a line consists of commands with these prefixes and plain words that stay in
    the folder: no expansions, no redirections, no options that write or run something.
    """
    if any(character in line for character in _EXPANSION_CHARACTERS):
        return False
    script = read_script(line)
    if script.notes or script.code or not script.commands:
        return False
    harmless = [tuple(prefix.split()) for prefix in prefixes if prefix.strip()]
    return all(
        any(command.words[: len(prefix)] == prefix for prefix in harmless)
        and not (command.settings or command.redirects or command.document)
        and all(map(_stays_inside, command.words))
        for command in script.commands
    )


def _stays_inside(word: str) -> bool:
    is_outside = word.startswith(("/", "~")) or ".." in word
    return not is_outside and OUTPUT not in word and not word.startswith(_UNSAFE_OPTIONS)


def interrupted_result(
    name: str, why: str = "The user stopped the work before it was done."
) -> Result:
    """The result of a call that did not run, or may not have run to completion."""
    return Result(
        content={"status": "interrupted", "error": f"[{name} was interrupted] {why}"},
        recorded=ResultFlags(interrupted=True),
    )
