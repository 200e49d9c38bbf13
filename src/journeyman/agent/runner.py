"""The small loop as a runner, beside the agents of hosts."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from journeyman.agent.agent import SOURCE, Agent
from journeyman.hosts.runner import RunRequest, RunResult, RunStep


@dataclass(kw_only=True, eq=False)
class AgentRunner:
    """Runs an agent of this package. `build` makes it for a request; its review is over when
    `after` returns, and it is closed then.
    """

    build: Callable[[RunRequest], Agent]
    after: Callable[[Agent], None] = lambda _agent: None
    name: str = SOURCE

    def run(
        self,
        request: RunRequest,
        *,
        on_step: Callable[[RunStep], None] = lambda _step: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> RunResult:
        """Do a run to its end."""
        with self.build(request) as agent:
            turn = agent.run_conversation(request.prompt, on_step=on_step, cancelled=cancelled)
            self.after(agent)
        return msgspec.convert(turn, RunResult, from_attributes=True)
