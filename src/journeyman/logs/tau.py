"""Readers for tau-bench and tau2-bench results: conversations of an agent with a simulated user,
each with a reward. Actions that an agent writes as text stay text.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from textwrap import shorten
from typing import Any

from journeyman.logs.chat import ChatParser, message_time, parse_each, parse_usage
from journeyman.logs.fields import only_object, only_text, path_id, seconds, session_id
from journeyman.logs.fragments import Part, document_fields, read_session_list
from journeyman.logs.line_reader import BadLine
from journeyman.logs.log_file import LogFile
from journeyman.records import LogEvent, LogState, Message, Session, SessionId, Usage


class TauBenchReader:
    """Reads tau-bench results: a list of runs, each {task_id, reward, info, traj, trial}."""

    name = "tau_bench"
    about = "tau-bench results (a JSON list of runs with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether the runs have a task, a reward and a trajectory."""
        return {"item.task_id", "item.reward", "item.traj"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """Read all runs; every benchmark rewrites the file."""
        return read_session_list(log, self.name, "item", partial(self._run, log))

    def _run(self, log: LogFile, run: Any, number: int) -> tuple[Session, Iterable[Part]]:
        turns = _required_list(run, "traj", f"run {number} has no trajectory")
        task, trial = run.get("task_id"), run.get("trial")
        info = only_object(run.get("info"))
        instruction = only_text(only_object(info.get("task")).get("instruction"))
        instruction = shorten(instruction.strip().partition("\n")[0], 80, placeholder="…")
        session = Session(
            id=SessionId(path_id(log, f"task{task}-trial{trial}")),
            source=self.name,
            title=f"task {task}, trial {trial}" + (f": {instruction}" if instruction else ""),
            end_reason="error" if info.get("error") else "",
            log=log.name,
            details=_scalars(task_id=task, trial=trial, user_cost=info.get("user_cost")),
            **_outcome(run.get("reward"), "reward"),
        )
        chat = ChatParser()
        return session, parse_each(
            turns,
            lambda raw, index, position: chat.read(raw, str(index), position),
            what=f"task {task}, message",
        )


class Tau2Reader:
    """Reads tau2-bench results: {timestamp, info, tasks, simulations}."""

    name = "tau2"
    about = "tau2-bench results (simulations with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        """Return whether the header names agent and environment. The tasks come before the
        simulations, and the head of the log may show nothing else.
        """
        has_header = {"info.agent_info", "info.environment_info"} <= log.keys
        return has_header and not log.keys.isdisjoint(("tasks", "simulations"))

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """Read all simulations; the file is rewritten as a run continues."""
        header = document_fields(log, without=("tasks", "simulations"))
        read = partial(self._simulation, log, only_object(header.get("info")))
        return read_session_list(log, self.name, "simulations.item", read)

    def _simulation(
        self, log: LogFile, info: dict[str, Any], run: Any, number: int
    ) -> tuple[Session, Iterable[Part]]:
        turns = _required_list(run, "messages", f"simulation {number} has no messages")
        agent, user = only_object(info.get("agent_info")), only_object(info.get("user_info"))
        domain = only_text(only_object(info.get("environment_info")).get("domain_name"))
        task, trial = run.get("task_id"), run.get("trial")
        numbers = {name: run.get(name) for name in ("seed", "agent_cost", "user_cost")}
        session = Session(
            id=SessionId(session_id(log, only_text(run.get("id")), f"task{task}-trial{trial}")),
            source=self.name,
            title=f"{domain} task {task}, trial {trial}".strip(),
            agent=only_text(agent.get("implementation")),
            model=only_text(agent.get("llm")),
            started_at=seconds(run.get("start_time")),
            ended_at=seconds(run.get("end_time")),
            end_reason=only_text(run.get("termination_reason")),
            log=log.name,
            details=_scalars(task_id=task, trial=trial, domain=domain, **numbers),
            **_outcome(only_object(run.get("reward_info")).get("reward"), "reward_info.reward"),
        )
        payers = {"assistant": ("", session.model), "user": ("user_simulator", user.get("llm"))}
        chat = ChatParser()

        def read(keyed: tuple[str, Any], _: int, position: int) -> list[Message | Usage]:
            key, raw = keyed
            messages = chat.read(raw, key, position, model=session.model)
            task, model = payers.get(messages[-1].role, ("", None))
            usage = model is not None and parse_usage(
                raw.get("usage"),
                f"usage-{key}",
                model=only_text(model),
                task=task,
                at=message_time(raw),
                cost=raw.get("cost"),
            )
            return [*messages, usage] if usage else [*messages]

        what = f"task {task}, message"
        return session, parse_each(
            _flatten(turns), read, what=what, label=lambda keyed, _: keyed[0]
        )


def _flatten(messages: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the messages with their keys: grouped results are split, and the call's id is moved to
    the field where the chat format has it.
    """
    for index, raw in enumerate(messages):
        if not isinstance(raw, dict) or raw.get("role") != "tool":
            finish = only_object(only_object(raw).get("raw_data")).get("finish_reason")
            yield str(index), {**raw, "finish_reason": finish} if finish else raw
            continue
        results = raw.get("tool_messages")
        if not isinstance(results, list):
            yield str(index), {**raw, "tool_call_id": raw.get("id")}
            continue
        for number, result in enumerate(results):
            if isinstance(result, dict):
                result = {**result, "role": "tool", "tool_call_id": result.get("id")}  # noqa: PLW2901
            yield f"{index}.{number}", result


def _required_list(run: Any, field: str, missing: str) -> list[Any]:
    value = only_object(run).get(field)
    if isinstance(value, list) and value:
        return value
    error = only_object(only_object(run).get("info")).get("error")
    raise BadLine(
        f"{missing} ({shorten(error, 80, placeholder='…')})" if isinstance(error, str) else missing
    )


def _outcome(value: Any, origin: str) -> dict[str, Any]:
    is_reward = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return {"outcome": float(value), "outcome_origin": origin} if is_reward else {}


def _scalars(**values: Any) -> dict[str, Any]:
    return {k: v for k, v in values.items() if isinstance(v, str | int | float) and v != ""}
