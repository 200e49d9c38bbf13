"""Readers of tau-bench and tau2-bench results: conversations of an agent with a simulated user,
each with a reward. To use them in every import: pip install ./benchmarks/readers
"""

from collections.abc import Iterator
from typing import Any

from journeyman.logs.chat import chat_parts
from journeyman.logs.fields import only_object, only_text, path_id, seconds, session_id
from journeyman.logs.fragments import in_fragments
from journeyman.logs.log_file import LogFile
from journeyman.records import LogEvent, LogState, Mark, Session, SessionId


class TauBenchReader:
    """Reads a list of runs, each with a task, a trial, a conversation and a reward."""

    name = "tau_bench"
    about = "tau-bench results (a JSON list of runs with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        return {"item.task_id", "item.reward", "item.traj"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        for run in log.document:
            task, trial = run["task_id"], run["trial"]
            session = Session(
                id=SessionId(path_id(log, f"task{task}-trial{trial}")),
                source=self.name,
                log=log.name,
                outcome=run["reward"],
                outcome_origin="reward",
                details={"task_id": task, "trial": trial},
            )
            yield from in_fragments(session, chat_parts(run["traj"]))
        yield Mark(state=log.state(self.name))


class Tau2Reader:
    """Reads the simulations of a run: {timestamp, info, tasks, simulations}."""

    name = "tau2"
    about = "tau2-bench results (simulations with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        return {"info.agent_info", "info.environment_info", "simulations"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        info = only_object(log.document["info"])
        model = only_text(only_object(info.get("agent_info")).get("llm"))
        domain = only_text(only_object(info.get("environment_info")).get("domain_name"))
        for run in log.document["simulations"]:
            task, trial = run["task_id"], run["trial"]
            session = Session(
                id=SessionId(session_id(log, only_text(run["id"]), f"task{task}-trial{trial}")),
                source=self.name,
                title=f"{domain} task {task}, trial {trial}",
                model=model,
                started_at=seconds(run.get("start_time")),
                ended_at=seconds(run.get("end_time")),
                end_reason=only_text(run.get("termination_reason")),
                log=log.name,
                outcome=only_object(run.get("reward_info")).get("reward"),
                outcome_origin="reward_info.reward",
                details={"task_id": task, "trial": trial, "domain": domain},
            )
            yield from in_fragments(session, chat_parts(_flat(run["messages"]), model=model))
        yield Mark(state=log.state(self.name))


def _flat(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages with grouped results split, and with the id of a result's call in the
    field where the chat format has it.
    """
    for raw in messages:
        for message in raw.get("tool_messages") or [raw]:
            is_result = message.get("role") == "tool"
            yield {**message, "tool_call_id": message.get("id")} if is_result else message
