"""Results of the tau-bench and tau2-bench benchmarks: conversations of an agent with a simulated
user, each with a reward. Agents that write their actions as text (the ReAct strategy of
tau-bench) keep them as text; the tasks' expected actions and the checks behind a reward are left
out.
"""

from collections.abc import Iterator
from typing import Any

from journeyman.logs import documents
from journeyman.logs.chat import BadMessage, ChatReading, seconds_of, usage_of
from journeyman.logs.fragments import SessionNames, in_fragments
from journeyman.logs.logfile import LogFile
from journeyman.logs.values import first_line, only_object, only_text, path_id, seconds, session_id
from journeyman.records import (
    Fragment,
    LogEvent,
    LogState,
    Mark,
    Message,
    Session,
    SessionId,
    Skip,
    Usage,
)


class TauBenchReader:
    """tau-bench: a list of runs, each {task_id, reward, info, traj, trial}."""

    name = "tau_bench"
    about = "tau-bench results (a JSON list of runs with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        """Every run has a task, a reward and a trajectory."""
        return {"item.task_id", "item.reward", "item.traj"} <= log.keys

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """All runs; the file is written anew by every benchmark."""
        names = SessionNames()
        for number, run in enumerate(documents.items(log, "item"), 1):
            if isinstance(run, Skip):
                yield run
            elif not isinstance(run, dict) or not _list(run.get("traj")):
                yield Skip(line=0, reason=f"run {number} has no trajectory{_error(run)}")
            else:
                yield from self._run(log, run, names)
        yield Mark(state=documents.read_whole(log, self.name))

    def _run(
        self, log: LogFile, run: dict[str, Any], names: SessionNames
    ) -> Iterator[Fragment | Skip]:
        task, trial = run.get("task_id"), run.get("trial")
        given, notes = names.give(path_id(log, f"task{task}-trial{trial}"))
        yield from notes
        info = only_object(run.get("info"))
        instruction = first_line(only_text(only_object(info.get("task")).get("instruction")), 80)
        outcome = _reward(run.get("reward"))
        session = Session(
            id=given,
            source=self.name,
            title=f"task {task}, trial {trial}" + (f": {instruction}" if instruction else ""),
            end_reason="error" if info.get("error") else "",
            outcome=outcome,
            outcome_origin="" if outcome is None else "reward",
            log=log.name,
            details=_scalars(task_id=task, trial=trial, user_cost=info.get("user_cost")),
        )
        yield from in_fragments(session, self._parts(run["traj"], str(task)))

    def _parts(self, messages: list[Any], task: str) -> Iterator[Message | Skip]:
        chat = ChatReading()
        position = 0
        for index, raw in enumerate(messages):
            try:
                read = chat.read(raw, str(index), position)
            except BadMessage as error:
                yield Skip(line=0, reason=f"task {task}, message {index + 1}: {error}")
                continue
            position += len(read)
            yield from read


class Tau2Reader:
    """tau2-bench: {timestamp, info, tasks, simulations}."""

    name = "tau2"
    about = "tau2-bench results (simulations with their rewards)"

    def recognises(self, log: LogFile) -> bool:
        """The header names agent and environment; tasks come before the simulations and may be
        all that the first bytes show.
        """
        keys = log.keys
        return {"info.agent_info", "info.environment_info"} <= keys and not keys.isdisjoint(
            ("tasks", "simulations")
        )

    def read(self, log: LogFile, since: LogState | None) -> Iterator[LogEvent]:  # noqa: ARG002
        """All simulations; the file is written anew as a run goes on."""
        header = documents.fields(log, without=("tasks", "simulations"))
        info = only_object(header.get("info"))
        names = SessionNames()
        for number, simulation in enumerate(documents.items(log, "simulations.item"), 1):
            if isinstance(simulation, Skip):
                yield simulation
            elif not isinstance(simulation, dict) or not _list(simulation.get("messages")):
                yield Skip(
                    line=0, reason=f"simulation {number} has no messages{_error(simulation)}"
                )
            else:
                yield from self._simulation(log, info, simulation, names)
        yield Mark(state=documents.read_whole(log, self.name))

    def _simulation(
        self, log: LogFile, info: dict[str, Any], run: dict[str, Any], names: SessionNames
    ) -> Iterator[Fragment | Skip]:
        task, trial = run.get("task_id"), run.get("trial")
        wanted = session_id(log, only_text(run.get("id")), f"task{task}-trial{trial}")
        given, notes = names.give(wanted)
        yield from notes
        yield from in_fragments(
            _tau2_session(self.name, log, info, run, given), _tau2_parts(info, run)
        )


def _tau2_session(
    source: str, log: LogFile, info: dict[str, Any], run: dict[str, Any], given: SessionId
) -> Session:
    domain = only_text(only_object(info.get("environment_info")).get("domain_name"))
    agent = only_object(info.get("agent_info"))
    outcome = _reward(only_object(run.get("reward_info")).get("reward"))
    return Session(
        id=given,
        source=source,
        title=f"{domain} task {run.get('task_id')}, trial {run.get('trial')}".strip(),
        agent=only_text(agent.get("implementation")),
        model=only_text(agent.get("llm")),
        started_at=seconds(run.get("start_time")),
        ended_at=seconds(run.get("end_time")),
        end_reason=only_text(run.get("termination_reason")),
        outcome=outcome,
        outcome_origin="" if outcome is None else "reward_info.reward",
        log=log.name,
        details=_scalars(
            task_id=run.get("task_id"),
            trial=run.get("trial"),
            domain=domain,
            seed=run.get("seed"),
            agent_cost=run.get("agent_cost"),
            user_cost=run.get("user_cost"),
        ),
    )


def _tau2_parts(info: dict[str, Any], run: dict[str, Any]) -> Iterator[Message | Usage | Skip]:
    models = {
        "assistant": only_text(only_object(info.get("agent_info")).get("llm")),
        "user": only_text(only_object(info.get("user_info")).get("llm")),
    }
    tasks = {"assistant": "", "user": "user_simulator"}
    chat = ChatReading()
    position = 0
    for key, raw in _flat(run["messages"]):
        try:
            messages = chat.read(raw, key, position, model=models["assistant"])
        except BadMessage as error:
            yield Skip(line=0, reason=f"task {run.get('task_id')}, message {key}: {error}")
            continue
        position += len(messages)
        yield from messages
        role = messages[-1].role
        if role in tasks:
            usage = usage_of(
                raw.get("usage"),
                f"usage-{key}",
                model=models[role],
                task=tasks[role],
                at=seconds_of(raw),
                cost=raw.get("cost"),
            )
            if usage:
                yield usage


def _flat(messages: list[Any]) -> Iterator[tuple[str, Any]]:
    """The messages with their keys: results that stand together taken apart, and the call's id
    where the chat format has it.
    """
    for index, raw in enumerate(messages):
        if not isinstance(raw, dict) or raw.get("role") != "tool":
            finish = (
                only_object(raw.get("raw_data")).get("finish_reason")
                if isinstance(raw, dict)
                else ""
            )
            yield str(index), {**raw, "finish_reason": finish} if finish else raw
            continue
        together = raw.get("tool_messages")
        if not isinstance(together, list):
            yield str(index), {**raw, "tool_call_id": raw.get("id")}
            continue
        for number, result in enumerate(together):
            if isinstance(result, dict):
                yield (
                    f"{index}.{number}",
                    {**result, "role": "tool", "tool_call_id": result.get("id")},
                )
            else:
                yield f"{index}.{number}", result


def _reward(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if known else None


def _error(run: Any) -> str:
    info = only_object(run.get("info")) if isinstance(run, dict) else {}
    return f" ({first_line(info['error'], 80)})" if isinstance(info.get("error"), str) else ""


def _scalars(**values: Any) -> dict[str, Any]:
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, str | int | float) and value != ""
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
