"""Two parts of the tour. A risky action waits for a person: a real service, a real client, and what
becomes of everything that an agent might try. And an agent is put on a schedule: real jobs, run by
hand, and what is delivered of each; no model is asked.
"""

import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.cli import shown
from journeyman.journeyman import Journeyman
from journeyman.records.errors import ConfirmationRefused, MissingPart
from journeyman.testing import ScriptedModel, calls, says

Scene = Iterator[tuple[str, str, bool]]
"""Who does what, what comes of it, and whether that is well."""

ACTION = "transfer_funds"
DETAILS = {"to": "ACME", "amount": 4200}
CHANGED = {**DETAILS, "amount": 9000}


def show_scene(console: Console, scene: Scene) -> list[dict[str, str]]:
    """What happens, line by line, and the same as data."""
    lines, told = Table.grid(padding=(0, 2)), []
    try:
        for who, what, is_good in scene:
            lines.add_row(Text(who, style="bold"), Text(what, style="" if is_good else "red"))
            told.append({"who": who, "what": what})
    except MissingPart as missing:
        console.print(Text(str(missing)))
        told.append({"missing": str(missing)})
    console.print(lines)
    return told


def _confirming(folder: Path) -> Scene:
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
            ways = environ | {"JOURNEYMAN_CONFIRM_URL": started.agents_url}
            with Journeyman(home=home, environ=ways) as asking:
                yield from _story(asking, token, key)
        found = desk.verify_audit()
        holds = "every link holds" if found.ok else found.problem
        yield "audit", f"{found.entries} entries, each bound to the one before: {holds}", found.ok


def _story(journeyman: Journeyman, token: str, key: str) -> Scene:
    with journeyman.approver_client(token) as agent, journeyman.approver_client(key) as ana:
        card = agent.request(ACTION, "Pay the invoice for March.", DETAILS)
        asked = f"asks for {ACTION} to {DETAILS['to']}, {DETAILS['amount']}"
        yield "agent", f"{asked}: {card.status} ({shown.plain(card.rule)})", True
        yield from _refused("approves it itself", agent.approve, card.id, card.digest)
        card = ana.approve(card.id, card.digest, reason="the invoice is right")
        yield "ana", f"approves exactly that, by its digest {card.digest[:19]}…", True
        yield from _refused(f"takes {CHANGED['amount']} instead", agent.redeem, card, CHANGED)
        agent.redeem(card, DETAILS)
        yield "agent", f"takes {DETAILS['amount']}, as approved: granted, once", True
        yield from _refused("takes it again", agent.redeem, card, DETAILS)


def _refused(said: str, attempt: Callable[..., object], *given: object) -> Scene:
    try:
        attempt(*given)
    except ConfirmationRefused as no:
        yield "agent", f"{said}: {shown.plain(str(no))}", False


LEAK = """import socket
socket.create_connection(("127.0.0.1", 9)).sendall(open("plan.txt", "rb").read())
"""
PEEK = """import os
print(os.listdir({home!r}))
"""


def _holding(folder: Path) -> Scene:
    """What becomes of code that an agent writes and then runs, and of a folder that it empties. No
    model is asked: the calls are scripted.
    """
    work, home = folder / "held", str(Path.home())
    work.mkdir()
    (work / "plan.txt").write_text("The plan.\n")
    files = {
        "leak.py": LEAK,
        "peek.py": PEEK.format(home=home),
        "Makefile": "all:\n\trm plan.txt\n",
    }
    written = [("write_file", {"path": name, "content": text}) for name, text in files.items()]
    commands = ("python3 leak.py", "python3 peek.py", "git push --force origin main", "make")
    ran = [("terminal", {"command": command}) for command in commands]
    model = ScriptedModel([calls(*written), *(calls(one, first=10) for one in ran), says("Done.")])
    with Journeyman(home=folder / "held_journeyman", environ={"HOME": home}) as journeyman:
        with journeyman.agent(model=model, workspace=work, warm="off", review=False) as agent:
            turn = agent.run_conversation("Tidy up.")
        results = [one["content"] for one in turn.messages if one["role"] == "tool"][len(files) :]
        for command, content in zip(commands, results, strict=True):
            result = json.loads(content)
            said = result.get("error") or (result["output"].strip() or "done").splitlines()[-1]
            yield "agent", f"{command}: {shown.one_line(said, 110)}", result.get("exit_code") == 0
        changes = shown.many(len(journeyman.undo(turn.session).changes), "change")
        yield "you", f"journeyman undo: {changes} undone, plan.txt is back", True


ZONE = "Europe/Berlin"
SCRIPTS = {
    "broken.sh": "echo 'df: no such disk' >&2; exit 3",
    "quiet.sh": "echo '{\"wakeAgent\": false}'",
}


def _jobs(folder: Path) -> Scene:
    home, workdir = folder / "jobs", folder / "jobs_workdir"
    for made in (home / "scripts", workdir):
        made.mkdir(parents=True, mode=0o700)
    for name, text in SCRIPTS.items():
        (home / "scripts" / name).write_text(f"{text}\n")
        (home / "scripts" / name).chmod(0o600)
    usual = {"HOME": str(folder)}
    with Journeyman(home=home, environ=usual) as journeyman:
        added = journeyman.jobs.add(
            "every monday 09:00", "Which disk is nearly full?", timezone=ZONE, workdir=workdir
        )
        times = (datetime.fromtimestamp(at, ZoneInfo(ZONE)) for at in added.upcoming[:3])
        following = ", ".join(f"{at:%d %b %H:%M}" for at in times)
        yield "you", f"every monday 09:00: {added.said}; next {following}", True
        yield from _ran(journeyman, added.job.name, "on the model that runs here")
    with Journeyman(
        home=home, environ=usual | {"JOURNEYMAN_JOBS_MIN_CONTEXT": "1000"}
    ) as journeyman:
        for script, title in (("broken.sh", "its script fails"), ("quiet.sh", "nothing is new")):
            name = Path(script).stem
            journeyman.jobs.add(
                "every 30m", "Look at the disks.", name=name, script=script, workdir=workdir
            )
            yield from _ran(journeyman, name, title)


def _ran(journeyman: Journeyman, name: str, title: str) -> Scene:
    delivered: list[str] = []
    run = journeyman.jobs.run(name, terminal=delivered.append)
    told = "you are told" if delivered else "nobody is bothered"
    reason = f" ({shown.one_line(run.reason.split('. ')[0], 150)})" if run.reason else ""
    yield "job", f"{title}: {run.status}{reason}; {told}", run.is_good


SCENES: tuple[tuple[str, str, Callable[[Path], Scene]], ...] = (
    ("confirmation", "A risky action waits for a person", _confirming),
    ("holding", "What an agent cannot do, and what is undone", _holding),
    ("jobs", "Agents on a schedule", _jobs),
)
