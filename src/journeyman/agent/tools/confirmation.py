"""The request_confirmation tool: the model asks a person before it does something. Who asks, and
how, is handed in; where nobody can answer, the answer is no.
"""

from collections.abc import Callable
from typing import Any

from journeyman.agent.tools.tool import Invocation, Result, Tool, refused, worked

Ask = Callable[[str, str, dict[str, Any], Invocation], bool | None]
"""The action, its description, its details, and the call; None when nobody can answer."""


def request_confirmation_tool(ask: Ask) -> Tool:
    def run(call: Invocation) -> Result:
        given = call.arguments
        answer = ask(given["action"], given["description"], given.get("details", {}), call)
        if answer:
            return worked(approved=True, status="approved", action=given["action"])
        if answer is None:
            return refused(
                "Nobody is there to confirm this. Do not do it; go on without it, or say that it "
                "is left to do.",
                approved=False,
            )
        return refused("A person said no. Do not do it, and do not ask again.", approved=False)

    return Tool(
        name="request_confirmation",
        description="Ask a person before an action that cannot be undone; wait for the answer.",
        parameters={
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "The action in a word or two."},
                "description": {
                    "type": "string",
                    "description": "What will happen, and to what.",
                },
                "details": {"type": "object", "description": "Exact values the person should see."},
            },
            "required": ["action", "description"],
            "additionalProperties": False,
        },
        run=run,
    )
