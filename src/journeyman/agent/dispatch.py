"""Runs the tool calls that a model requests: find the tool, read the arguments, consult the gate,
ask a person if the gate says so, run. Every error becomes a result that the model can read; nothing
is raised.
"""

import logging
from collections.abc import Callable

from journeyman.agent.tools.tool import (
    Invocation,
    Result,
    Tool,
    failed,
    interruption,
    parameters,
    refused,
    text,
    worked,
)
from journeyman.agent.tools.toolbox import Toolbox, read_arguments
from journeyman.gate.decision import ApprovalRequest, Approver, Decision
from journeyman.records import Provenance, ToolCall
from journeyman.records.errors import JourneymanError

logger = logging.getLogger(__name__)

Decide = Callable[[Tool, dict[str, object]], Decision]

_CHANGED_SINCE = (
    "A person allowed it, but a file that it concerns has changed since. It was not run; request "
    "it again as it is now."
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
    """Runs the calls of one turn."""

    def __init__(
        self,
        toolbox: Toolbox,
        decide: Decide,
        ask: Approver,
        origin: Provenance,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._toolbox, self._decide, self._ask = toolbox, decide, ask
        self._origin, self._cancelled = origin, cancelled

    def run(self, call: ToolCall) -> Result:
        """Run a call, and return its result."""
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
            origin=self._origin,
            cancelled=self._cancelled,
            network=decision.answer == "ask" and decision.network,
        )
        if decision.answer == "ask":
            request = ApprovalRequest(
                tool=tool.name,
                arguments=arguments,
                rule=decision.rule,
                reason=decision.reason,
                session=self._origin.session,
                cancelled=self._cancelled,
            )
            answer = self._ask(request)
            if not answer:
                why = "no one is here to allow it" if answer is None else "the user said no"
                reason = f"{decision.reason} It needs a person's decision, and {why}. "
                reason += "It was not run; do not try it another way."
                return refused(reason, rule=decision.rule)
            if self._decide(tool, arguments) != decision:
                return refused(_CHANGED_SINCE, rule=decision.rule)
        if self._cancelled():  # while waiting for the person
            return interrupted_result(call.name)
        return _run_tool(tool, invocation)


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


def interrupted_result(name: str) -> Result:
    """The result of a call that did not run, or may not have run to completion."""
    why = "The user stopped the work before it was done."
    return interruption(status="interrupted", error=f"[{name} was interrupted] {why}")
