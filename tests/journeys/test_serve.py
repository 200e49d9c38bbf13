"""`journeyman serve` and its hook client as people run them: every part from one process, its
failures and its end, and hooks with and without it.
"""

import json
import os
import select
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.confirm_server import bearer, plain_client
from tests.conftest import made_once
from tests.host_service import REMEDY, TASK, TOLD, Experience, write_experience
from tests.program import Command, Process
from tests.waiting import LONGEST_S, until

from journeyman import Journeyman
from journeyman.plugin import client
from journeyman.plugin.client import Unanswered, request, socket_path
from journeyman.plugin.installation.record import Record, write_record
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import HostService

NOBODY = 100_000 + os.getpid()
"""The user of processes that must not have access; each run has its own."""

HARMLESS = {"command": "ls"}
GATED = {"command": "git push --force origin main"}


class House:
    """A person's home with Journeyman in it, which has learned."""

    def __init__(self, folder: Path, experience: Experience) -> None:
        self.folder = folder
        self.command = Command(folder)
        self.home = folder / ".journeyman"
        self.home.mkdir(mode=0o700)
        shutil.copyfile(experience.home / "journeyman.db", self.home / "journeyman.db")
        self.project = str(experience.project)
        self.ports = free_port(), free_port()
        self.configure()

    def configure(self, **hosts: Any) -> None:
        values = {"learn": False, "start": "never", "confirm_timeout_s": 300, **hosts}
        lines = ["[confirm]", f"port = {self.ports[0]}", f"page_port = {self.ports[1]}", "[hosts]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")

    def open(self) -> Journeyman:
        return Journeyman(home=self.home, environ={"HOME": str(self.folder)})

    def authorize(self) -> str:
        """Give Claude Code a token, and return the key of a person who may decide."""
        with self.open() as journeyman:
            token = journeyman.confirmations.add_agent("claude-code", by="test")[1]
            write_record(self.home, Record(host="claude-code", token=token))
            return journeyman.confirmations.add_approver("ann", by="test")[1]

    @contextmanager
    def serving(self, *options: str) -> Iterator[Process]:
        process = self.command.start("serve", *options)
        try:
            until(lambda: "Serving." in process.printed or not process.running)
            assert process.running, process.printed
            yield process
        finally:
            if process.running:
                process.signal(signal.SIGTERM)
                process.wait()

    def ask(self, operation: str, host: str = "hermes", **body: Any) -> Any:
        answer = request(
            str(self.home), operation, host, json.dumps(body).encode(), timeout_s=LONGEST_S
        )
        return json.loads(answer) if answer else None

    def start_hook(
        self, event: str, seconds: float = LONGEST_S, host: str = "claude-code", **environ: str
    ) -> subprocess.Popen[bytes]:
        """Start the client as a host does."""
        words = [sys.executable, "-I", "-S", client.__file__, str(self.home), host, event]
        return subprocess.Popen(
            [*words, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.project,
            env={**self.command.environ, **environ},
        )

    def hook(
        self, event: str, body: Any = None, seconds: float = LONGEST_S, **environ: str
    ) -> "HookResult":
        """Run a hook to its end."""
        given = {"session_id": "s1", "hook_event_name": event, "cwd": self.project}
        sent = body if isinstance(body, bytes) else json.dumps({**given, **(body or {})}).encode()
        process = self.start_hook(event, seconds, **environ)
        printed, errors = process.communicate(sent, timeout=LONGEST_S)
        assert (process.returncode, errors) == (0, b"")
        return HookResult(printed)

    @property
    def failures(self) -> list[str]:
        path = self.home / "hook-failures.log"
        return path.read_text().splitlines() if path.exists() else []


class HookResult:
    """What a hook printed."""

    def __init__(self, printed: bytes) -> None:
        self.printed = printed

    @property
    def output(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.printed)["hookSpecificOutput"]
        return found

    @property
    def is_denial(self) -> bool:
        return bool(self.printed) and self.output["permissionDecision"] == "deny"


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Experience:
    made: Experience = made_once(tmp_path_factory, "serve_experience", write_experience)
    return made


@pytest.fixture
def house(tmp_path: Path, learned: Experience) -> House:
    return House(tmp_path, learned)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class TestParts:
    def test_everything_from_one_process(self, house: House) -> None:
        with house.serving() as process, plain_client() as web:
            status = house.ask("status")
            agents, page = (f"http://127.0.0.1:{port}" for port in house.ports)
            assert status["pid"] == process.pid
            assert status["parts"] == {
                "hooks": str(house.home / "serve.sock"),
                "confirmations": agents,
                "page": page,
                "jobs": "0 scheduled",
            }
            assert all(place in process.printed for place in status["parts"].values())
            assert "key " in process.printed  # the first approver's login
            assert web.get(f"{agents}/health").status_code == 200
            assert "<!doctype html>" in web.get(page).text.lower()
            assert house.ask("opening", session="s1", task=TASK, cwd=house.project)["id"]
            text = house.hook("SessionStart", {"source": "startup"}).output
            assert REMEDY in text["additionalContext"]

            # Only this user can use the socket.
            path = house.home / "serve.sock"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert path.stat().st_uid == os.getuid()

            # Nobody else can serve this home, and nothing of this one is disturbed.
            second = house.command("serve", "--no-confirmations", "--no-jobs", code=1)
            assert "Another process already answers hooks" in second.stderr
            assert house.ask("status")["pid"] == process.pid

            process.signal(signal.SIGTERM)
            ended = process.wait(code=0)
            assert ended.stdout.endswith("Stopped.\n")
        assert not path.exists()
        with pytest.raises(Unanswered) as failure:
            house.ask("status")
        assert not failure.value.reached

    def test_each_part_can_be_switched_off(self, house: House) -> None:
        with house.serving("--no-confirmations", "--no-jobs"):
            assert list(house.ask("status")["parts"]) == ["hooks"]
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", house.ports[0]))

    def test_changed_settings_are_seen(self, house: House) -> None:
        with house.serving("--no-jobs") as process:
            good = (house.home / "config.toml").read_text()
            (house.home / "config.toml").write_text("this is not TOML")
            time.sleep(1)
            assert house.ask("status")["gate_tools"] == []
            (house.home / "config.toml").write_text(f'{good}gate_tools = ["mcp__pay"]\n')

            def has_changed() -> bool:
                return served_by(house).get("gate_tools") == ["mcp__pay"]

            until(has_changed)
            assert house.ask("status")["pid"] == process.pid

    def test_ports_in_use_leave_the_hooks_served(self, house: House) -> None:
        with socket.create_server(("127.0.0.1", house.ports[0])), house.serving() as process:
            assert list(house.ask("status")["parts"]) == ["hooks", "jobs"]
            until(lambda: "Confirmations are not served" in process.printed)
            assert f"{house.ports[0]}" in process.printed


def send(hook: subprocess.Popen[bytes], house: House, **more: Any) -> None:
    """Pass a call that needs a person to a hook, and let it wait."""
    body = {
        "session_id": "s1",
        "hook_event_name": "PreToolUse",
        "cwd": house.project,
        "tool_name": "Bash",
        "tool_input": GATED,
        **more,
    }
    assert hook.stdin is not None
    hook.stdin.write(json.dumps(body).encode())
    hook.stdin.close()
    hook.stdin = None


def pending(web: Any, house: House, key: str) -> Any:
    """Wait for the confirmation that a call waits for."""
    url = f"http://127.0.0.1:{house.ports[0]}/confirmations?status=pending"
    found: list[Any] = []

    def look() -> bool:
        found[:] = web.get(url, headers=bearer(key)).json()["confirmations"]
        return bool(found)

    until(look)
    return found[0]


def approve(web: Any, house: House, key: str) -> None:
    card = pending(web, house, key)
    url = f"http://127.0.0.1:{house.ports[0]}/confirm/{card['id']}/approve"
    answer = web.post(url, headers=bearer(key), json={"digest": card["digest"]})
    assert answer.status_code == 200, answer.text


class TestEnd:
    @pytest.mark.parametrize(
        "number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM]
    )
    def test_it_ends_while_a_call_waits(self, house: House, number: int) -> None:
        key = house.authorize()
        with house.serving("--no-jobs") as process, plain_client() as web:
            hook = house.start_hook("PreToolUse")
            send(hook, house, tool_use_id="t1")
            pending(web, house, key)
            process.signal(number)
            process.wait(code=0)
            # The hook asks again in a child, for which there is no service now.
            printed = hook.communicate(timeout=LONGEST_S)[0]
            assert json.loads(printed)["hookSpecificOutput"]["permissionDecision"] == "deny"
        with house.open() as journeyman:
            (card,) = journeyman.confirmations.list()
            assert card.status == "pending"  # until it expires

    def test_a_call_that_waits_is_decided_through_the_next_process(self, house: House) -> None:
        house.configure(start="on-demand")
        key = house.authorize()
        house.hook("SessionStart", {"source": "startup"})
        until(lambda: "confirmations" in served_by(house).get("parts", ()))
        hook = house.start_hook("PreToolUse")
        send(hook, house, tool_use_id="t1")
        with plain_client() as web:
            card = pending(web, house, key)
            hook.send_signal(signal.SIGSTOP)  # it does not ask again before the next one serves
            with house.serving("--no-jobs"):
                assert pending(web, house, key)["id"] == card["id"]
                hook.send_signal(signal.SIGCONT)
                approve(web, house, key)
                printed = json.loads(hook.communicate(timeout=LONGEST_S)[0])["hookSpecificOutput"]
                assert printed["permissionDecision"] == "allow"

    @pytest.mark.soak
    def test_a_killed_process_denies_the_call_that_waits(self, house: House) -> None:
        key = house.authorize()
        with house.serving("--no-jobs") as process, plain_client() as web:
            hook = house.start_hook("PreToolUse")
            send(hook, house, tool_use_id="t1")
            pending(web, house, key)
            process.signal(signal.SIGKILL)
            process.wait()
            printed = hook.communicate(timeout=LONGEST_S)[0]
            assert json.loads(printed)["hookSpecificOutput"]["permissionDecision"] == "deny"


class TestOnDemand:
    def test_the_first_hook_starts_it_for_the_next(self, house: House) -> None:
        house.configure(start="on-demand")
        pid = 0
        try:
            first = house.hook("SessionStart", {"source": "startup"})
            assert REMEDY in first.output["additionalContext"]
            until(lambda: served_by(house))
            status = house.ask("status", "claude-code")
            pid = status["pid"]
            assert "jobs" not in status["parts"]
            again = house.hook("UserPromptSubmit", {"prompt": TASK})
            assert TOLD[TASK] in again.output["additionalContext"]
            assert house.ask("status", "claude-code")["pid"] == pid
            # Another that starts meanwhile gives way without a word.
            late = house.command("serve", "--on-demand")
            assert late.stdout + late.stderr == ""
            log = house.home / "serve.log"
            assert stat.S_IMODE(log.stat().st_mode) == 0o600
            # One that a person starts takes its place.
            by_hand = house.command.start("serve", "--no-jobs")
            pid = by_hand.pid
            until(lambda: served_by(house).get("pid") == pid)
        finally:
            if pid:
                os.kill(pid, signal.SIGTERM)
        until(lambda: not served_by(house))

    def test_it_is_started_with_the_interpreter_that_was_installed(self, house: House) -> None:
        """Another may lack the packages for confirmations, as Hermes' own does."""
        house.configure(start="on-demand")
        python, called = house.folder / "python", house.folder / "python.called"
        python.write_text('#!/bin/sh\necho "$@" >> "$0.called"\n')
        python.chmod(0o700)
        for host, program in (("codex", str(python)), ("claude-code", "/no/such/python")):
            write_record(house.home, Record(host=host, program=(program,)))
        house.hook("SessionStart", {"source": "startup"})
        until(lambda: called.exists() and "serve --on-demand" in called.read_text())

    @pytest.mark.soak
    def test_many_hooks_at_once_start_one(self, house: House) -> None:
        house.configure(start="on-demand")
        hooks = [house.start_hook("SessionEnd") for _ in range(6)]
        try:
            for hook in hooks:
                send(hook, house, hook_event_name="SessionEnd", transcript_path=None)
            for hook in hooks:
                hook.communicate(timeout=LONGEST_S)
            until(lambda: served_by(house))
            lines = {
                path.parent.name: command_line(path) for path in Path("/proc").glob("*/cmdline")
            }
            started = [
                int(pid)
                for pid, line in lines.items()
                if str(house.home) in line and "--on-demand" in line
            ]
            assert started == [house.ask("status")["pid"]]
        finally:
            with suppress(Unanswered):
                os.kill(house.ask("status")["pid"], signal.SIGTERM)
        until(lambda: not served_by(house))


def command_line(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def served_by(house: House) -> dict[str, Any]:
    """The status of the process that serves; empty if there is none."""
    try:
        status: dict[str, Any] = house.ask("status")
    except Unanswered:
        return {}
    return status


@contextmanager
def stand_in(house: House, converse: Callable[[socket.socket], None]) -> Iterator[None]:
    """Another process at the socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_path(str(house.home)))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                converse(connection)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    Path(socket_path(str(house.home))).unlink()


def read_all(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


def answers(content: bytes) -> Callable[[socket.socket], None]:
    def converse(connection: socket.socket) -> None:
        read_all(connection)
        connection.sendall(content)

    return converse


def never(connection: socket.socket) -> None:
    read_all(connection)
    hung_up = select.poll()
    hung_up.register(connection, 0)
    hung_up.poll()


def dribble(connection: socket.socket) -> None:
    read_all(connection)
    while True:
        connection.sendall(b"o")
        time.sleep(0.2)


IMPOSTORS: dict[str, Callable[[socket.socket], None]] = {
    "never answers": never,
    "closes at once": lambda _: None,
    "answers nothing": answers(b""),
    "answers garbage": answers(b"\xff\xfe{}"),
    "answers without a status": answers(b'{"hookSpecificOutput": {}}'),
    "answers half a status": answers(b"o"),
    "answers an error": answers(b"error\nIt is broken."),
    "never ends its answer": dribble,
}


class TestClient:
    """The client as hosts run it: `python -I -S client.py`."""

    def test_without_a_resident_process_a_child_answers(self, house: House) -> None:
        text = house.hook("SessionStart", {"source": "startup"}).output["additionalContext"]
        assert REMEDY in text
        call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
        assert house.hook("PreToolUse", call).printed == b""
        call = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
        assert "the rule" in house.hook("PreToolUse", call).output["permissionDecisionReason"]
        assert house.hook("PreToolUse", {**call, "tool_input": GATED}).is_denial
        assert house.failures == []

    def test_nothing_is_imported_from_the_project(self, house: House) -> None:
        """A hook runs in the folder of a project, which may be anyone's, and with variables that
        the project can set.
        """
        environ = {"PYTHONPATH": house.project, "JOURNEYMAN_DATABASE": "sqlite:////nowhere/x.db"}
        for name in ("journeyman.py", "click.py", "msgspec.py", "socket.py", "select.py"):
            (Path(house.project) / name).write_text("raise SystemExit('taken over')")
        try:
            text = house.hook("SessionStart", {"source": "startup"}, **environ)
            assert REMEDY in text.output["additionalContext"]
        finally:
            for name in ("journeyman.py", "click.py", "msgspec.py", "socket.py", "select.py"):
                (Path(house.project) / name).unlink()

    def test_a_child_that_cannot_start(self, house: House) -> None:
        (house.home / "config.toml").write_text("this is not TOML")
        assert house.hook("UserPromptSubmit", {"prompt": TASK}).printed == b""
        denied = house.hook("PreToolUse", {"tool_name": "Bash"})
        assert denied.output["permissionDecisionReason"] == client.unavailable("claude-code")
        events = [line.split()[1:3] for line in house.failures]
        assert events == [["claude-code", "UserPromptSubmit"], ["claude-code", "PreToolUse"]]
        assert stat.S_IMODE((house.home / "hook-failures.log").stat().st_mode) == 0o600

    def test_a_process_that_does_not_answer_as_it_should(self, house: House) -> None:
        # Its children cannot start either, so that no other answer can come.
        (house.home / "config.toml").write_text("this is not TOML")
        misses = []
        for name, converse in IMPOSTORS.items():
            with stand_in(house, converse):
                silent = house.hook("UserPromptSubmit", {"prompt": TASK}, 1.0)
                gate = house.hook("PreToolUse", {"tool_name": "Bash"}, 1.0)
            if silent.printed:
                misses.append(f"{name}: printed {silent.printed!r}")
            if not gate.is_denial:
                misses.append(f"{name}: did not deny")
        assert not misses, "\n".join(misses)
        assert len(house.failures) == 2 * len(IMPOSTORS)

    @pytest.mark.soak
    def test_a_process_that_hangs_does_not_hold_up_harmless_calls(self, house: House) -> None:
        with stand_in(house, never):
            passed = house.hook("PreToolUse", {"tool_name": "Bash", "tool_input": HARMLESS})
            held = house.hook("PreToolUse", {"tool_name": "Bash", "tool_input": GATED})
        assert passed.printed == b""
        assert held.is_denial  # no confirmation service is running

    def test_a_database_of_a_newer_version(self, house: House) -> None:
        with sqlite3.connect(house.home / "journeyman.db") as database:
            database.execute("UPDATE schema_version SET number = 9999")
        database.close()
        assert house.hook("UserPromptSubmit", {"prompt": TASK}).printed == b""
        assert house.hook("PreToolUse", {"tool_name": "Bash"}).is_denial
        assert len(house.failures) == 2
        served = house.command("serve", "--no-jobs", code=1)
        assert "made by another version" in served.stderr

    def test_a_hanging_child_is_ended_in_time(self, house: House) -> None:
        # It cannot read its settings before something is written to them.
        (house.home / "config.toml").unlink()
        os.mkfifo(house.home / "config.toml")
        assert house.hook("SessionEnd", seconds=0.7).printed == b""
        assert house.hook("PreToolUse", {"tool_name": "Bash"}, 0.7).is_denial

    def test_input_that_never_ends_or_is_not_json(self, house: House) -> None:
        hook = house.start_hook("PreToolUse", 0.5)
        try:
            assert hook.stdin is not None
            hook.stdin.write(b"{")
            hook.stdin.flush()
            assert hook.wait(timeout=LONGEST_S) == 0
            assert hook.stdout is not None
            assert json.loads(hook.stdout.read())["hookSpecificOutput"]
        finally:
            hook.communicate()
        with house.open() as journeyman, HookServer(HostService(journeyman), house.home):
            for body in (b"", b"not JSON", b"[]", b'{"session_id": 3}', b"\xff" * 1_000):
                # A second try in a child is of no use here.
                assert house.hook("UserPromptSubmit", body).printed == b"", body
        assert house.hook("PreToolUse", b"not JSON").is_denial

    def test_how_claude_code_was_started_is_passed_on(self, house: House) -> None:
        received: list[bytes] = []

        def converse(connection: socket.socket) -> None:
            received.append(connection.makefile("rb").read())
            connection.sendall(b"ok\n")

        with stand_in(house, converse):
            for entrypoint in ("sdk-cli", "", 'x","y":"'):
                house.hook("PreToolUse", {}, CLAUDE_CODE_ENTRYPOINT=entrypoint)
        heads, bodies = zip(*(one.split(b"\n", 1) for one in received), strict=True)
        assert all(head.split()[:3] == [b"1", b"hook", b"claude-code"] for head in heads)
        named = [json.loads(body).get("journeyman_entrypoint") for body in bodies]
        assert named == ["sdk-cli", None, None]


class TestOtherUsers:
    @pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
    def test_another_user_is_turned_away(self, learned: Experience) -> None:
        # Outside pytest's folder: another run of the tests would close that to other users.
        with (
            tempfile.TemporaryDirectory() as folder,
            House(Path(folder), learned).open() as journeyman,
            HookServer(HostService(journeyman), home := Path(folder, ".journeyman")) as server,
        ):
            # Even where the permissions of files would let them in.
            home.chmod(0o755)
            home.parent.chmod(0o755)
            assert "PermissionError" in as_nobody(server.path)
            Path(server.path).chmod(0o666)
            assert as_nobody(server.path) == "nothing"
            answer = request(str(home), "status", "hermes", b"{}", timeout_s=LONGEST_S)
            assert json.loads(answer)["answered"] > 0

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
    def test_a_folder_of_another_user_is_not_trusted(self, tmp_path: Path) -> None:
        folder = Path(f"/tmp/journeyman-{NOBODY}")
        existed = folder.exists()
        folder.mkdir(exist_ok=True)
        try:
            home = "/nowhere/" + "x" * 120
            said = run_as_nobody(
                "import hashlib, os\n"
                f"os.setuid({NOBODY})\n"
                "try:\n"
                f"    print(main_module.request({home!r}, 'status', 'hermes', b'', timeout_s=1))\n"
                "except main_module.Unanswered as error:\n"
                "    print(error, error.reached)\n"
            )
            assert "belongs to another user" in said
            assert said.endswith("False")
        finally:
            if not existed:
                folder.rmdir()


def as_nobody(path: str) -> str:
    """What another user gets from the socket."""
    return run_as_nobody(
        "import os, socket\n"
        f"os.setuid({NOBODY})\n"
        "line = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        f"    line.connect({path!r})\n"
        "    line.sendall(b'1 status hermes 1000\\n{}')\n"
        "    line.shutdown(socket.SHUT_WR)\n"
        "    print(line.recv(1000).decode() or 'nothing')\n"
        "except OSError as error:\n"
        "    print(type(error).__name__ if error.errno == 13 else 'nothing')\n"
    )


def run_as_nobody(script: str) -> str:
    """Run a script that may change its user; `main_module` is the client."""
    load = (
        "import types\n"
        "main_module = types.ModuleType('client')\n"
        f"exec(open({client.__file__!r}).read(), main_module.__dict__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", load + script],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestImports:
    def test_a_session_is_stored_and_learned_soon_after_its_end(self, house: House) -> None:
        house.configure(learn=True)
        log = house.folder / ".claude" / "projects" / "garden" / "s1.jsonl"
        log.parent.mkdir(parents=True)
        log.write_text("\n".join(map(json.dumps, transcript(house.project))) + "\n")
        with house.serving("--no-jobs", "--no-confirmations"):
            opening = house.hook("SessionStart", {"source": "startup"}).output
            house.hook("Stop", {"transcript_path": str(log)})
            with house.open() as journeyman:
                until(lambda: "s1" in {one.session.id for one in journeyman.sessions.list()})
                stored = journeyman.sessions.get("s1").session
                assert stored.opening in opening["additionalContext"]
                assert len(stored.opening) == 16

    def test_what_a_killed_process_acknowledged_is_stored_by_the_next(self, house: House) -> None:
        logs = {f"k{number}": house.folder / f"k{number}.jsonl" for number in range(12)}
        for id_, log in logs.items():
            lines = [{**line, "sessionId": id_} for line in transcript(house.project)]
            log.write_text("\n".join(map(json.dumps, lines)) + "\n")
        with house.serving("--no-jobs", "--no-confirmations") as process:
            for event, (id_, log) in zip(["Stop", "SessionEnd"] * 6, logs.items(), strict=True):
                body = {"hook_event_name": event, "session_id": id_, "transcript_path": str(log)}
                house.ask("hook", "claude-code", **body)
            process.signal(signal.SIGKILL)
            process.wait()
        with house.serving("--no-jobs", "--no-confirmations"), house.open() as journeyman:
            until(lambda: {*logs} <= {one.session.id for one in journeyman.sessions.list()})


def transcript(cwd: str) -> list[dict[str, Any]]:
    """A short session of Claude Code."""
    shared = {"sessionId": "s1", "cwd": cwd, "version": "2.1.0", "isSidechain": False}
    stamp = "2026-11-17T12:00:0{}.000Z".format
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make count"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "2"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    answer = {"id": "msg_1", "role": "assistant", "model": "m", "content": [call], "usage": usage}
    return [
        {**shared, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": stamp(0),
         "message": {"role": "user", "content": "Count the notes"}},
        {**shared, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": stamp(1),
         "message": answer},
        {**shared, "type": "user", "uuid": "u3", "parentUuid": "u2", "timestamp": stamp(2),
         "message": {"role": "user", "content": [result]}},
    ]  # fmt: skip
