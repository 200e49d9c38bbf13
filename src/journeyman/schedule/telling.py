"""What is said of a run to those who get its answer. Where it goes is left to `delivery`."""

from journeyman.records.job import Job, Run, RunStatus
from journeyman.schedule.delivery import Message

ENDED: dict[RunStatus, str] = {
    "running": "is running",
    "ok": "is done",
    "silent": "is done, and there was nothing to tell",
    "failed": "failed",
    "blocked": "was not begun",
    "delivery_failed": "is done, but could not be delivered",
    "timed_out": "ran out of time",
    "over_budget": "reached the limit of what it may use",
    "interrupted": "was stopped",
    "crashed": "broke off",
}


def message_of(job: Job, run: Run, remark: str = "") -> Message:
    """The message on a run that ended. `remark` says how the job stands after it."""
    if run.is_good:
        parts = [run.answer, *run.remarks, _foot(run)]
        return Message(title=job.name, body=_joined(parts), is_good=True)
    parts = [
        f"The job {job.name} {ENDED[run.status]}: {run.reason}",
        run.answer and f"What it said:\n{run.answer}",
        *run.remarks,
        remark,
        f"More: journeyman jobs show {job.name}",
        _foot(run),
    ]
    return Message(title=f"{job.name} {ENDED[run.status]}", body=_joined(parts), is_good=False)


def _foot(run: Run) -> str:
    """One line at the end: what it took, and where all of it is."""
    seconds = (run.ended_at or run.started_at) - run.started_at
    facts = [f"{seconds:.0f} s"]
    if run.session:
        facts.insert(0, run.model)
    if run.tokens is not None:
        facts.append(f"{run.tokens:,} tokens")
    if run.cost_usd:
        facts.append(f"${run.cost_usd:.4f}")
    where = f". All of it: {run.output}" if run.output else ""
    return f"({', '.join(facts)}{where})"


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
