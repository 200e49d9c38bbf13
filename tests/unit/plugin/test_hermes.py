"""The Hermes plugin against a real resident process in a thread, and against processes that do not
answer as they should.
"""

import json
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from journeyman import Journeyman
from journeyman.experience.warm_session import SCHEMA
from journeyman.learning.agent_tools import find_call
from journeyman.outcomes.judge import judge
from journeyman.plugin import client, hermes, hermes_openings
from journeyman.plugin.client import socket_path
from journeyman.plugin.hermes import HermesPlugin
from journeyman.plugin.hermes_gate import RISKY_TOOLS, UNAVAILABLE
from journeyman.plugin.hermes_link import Link
from journeyman.plugin.installation.record import Record, write_record
from journeyman.plugin.openings import _ancestors
from journeyman.plugin.server import HookServer
from journeyman.plugin.service import HostService
from journeyman.records import Call

TASK = "Check whether the index of the notes is complete"
PREAMBLE = (
    '[IMPORTANT: You are running as a scheduled cron job. SILENT: respond with exactly "[SILENT]" '
    "(nothing else) to suppress delivery.]"
)
TERMINAL = {
    "type": "function",
    "function": {
        "name": "terminal",
        "description": "Run a command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


class Context:
    """What Hermes gives a plugin, as version 0.19 has it."""

    def __init__(self) -> None:
        self.hooks: dict[str, Callable[..., Any]] = {}
        self.middleware: dict[str, Callable[..., Any]] = {}
        self.tools: dict[str, tuple[Any, Callable[..., str]]] = {}

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        self.hooks[name] = callback

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        self.middleware[kind] = callback

    def register_tool(
        self, name: str, _toolset: str, schema: Any, handler: Callable[..., str], **_more: Any
    ) -> None:
        self.tools[name] = schema, handler


class Session:
    """One session of Hermes, which sends requests through the plugin."""

    def __init__(self, context: Context, name: str, platform: str = "telegram") -> None:
        self.context = context
        self.name = name
        self.platform = platform
        self.turn = f"{name}:task:1"
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are Hermes."},
            {"role": "user", "content": TASK},
        ]

    def answered(self) -> None:
        """The model has called a tool, and got its result."""
        call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
        self.messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ]

    def request(self, **named: Any) -> dict[str, Any]:
        """The request that the model gets."""
        request = {"model": "m", "messages": list(self.messages), "tools": [TERMINAL]}
        return self.send(request, **named)

    def send(self, request: dict[str, Any], **named: Any) -> dict[str, Any]:
        given = {
            "session_id": self.name,
            "task_id": "task",
            "turn_id": self.turn,
            "platform": self.platform,
            "model": "m",
            "api_mode": "chat_completions",
            "api_call_count": 1,
        }
        answer = self.context.middleware["llm_request"](
            request=request, original_request={}, **{**given, **named}
        )
        return answer["request"] if answer else request

    def added(self, **named: Any) -> str:
        """What the plugin adds to the next request, as bytes would be compared."""
        sent = self.request(**named)["messages"]
        system = sent[0]["content"].removeprefix("You are Hermes.")
        return system + json.dumps(sent[1 : len(sent) - len(self.messages) + 1])


@contextmanager
def resident(home: Path) -> Iterator[HookServer]:
    with Journeyman(home=home, environ={}) as journeyman:
        service = HostService(journeyman)
        with HookServer(service, home) as server:
            yield server


@contextmanager
def stand_in(home: Path, answer: bytes | list[bytes] | None) -> Iterator[list[bytes]]:
    """Another process at the socket, which answers with these bytes, or with several in turn, or
    never. Yield what it was sent.
    """
    home.mkdir(exist_ok=True)
    received: list[bytes] = []
    over = threading.Event()

    def converse(connection: socket.socket) -> None:
        with connection:
            received.append(connection.makefile("rb").read())
            if answer is None:
                over.wait()
            else:
                connection.sendall(answer if isinstance(answer, bytes) else answer.pop(0))

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(connection,), daemon=True).start()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_path(str(home)))
        listener.listen()
        listener.settimeout(0.1)
        thread = threading.Thread(target=_retrying(accept, over), daemon=True)
        thread.start()
        try:
            yield received
        finally:
            over.set()
            thread.join()


def _retrying(accept: Callable[[], None], over: threading.Event) -> Callable[[], None]:
    def run() -> None:
        while not over.is_set():
            accept()

    return run


def ok(answer: Any) -> bytes:
    return b"ok\n" + json.dumps(answer).encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with experience of the folder that the test works in."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("build-index", "check-index"):  # facts about what is gone are not told
        (work / name).touch()
    monkeypatch.setenv("TERMINAL_CWD", str(work))
    folder = tmp_path / "home"
    folder.mkdir()
    configure(folder)
    with Journeyman(home=folder, environ={}) as journeyman:
        for number in range(4):
            messages: list[dict[str, Any]] = [
                {"role": "user", "content": f"Is the index of the notes complete? ({number})"}
            ]
            for at, line in enumerate(("./build-index notes.txt", "./check-index notes.txt")):
                function = {"name": "terminal", "arguments": json.dumps({"command": line})}
                call = {"id": f"c{at}", "type": "function", "function": function}
                result = json.dumps({"output": "ok", "exit_code": 0, "error": None})
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": f"c{at}", "content": result},
                ]
            messages.append({"role": "assistant", "content": "It is complete."})
            journeyman.record(messages, source="hermes", session_id=f"old-{number}", cwd=work)
        journeyman.learn()
    return folder


def configure(home: Path, hosts: str = "") -> None:
    """Write the settings: no confirmation service answers, and no process is started."""
    lines = ["[confirm]", f"port = {free_port()}", "[hosts]", 'start = "never"', hosts]
    (home / "config.toml").write_text("\n".join(lines) + "\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def plugged(home: Path, context: Any = None) -> Any:
    context = context or Context()
    HermesPlugin(Link(str(home))).register(context)
    return context


def failures(home: Path) -> str:
    path = home / "hook-failures.log"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("small", [False, True], ids=["facts", "examples"])
def test_every_request_of_a_session_carries_the_same_opening(home: Path, small: bool) -> None:
    configure(home, '[opening]\nsmall_models = ["m"]' if small else "")
    with resident(home):
        first, second = plugged(home), plugged(home)
        session = Session(first, "s1")
        opening = session.added()
        assert "build-index" in opening
        assert opening.endswith("[]") != small, "only small models get messages"
        assert first.middleware.keys() == {"llm_request", "tool_request"}
        session.answered()
        assert session.added() == opening
        session.messages.append({"role": "user", "content": "Review the conversation above and …"})
        assert session.added(turn_id="s1:other:2") == opening, "the review differs"
        resumed = Session(second, "s1")
        resumed.answered()
        assert resumed.added() == opening, "another process differs"


def test_a_compression_into_a_new_session_keeps_the_opening(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with resident(home) as server:
        context = plugged(home)
        session = Session(context, "s1")
        opening = session.added()
        session.answered()
        session.name = "s2"  # within the turn: its id still begins with s1
        assert session.added() == opening
        session.name = "s3"
        assert session.added() == opening
        kept = server._service.openings.find("hermes", "s3")
        assert kept is not None
        assert kept.state == "warm"
    monkeypatch.setattr(client, "PROGRAM", ("/bin/false",))
    session.name = "s4"
    assert session.added() == opening, "without a resident process the bytes stay"
    assert "opening" in failures(home)


def test_a_new_id_that_no_hook_reports_is_found_in_the_database(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    database = tmp_path / "state.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT)")
        rows = [("s1", None), ("s2", "s1"), ("s3", "s2"), ("a", "b"), ("b", "a")]
        connection.executemany("INSERT INTO sessions VALUES (?, ?)", rows)
        connection.commit()
    assert _ancestors(str(database), "s3") == ("s2", "s1")
    assert _ancestors(str(database), "a") == ("b", "a")
    assert _ancestors(str(database), "unknown") == ()
    assert _ancestors(str(home / "journeyman.db"), "s3") == ()
    assert _ancestors(str(tmp_path / "none.db"), "s3") == ()
    with resident(home):
        context = plugged(home)
        opening = Session(context, "s1").added()
        branch = Session(context, "s3")
        branch.answered()
        assert branch.added() == opening != "[]"


def test_what_is_left_alone(home: Path) -> None:
    with resident(home):
        context = plugged(home)
        without_tools = {"messages": Session(context, "s1").messages}
        assert Session(context, "s1").send(dict(without_tools)) == without_tools
        assert Session(context, "s2", "subagent").added() == "[]"
        assert Session(context, "s3").added(api_mode="bedrock_converse") == "[]"
        begun = Session(context, "s4")
        begun.answered()
        assert begun.added() == "[]", "it had begun without one"
        begun.messages = begun.messages[:2]
        assert begun.added() == "[]", "cold sessions stay cold"


def test_the_task_of_a_scheduled_job_is_compared_without_its_preamble() -> None:
    texts = {
        f"{PREAMBLE}\n\n{TASK}": TASK,
        f"[SYSTEM: You are a job.]\n\n{TASK}\n\nmore": f"{TASK}\n\nmore",
        TASK: TASK,
        PREAMBLE: PREAMBLE,
        "[1] is a citation\n\nread it": "[1] is a citation\n\nread it",
        "": "",
    }
    assert {text: hermes_openings.task_text(text) for text in texts} == texts
    parts = [{"type": "text", "text": f"{PREAMBLE}\n\n{TASK}"}, {"type": "image_url"}]
    assert hermes_openings.task_text(parts) == TASK


def test_the_forms_of_requests() -> None:
    user = {"role": "user", "content": "now"}
    example = [{"type": "message", "role": "user", "content": "then"}]
    blocks = [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}]
    added = hermes_openings.with_opening
    note = {"type": "text", "text": "B"}
    assert added({"system": blocks, "messages": [user]}, "anthropic", "B", []) == {
        "system": [*blocks, note],
        "messages": [user],
    }
    assert added({"messages": [user]}, "anthropic", "B", [user])["system"] == "B"
    assert added({"instructions": "A", "input": [user]}, "responses", "B", example) == {
        "instructions": "A\n\nB",
        "input": [{"role": "user", "content": "then"}, user],
    }
    assert example[0]["type"] == "message", "the opening itself was changed"
    system = {"role": "system", "content": blocks}
    assert added({"messages": [system, user]}, "openai", "B", []) == {
        "messages": [{"role": "system", "content": [*blocks, note]}, user]
    }
    assert added({"messages": [user]}, "openai", "B", [])["messages"][0]["content"] == "B"


@pytest.mark.parametrize(
    "answer",
    [
        b"error\nanother protocol",
        b"",
        b"ok\n",
        ok([1]),
        ok({}),
        ok({"state": "hot"}),
        ok({"state": "warm", "id": "1", "system": "s", "text": "t", "messages": "m"}),
        ok({"state": "warm", "id": "1", "system": None, "text": "t", "messages": []}),
    ],
)
def test_wrong_answers_leave_the_session_cold_and_block_the_call(
    answer: bytes, tmp_path: Path
) -> None:
    with stand_in(tmp_path / "home", answer):
        context = plugged(tmp_path / "home")
        session = Session(context, "s1")
        assert session.added() == "[]"
        assert called(context, "git push") == UNAVAILABLE


def test_a_home_that_cannot_be_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("not a folder")
    context = plugged(home)
    assert Session(context, "s1").added() == "[]"
    context.hooks["on_session_end"](session_id="s1")
    assert called(context, "git push") == UNAVAILABLE


def called(context: Context, command: str, call: str = "c1", tool: str = "terminal") -> Any:
    """Pass a call through the plugin, as Hermes does. Return why it is blocked, or the arguments
    that run.
    """
    given = {"tool_name": tool, "session_id": "s1", "task_id": "t", "tool_call_id": call}
    arguments = {"command": command}
    if "tool_request" in context.middleware:
        changed = context.middleware["tool_request"](**given, args=arguments, original_args={})
        arguments = changed["args"] if changed else arguments
    answer = context.hooks["pre_tool_call"](**given, args=arguments)
    return answer["message"] if answer else arguments


def test_calls_that_no_rule_names_run_and_others_need_a_service(home: Path) -> None:
    with resident(home):
        context = plugged(home)
        assert called(context, "ls") == {"command": "ls"}
        assert called(context, "rm", tool="todo") == {"command": "rm"}, "it is not gated"
        refusal = called(context, "git push --force")
    verdict = judge(_call(json.dumps({"error": refusal})))
    assert verdict.status == "refused", verdict
    assert judge(_call(json.dumps({"error": UNAVAILABLE}))).status == "refused"


def test_edited_arguments_run_and_nothing_else(tmp_path: Path) -> None:
    edited = {"decision": "allow", "arguments": {"command": "git push -n"}, "asked": True}
    with stand_in(tmp_path / "home", ok(edited)) as received:
        assert called(plugged(tmp_path / "home"), "git push") == {"command": "git push -n"}
        assert len(received) == 1

        context = plugged(tmp_path / "home")
        given = {"tool_name": "terminal", "session_id": "s1", "tool_call_id": "c9"}
        context.middleware["tool_request"](**given, args={"command": "ls"})
        other = context.hooks["pre_tool_call"](**given, args={"command": "rm -rf /srv"})
        assert "changed the arguments" in other["message"], "another plugin's change ran"


def test_denials_and_unknown_decisions(tmp_path: Path) -> None:
    for answer, expected in [
        (
            {"decision": "deny", "reason": "Blocked by Journeyman: no."},
            "Blocked by Journeyman: no.",
        ),
        ({"decision": "deny"}, UNAVAILABLE),
        ({"decision": "perhaps"}, UNAVAILABLE),
        ({"decision": "allow", "arguments": "text"}, UNAVAILABLE),
    ]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with stand_in(folder, ok(answer)):
            assert called(plugged(folder), "git push") == expected


def test_hermes_asks_the_person_at_its_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = ModuleType("tools.approval")
    approval.is_approval_bypass_active = lambda: is_off  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tools.approval", approval)
    monkeypatch.setenv("HERMES_INTERACTIVE", "1")
    sent: list[bool] = []

    def told(*, has_terminal: bool = True, platform: str = "cli") -> Any:
        """What the plugin tells Hermes where Journeyman says that the host has to ask."""
        monkeypatch.setattr(sys.stdin, "isatty", lambda: has_terminal, raising=False)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with stand_in(folder, ok({"decision": "ask", "reason": "why"})) as received:
            context = plugged(folder)
            context.hooks["on_session_start"](session_id="s1", platform=platform)
            given = {"tool_name": "terminal", "session_id": "s1", "tool_call_id": "c1"}
            answer = context.hooks["pre_tool_call"](**given, args={"command": "git push"})
            sent.append(json.loads(received[0].partition(b"\n")[2])["attended"])
        return answer["action"], answer["message"]

    is_off = False
    assert told() == ("block", UNAVAILABLE), "an older version lets such a call run"
    approval.request_tool_approval = None  # type: ignore[attr-defined]
    assert told() == ("approve", "why")
    assert told(has_terminal=False) == ("block", UNAVAILABLE)
    told(platform="telegram")
    is_off = True
    assert told() == ("block", UNAVAILABLE), "Hermes would grant it unasked"
    assert sent == [False, True, False, False, False]


def test_waiting_ends_when_the_user_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt = ModuleType("tools.interrupt")
    interrupt.is_interrupted = lambda: True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tools.interrupt", interrupt)
    with stand_in(tmp_path / "home", ok({"decision": "wait"})):
        assert "interrupted" in called(plugged(tmp_path / "home"), "git push")


def test_imports_and_the_tokens_of_reviews_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 5, "total_tokens": 17}
    asked = {"session_id": "s1", "api_request_id": "a1", "model": "m", "usage": usage}
    with stand_in(tmp_path / "home", ok({})) as received:
        context = plugged(tmp_path / "home")
        context.hooks["post_api_request"](**asked, turn_id="main")
        context.hooks["on_session_end"](session_id="s1")
        review = Session(context, "s1")
        review.messages.append({"role": "user", "content": "Review the conversation above …"})
        review.request(turn_id="review")
        context.hooks["post_api_request"](**asked, turn_id="review")
    heads = [one.partition(b"\n") for one in received]
    sent = {head.split()[1].decode(): json.loads(body) for head, _, body in heads}
    assert sent["import"]["path"] == str(tmp_path / "hermes" / "state.db")
    assert sent["usage"] == {
        "session": "s1",
        "task": "background_review",
        "model": "m",
        "input_tokens": 10,
        "output_tokens": 2,
        "cache_read_tokens": 5,
        "key": "background_review:a1",
    }
    assert [head.split()[1] for head, _, _ in heads].count(b"usage") == 1


def test_registration_as_hermes_does_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_HOME", str(home))
    monkeypatch.setattr(sys, "argv", ["hermes", "plugins", "list"])
    context = Context()
    hermes.register(context)
    assert [*context.tools] == ["warm_session"]
    with resident(home):
        assert "check-index" in Session(context, "s1").added()


def test_only_what_is_installed_is_registered(tmp_path: Path) -> None:
    events = {
        "opening": {"pre_llm_call", "on_session_start", "on_session_reset"},
        "gate": {"pre_tool_call", "on_session_start"},
        "import": {"on_session_end", "on_session_finalize", "post_api_request"},
    }
    for part, hooks in events.items():
        write_record(tmp_path, Record(host="hermes", parts=(part,)))
        context = plugged(tmp_path)
        assert context.hooks.keys() == hooks
        kinds = {"opening": ["llm_request"], "gate": ["tool_request"], "import": []}
        assert [*context.middleware] == kinds[part]
    write_record(tmp_path, Record(host="hermes"))
    assert plugged(tmp_path).hooks.keys() == set().union(*events.values())


def test_the_tool(home: Path) -> None:
    context = plugged(home)
    schema, handler = context.tools["warm_session"]
    assert schema == SCHEMA
    with resident(home):
        assert json.loads(handler({"action": "list"}, task_id="t"))["success"] is True
        assert json.loads(handler({"action": "no such"}))["success"] is False


def test_the_gated_tools_are_those_that_rules_can_read() -> None:
    arguments = {"command": "x", "code": "x", "path": "x", "content": "x", "patch": "x"}
    replaced = {"path": "x", "old_string": "a", "new_string": "b"}
    for tool in RISKY_TOOLS:
        found = [find_call(tool, json.dumps(one)) for one in (arguments, replaced)]
        assert any(
            one and one.operation in ("run", "run_code", "edit", "write", "patch") for one in found
        )


def test_registration_needs_only_the_standard_library() -> None:
    program = (
        "import sys\n"
        "before = {*sys.modules, *sys.stdlib_module_names}\n"
        "import journeyman.plugin.hermes\n"
        "names = {name.partition('.')[0] for name in sys.modules} - before\n"
        "print(sorted(name for name in names if not name.startswith('_')))\n"
        "print(sorted(name for name in sys.modules if name.startswith('journeyman.')))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    outside, ours = map(eval, done.stdout.splitlines())
    assert outside == ["journeyman"]
    assert {name for name in ours if not name.startswith("journeyman.plugin")} == {
        "journeyman.version"
    }


def _call(result: str) -> Call:
    return Call(id="c1", tool="terminal", arguments='{"command": "git push"}', result=result)
