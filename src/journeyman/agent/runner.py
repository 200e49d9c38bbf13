"""The small loop as a runner, beside the agents of hosts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from journeyman.agent.agent import SOURCE, Agent
from journeyman.agent.turn import ModelReplied, Step, ToolCalled, TurnBegun
from journeyman.experience.opening import Opening
from journeyman.hosts.runner import (
    DeniedCall,
    RunBegan,
    RunCall,
    RunOpening,
    RunRequest,
    RunResult,
    RunStep,
    RunText,
)


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
        began, denied = time.monotonic(), list[DeniedCall]()

        def report(step: Step) -> None:
            for one in _run_steps(step, agent.model.name):
                if isinstance(one, RunCall) and one.denied:
                    denied.append(DeniedCall(tool=one.call.tool, reason=one.call.result or ""))
                on_step(one)

        with self.build(request) as agent:
            turn = agent.run_conversation(request.prompt, on_step=report, cancelled=cancelled)
            result = RunResult(
                runner=self.name,
                status=turn.stop,
                text=turn.final_response,
                session=turn.session,
                model=agent.model.name,
                tokens=turn.usage,
                turns=turn.api_calls,
                calls=turn.calls,
                denied=tuple(denied),
                reason=turn.note,
                changed_files=turn.changed_files,
                seconds=round(time.monotonic() - began, 3),
            )
            self.after(agent)
        return result


def _run_steps(step: Step, model: str) -> list[RunStep]:
    if isinstance(step, TurnBegun):
        opening = None if step.opening is None else _run_opening(step.opening)
        return [RunBegan(session=step.session, model=model, opening=opening)]
    if isinstance(step, ModelReplied) and step.reply.text.strip():
        return [RunText(text=step.reply.text.strip())]
    if isinstance(step, ToolCalled):
        return [RunCall(call=step.joined, denied=step.result.recorded.status == "blocked")]
    return []


def _run_opening(opening: Opening) -> RunOpening:
    if opening.is_empty:
        return RunOpening(note=opening.note or "as requested")
    return RunOpening(
        id=opening.id,
        summary=opening.summary,
        examples=tuple(
            f"{pattern.intent}\nwhy: {reason}"
            for pattern, reason in zip(opening.patterns, opening.reasons, strict=True)
        ),
    )
