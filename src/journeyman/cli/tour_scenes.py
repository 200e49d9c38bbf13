"""Scenes of the tour: Claude Code's hooks are answered, by the real client and socket; a risky
action waits for a person, with a real service and client; an agent is confined and its changes are
undone, with scripted calls; and agents run on a schedule, as real jobs started manually. No scene
calls a model.
"""

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import formatting
from journeyman.confirm.schemas import Card
from journeyman.facade.journeyman import Journeyman
from journeyman.hosts import client
from journeyman.hosts.server import HookServer
from journeyman.hosts.service import HostService
from journeyman.records.errors import ConfirmationRefused, MissingPart
from journeyman.settings import EMBEDDED
from journeyman.testing import ScriptedModel, calls, says
from journeyman.text.display import readable

Scene = Iterator[tuple[str, str, bool]]
"""Lines of a scene: the actor, what happens, and whether it succeeds."""

ACTION = "transfer_funds"
DETAILS = {"to": "ACME", "amount": 4200}
CHANGED = {**DETAILS, "amount": 9000}


def show_scene(console: Console, scene: Scene) -> list[dict[str, str]]:
    """Print a scene line by line, and return it as data."""
    lines, events = Table.grid(padding=(0, 2)), []
    try:
        for actor, event, is_good in scene:
            lines.add_row(Text(actor, style="bold"), Text(event, style="" if is_good else "red"))
            events.append({"who": actor, "what": event})
    except MissingPart as missing:
        console.print(Text(str(missing)))
        events.append({"missing": str(missing)})
    console.print(lines)
    return events


def hosts_scene(journeyman: Journeyman, project: str, task: str) -> Scene:
    """Answer the hooks of a session of Claude Code in a project, as `journeyman serve` does."""
    service = HostService(journeyman)
    home = journeyman.settings.home
    with HookServer(service, home):
        service.openings.warm_up()
        for event, about, fields in (
            ("SessionStart", "a session starts", {"source": "startup"}),
            ("UserPromptSubmit", f'"{formatting.one_line(task, 50)}"', {"prompt": task}),
            ("PreToolUse", "npm test", _shell_call("npm test")),
            ("PreToolUse", "git push --force", _shell_call("git push --force origin main")),
        ):
            body = {"session_id": "tour", "hook_event_name": event, "cwd": project, **fields}
            began = time.perf_counter()
            printed = subprocess.run(  # noqa: S603 - as a hook runs it
                [sys.executable, "-I", "-S", client.__file__, str(home), "claude-code", event],
                input=json.dumps(body).encode(),
                capture_output=True,
                check=True,
            ).stdout
            took = (time.perf_counter() - began) * 1_000
            answer = json.loads(printed or "{}").get("hookSpecificOutput", {})
            is_denied = answer.get("permissionDecision") == "deny"
            yield event, f"{about}: {_hook_answer(answer)}, in {took:.0f} ms", not is_denied


def _shell_call(command: str) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": command}


def _hook_answer(answer: dict[str, Any]) -> str:
    if context := answer.get("additionalContext"):
        lines = sum(line.startswith("- ") for line in context.splitlines())
        return f"{lines} lines from earlier sessions are added"
    if answer.get("permissionDecision") == "deny":
        return "blocked, because no one is there to approve it"
    return "nothing to add; it goes on"


def _confirmation_scene(folder: Path) -> Scene:
    environ = {
        "HOME": str(folder),
        "JOURNEYMAN_CONFIRM_PORT": "0",
        "JOURNEYMAN_CONFIRM_PAGE_PORT": "0",
    }
    home = folder / "confirm"
    with Journeyman(home=home, environ=environ) as journeyman:
        desk = journeyman.confirmations
        _, token = desk.add_agent("bookkeeper")
        _, key = desk.add_approver("ana")
        with desk.served(terminal=io.StringIO()) as started:
            client_environ = environ | {"JOURNEYMAN_CONFIRM_URL": started.agents_url}
            with Journeyman(home=home, environ=client_environ) as client:
                yield from _confirmation_steps(client, token, key)
        audit = desk.verify_audit()
        state = "the chain is intact" if audit.ok else audit.problem
        yield "audit", f"{audit.entries} entries, each linked to the one before: {state}", audit.ok


def _confirmation_steps(journeyman: Journeyman, token: str, key: str) -> Scene:
    with journeyman.approver_client(token) as agent, journeyman.approver_client(key) as ana:
        card: Card = agent.request(ACTION, "Pay the invoice for March.", DETAILS)
        requested = f"requests {ACTION} to {DETAILS['to']}, {DETAILS['amount']}"
        yield "agent", f"{requested}: {card.status} ({readable(card.rule)})", True
        yield from _refused("tries to approve it itself", agent.approve, card.id, card.digest)
        card = ana.approve(card.id, card.digest, reason="the invoice is correct")
        yield "ana", f"approves exactly that request, by its digest {card.digest[:19]}…", True
        yield from _refused(
            f"tries to transfer {CHANGED['amount']} instead", agent.redeem, card, CHANGED
        )
        agent.redeem(card, DETAILS)
        yield "agent", f"transfers {DETAILS['amount']}, as approved: granted, once", True
        yield from _refused("tries to use the approval again", agent.redeem, card, DETAILS)


def _refused(attempt: str, function: Callable[..., object], *arguments: object) -> Scene:
    try:
        function(*arguments)
    except ConfirmationRefused as refusal:
        yield "agent", f"{attempt}: {readable(str(refusal))}", False


LEAK = """import socket
socket.create_connection(("127.0.0.1", 9)).sendall(open("plan.txt", "rb").read())
"""
PEEK = """import os
print(os.listdir({home!r}))
"""


def _confinement_scene(folder: Path) -> Scene:
    """Confine code that an agent writes and runs, and restore a file that it deletes. The calls
    are scripted; no model is called.
    """
    work, home = folder / "held", str(Path.home())
    work.mkdir()
    (work / "plan.txt").write_text("The plan.\n")
    files = {
        "leak.py": LEAK,
        "peek.py": PEEK.format(home=home),
        "Makefile": "all:\n\trm plan.txt\n",
    }
    writes = [("write_file", {"path": name, "content": text}) for name, text in files.items()]
    commands = ("python3 leak.py", "python3 peek.py", "git push --force origin main", "make")
    runs = [("terminal", {"command": command}) for command in commands]
    model = ScriptedModel([calls(*writes), *(calls(run, first=10) for run in runs), says("Done.")])
    with Journeyman(home=folder / "held_journeyman", environ={"HOME": home}) as journeyman:
        with journeyman.agent(model=model, workspace=work, warm="off", review=False) as agent:
            turn = agent.run_conversation("Tidy up.")
        results = [message["content"] for message in turn.messages if message["role"] == "tool"][
            len(files) :
        ]
        for command, content in zip(commands, results, strict=True):
            result = json.loads(content)
            output = result.get("error") or (result["output"].strip() or "done").splitlines()[-1]
            yield (
                "agent",
                f"{command}: {formatting.one_line(output, 110)}",
                result.get("exit_code") == 0,
            )
        changes = formatting.pluralize(len(journeyman.undo(turn.session).changes), "change")
        yield "you", f"journeyman undo: {changes} undone, plan.txt is back", True


ZONE = "Europe/Berlin"
SCRIPTS = {
    "broken.sh": "echo 'df: no such disk' >&2; exit 3",
    "quiet.sh": "echo '{\"wakeAgent\": false}'",
}


def _jobs_scene(folder: Path) -> Scene:
    home, workdir = folder / "jobs", folder / "jobs_workdir"
    for path in (home / "scripts", workdir):
        path.mkdir(parents=True, mode=0o700)
    for name, text in SCRIPTS.items():
        (home / "scripts" / name).write_text(f"{text}\n")
        (home / "scripts" / name).chmod(0o600)
    environ = {"HOME": str(folder), "JOURNEYMAN_MODEL_NAME": EMBEDDED}
    with Journeyman(home=home, environ=environ) as journeyman:
        added = journeyman.jobs.add(
            "every monday 09:00", "Which disk is nearly full?", timezone=ZONE, workdir=workdir
        )
        times = (datetime.fromtimestamp(at, ZoneInfo(ZONE)) for at in added.upcoming[:3])
        following = ", ".join(f"{at:%d %b %H:%M}" for at in times)
        yield "you", f"every monday 09:00: {added.said}; next {following}", True
        yield from _run_job(journeyman, added.job.name, "with the embedded model")
    with Journeyman(
        home=home, environ=environ | {"JOURNEYMAN_JOBS_MIN_CONTEXT": "1000"}
    ) as journeyman:
        for script, title in (
            ("broken.sh", "with a failing script"),
            ("quiet.sh", "with nothing new"),
        ):
            name = Path(script).stem
            journeyman.jobs.add(
                "every 30m", "Look at the disks.", name=name, script=script, workdir=workdir
            )
            yield from _run_job(journeyman, name, title)


def _run_job(journeyman: Journeyman, name: str, title: str) -> Scene:
    delivered: list[str] = []
    run = journeyman.jobs.run(name, terminal=delivered.append)
    notice = "you are notified" if delivered else "no notification"
    reason = f" ({formatting.one_line(run.reason.split('. ')[0], 150)})" if run.reason else ""
    yield "job", f"{title}: {run.status}{reason}; {notice}", run.is_good


SCENES: tuple[tuple[str, str, Callable[[Path], Scene]], ...] = (
    ("confirmation", "A risky action waits for a person", _confirmation_scene),
    ("holding", "What an agent cannot do, and what can be undone", _confinement_scene),
    ("jobs", "Agents on a schedule", _jobs_scene),
)
