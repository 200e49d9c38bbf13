"""The proxy between agents and servers, over real HTTP: what passes, what is added, what is stored,
and what happens when either side goes.
"""

import gzip
import http.client
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import pytest
from tests.hosts import TASK, HostHome, until
from tests.program import Command
from tests.proxy import (
    ANTHROPIC_TOOLS,
    KEY,
    RESPONSES_TOOLS,
    TOOLS,
    RawConnection,
    RawServer,
    anthropic_loop,
    chat_chunk,
    chat_loop,
    continued_chat,
    http_client,
    proxied,
)
from tests.waiting import LONGEST_S

from journeyman import Journeyman
from journeyman.records import SessionOverview
from journeyman.testing import ScriptedServer, calls, says

MARK = "Commands that work here, likeliest for this task first"
EXAMPLE = "Look whether the index of the notes is up to date"
WORK = [
    calls(("Bash", {"command": "./check-index notes.txt"})),
    calls(("Bash", {"command": "make count"}), ("Bash", {"command": "ls"})),
    says("The index is complete."),
]
SCRIPT = {"index of the notes is complete": WORK, "go on": [says("I went on.")]}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with experience. Do not change it: copy it."""
    home = HostHome(tmp_path_factory.mktemp("learned"))
    home.write_experience()
    return home.folder


@pytest.fixture
def home(learned: Path, tmp_path: Path) -> HostHome:
    copy = HostHome.__new__(HostHome)
    copy.folder, copy.work = learned, learned / "work"
    copy.journeyman = tmp_path / "journeyman"
    copy.journeyman.mkdir()
    with (
        closing(sqlite3.connect(learned / ".journeyman/journeyman.db")) as source,
        closing(sqlite3.connect(copy.journeyman / "journeyman.db")) as target,
    ):
        source.backup(target)
    (copy.journeyman / "config.toml").write_text("[hosts]\nlearn = false\n")
    return copy


@pytest.fixture
def journeyman(home: HostHome) -> Iterator[Journeyman]:
    with home.open() as opened:
        yield opened


def recorded(journeyman: Journeyman, count: int = 1) -> list[SessionOverview]:
    """Wait for so many sessions of the proxy, and return them."""
    until(lambda: len(journeyman.sessions.list(source="proxy")) >= count)
    return journeyman.sessions.list(source="proxy")


def calls_of(journeyman: Journeyman, session: SessionOverview) -> list[tuple[str, str | None]]:
    found = journeyman.sessions.calls(session.session.id)
    return [(json.loads(call.arguments)["command"], call.result) for call in found]


class TestOpenings:
    def test_every_request_of_a_session_has_the_same_opening(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.base_url, folder=str(home.work)) as proxy,
            http_client(proxy.url) as client,
        ):
            chat_loop(client, TASK)
            without_tools = {"messages": [{"role": "user", "content": TASK}], "model": "m"}
            client.post("/v1/chat/completions", json=without_tools)
        *worked, plain = [one.body["messages"] for one in server.requests]
        assert len(worked) == 3
        lead = worked[0][:-1]
        assert MARK in lead[0]["content"]
        assert lead[1] == {"role": "user", "content": EXAMPLE}
        assert all(messages[: len(lead)] == lead for messages in worked)
        assert plain == without_tools["messages"]
        (session,) = journeyman.sessions.list(source="proxy")
        assert session.session.opening

    def test_a_restarted_proxy_goes_on_with_the_session(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with ScriptedServer(SCRIPT) as server:
            with (
                proxied(journeyman, server.url, folder=str(home.work)) as proxy,
                http_client(proxy.url) as client,
            ):
                messages = chat_loop(client, TASK)
            # What is learned meanwhile does not change the session.
            journeyman.learn()
            with (
                proxied(journeyman, server.url, folder=str(home.work)) as proxy,
                http_client(proxy.url) as client,
            ):
                messages += [{"role": "user", "content": "go on"}]
                continued_chat(client, messages)
        first, *_, last = [one.body["messages"] for one in server.requests]
        lead = first[:-1]
        assert MARK in lead[0]["content"]
        assert last[: len(lead)] == lead
        (session,) = journeyman.sessions.list(source="proxy")
        assert (session.messages, session.calls) == (len(messages), 3)

    def test_all_three_apis(self, journeyman: Journeyman, home: HostHome) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work)) as proxy,
        ):
            with http_client(proxy.url) as client:
                anthropic_loop(client, TASK)
            sdk = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0)
            given: Any = [{"role": "user", "content": TASK}]
            for _ in range(3):
                tools: Any = RESPONSES_TOOLS
                with sdk.responses.stream(model="m", input=given, tools=tools) as stream:
                    answer = stream.get_final_response()
                given += [item.model_dump(exclude_none=True) for item in answer.output]
                given += [
                    {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
                    for item in answer.output
                    if item.type == "function_call"
                ]
            sdk.close()
        anthropic, responses = (
            [one.body for one in server.requests if one.path == path]
            for path in ("/v1/messages", "/v1/responses")
        )
        assert len(anthropic) == len(responses) == 3
        for body in anthropic:
            assert MARK in body["system"]
            assert body["messages"][0] == {"role": "user", "content": EXAMPLE}
        for body in responses:
            assert body["input"][0]["role"] == "developer"
            assert MARK in body["input"][0]["content"]
            assert body["input"][1]["content"] == EXAMPLE
        assert len({body["system"] for body in anthropic}) == 1

    def test_an_opening_that_is_late_leaves_the_whole_session_cold(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work), deadline_s=0.0) as proxy,
            http_client(proxy.url) as client,
        ):
            chat_loop(client, TASK)
        assert len(server.requests) == 3
        assert not [one for one in server.requests if MARK in json.dumps(one.body)]
        (session,) = recorded(journeyman)
        assert (session.calls, session.session.opening) == (3, "")

    def test_a_locked_database_delays_no_session(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        database = home.journeyman / "journeyman.db"
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work), deadline_s=1.0) as proxy,
            http_client(proxy.url) as client,
        ):
            with closing(sqlite3.connect(database, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                messages = chat_loop(client, TASK)
                other.execute("ROLLBACK")
            messages += [{"role": "user", "content": "go on"}]
            continued_chat(client, messages)
        assert not [one for one in server.requests if MARK in json.dumps(one.body)]
        # What could not be recorded then is recorded with the next answer.
        (session,) = recorded(journeyman)
        assert (session.messages, session.calls) == (len(messages), 3)


class TestRecording:
    def test_agents_without_logs_are_recorded_and_learned_from(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work)) as proxy,
            http_client(proxy.url) as client,
        ):
            chat_loop(client, TASK)
            anthropic_loop(client, TASK)
        sessions = recorded(journeyman, 2)
        assert len(sessions) == 2
        used = [one.reply.tokens for one in server.requests]
        for session in sessions:
            commands = [command for command, _ in calls_of(journeyman, session)]
            assert commands == ["./check-index notes.txt", "make count", "ls"]
            assert all(result for _, result in calls_of(journeyman, session))
            assert session.session.project == journeyman.find_project(home.work)
            assert session.session.title == TASK
            assert session.session.model == "m"
            texts = [one.text for one in journeyman.sessions.messages(session.session.id)]
            assert not [text for text in texts if MARK in text or text == EXAMPLE]
        assert sum(one.tokens.input_tokens or 0 for one in sessions) == sum(
            one.input_tokens or 0 for one in used
        )
        assert sum(one.tokens.output_tokens or 0 for one in sessions) == sum(
            one.output_tokens or 0 for one in used
        )
        before = journeyman.playbook(home.work).sessions
        journeyman.learn()
        assert journeyman.playbook(home.work).sessions == before + 2

    def test_it_learns_by_itself(self, home: HostHome) -> None:
        (home.journeyman / "config.toml").write_text("")
        with home.open() as journeyman, ScriptedServer(SCRIPT) as server:
            before = journeyman.playbook(home.work).sessions
            options = {"folder": str(home.work), "learn_after_s": 0.1}
            with (
                proxied(journeyman, server.url, **options) as proxy,
                http_client(proxy.url) as client,
            ):
                chat_loop(client, TASK)
                until(lambda: journeyman.playbook(home.work).sessions == before + 1)

    def test_a_stream_is_recorded_as_well_as_a_whole_answer(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.base_url) as proxy,
        ):
            sdk = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0)
            messages: Any = [{"role": "user", "content": TASK}]
            for _ in range(3):
                tools: Any = TOOLS
                with sdk.chat.completions.stream(
                    model="m",
                    messages=messages,
                    tools=tools,
                    stream_options={"include_usage": True},
                ) as stream:
                    message = stream.get_final_completion().choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": "ok"}
                    for call in message.tool_calls or ()
                ]
            sdk.close()
        (session,) = recorded(journeyman)
        assert session.calls == 3
        assert session.tokens.input_tokens == sum(
            one.reply.tokens.input_tokens or 0 for one in server.requests
        )

    def test_the_same_task_again_is_another_session(self, journeyman: Journeyman) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            for _ in range(3):
                chat_loop(client, TASK)
        assert [one.calls for one in recorded(journeyman, 3)] == [3, 3, 3]

    def test_many_agents_with_the_same_task_at_once(self, journeyman: Journeyman) -> None:
        agents = 12
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url) as proxy,
            ThreadPoolExecutor(agents) as pool,
        ):

            def work(_number: int) -> list[str]:
                with http_client(proxy.url) as client:
                    messages = chat_loop(client, TASK)
                return [one["tool_call_id"] for one in messages if one["role"] == "tool"]

            expected = sorted(pool.map(work, range(agents)))
        sessions = recorded(journeyman, agents)
        found = [journeyman.sessions.calls(one.session.id) for one in sessions]
        assert sorted([call.id for call in calls_] for calls_ in found) == expected

    def test_agents_that_record_themselves_are_not_recorded(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work)) as proxy,
            http_client(proxy.url) as client,
        ):
            client.headers["x-claude-code-session-id"] = "11111111-2222"
            anthropic_loop(client, TASK)
            client.headers["x-claude-code-agent-id"] = "a1"
            anthropic_loop(client, "a separate errand")
        assert [MARK in one.body["system"] for one in server.requests] == [True] * 3 + [False]
        assert journeyman.sessions.list(source="proxy") == []
        # When its own log is imported, it is known to have been warm.
        journeyman.record(
            [{"role": "user", "content": TASK}], source="claude_code", session_id="11111111-2222"
        )
        assert journeyman.sessions.get("11111111-2222").session.opening

    def test_nothing_is_recorded_or_added_if_not_wanted(
        self, journeyman: Journeyman, home: HostHome
    ) -> None:
        with ScriptedServer(SCRIPT) as server:
            switched_off = {"records": False, "opens": False, "folder": str(home.work)}
            with (
                proxied(journeyman, server.url, **switched_off) as proxy,
                http_client(proxy.url) as client,
            ):
                chat_loop(client, TASK)
        assert not [one for one in server.requests if MARK in json.dumps(one.body)]
        assert journeyman.sessions.list(source="proxy") == []

    def test_keys_are_never_stored_or_logged(
        self, journeyman: Journeyman, home: HostHome, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG", logger="journeyman")
        with (
            ScriptedServer(SCRIPT) as server,
            proxied(journeyman, server.url, folder=str(home.work)) as proxy,
            http_client(proxy.url) as client,
        ):
            chat_loop(client, TASK)
            anthropic_loop(client, TASK)
            client.get(f"/v1/models?key={KEY}")
        assert all(KEY in str(one.headers) for one in server.requests)
        recorded(journeyman, 2)
        stored = [path for path in home.journeyman.rglob("*") if path.is_file()]
        assert stored
        assert not [path for path in stored if KEY.encode() in path.read_bytes()]
        assert KEY not in caplog.text


class TestPassage:
    def test_each_token_as_it_comes(self, journeyman: Journeyman) -> None:
        """The server sends a token only after the client has received the one before."""
        received = threading.Semaphore(0)

        def respond(connection: RawConnection) -> None:
            connection.stream()
            for number in range(20):
                connection.piece(chat_chunk(str(number)))
                assert received.acquire(timeout=LONGEST_S)
            connection.piece(chat_chunk("", "stop"))
            connection.end()

        body = {"messages": [{"role": "user", "content": "count"}], "tools": TOOLS, "stream": True}
        with (
            RawServer(respond) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
            client.stream("POST", "/v1/chat/completions", json=body) as answer,
        ):
            chunks = []
            for chunk in answer.iter_raw():
                chunks.append(chunk)
                received.release()
        assert chunks[:20] == [chat_chunk(str(number)) for number in range(20)]

    def test_what_is_not_ours_passes_as_it_is(self, journeyman: Journeyman) -> None:
        def respond(connection: RawConnection) -> None:
            connection.head(
                418,
                content_length="5",
                content_type="application/x-tea",
                retry_after="7",
                anthropic_ratelimit_requests_remaining="3",
                keep_alive="timeout=5",
            )
            connection.wfile.write(b"short")

        with RawServer(respond) as server, proxied(journeyman, f"{server.url}/api/v1") as proxy:
            target = "/v1/messages?beta=true&x=%2F%20y"
            body = b' {"messages" : [ {"role":"user","content":"no tools"} ] , "n": 1.50}\n'
            headers = {
                "X-Api-Key": KEY,
                "Anthropic-Beta": "a,b",
                "Accept-Encoding": "br, zstd",
                "Content-Type": "application/json",
                "Connection": "keep-alive, x-hop",
                "X-Hop": "1",
                "TE": "trailers",
            }
            with closing(http.client.HTTPConnection(urlsplit(proxy.url).netloc)) as connection:
                connection.request("POST", target, body, headers)
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (418, b"short")
                assert answer.headers["Anthropic-Ratelimit-Requests-Remaining"] == "3"
                assert answer.headers["Content-Type"] == "application/x-tea"
                assert answer.headers["Retry-After"] == "7"
                assert answer.headers["Keep-Alive"] is None
            (request,) = server.requests
            assert request.target == "/api/v1/messages?beta=true&x=%2F%20y"
            assert request.body == body
            assert request.fields["anthropic-beta"] == "a,b"
            assert request.fields["x-api-key"] == KEY
            assert request.fields["accept-encoding"] == "br, zstd"
            assert request.fields["host"] == urlsplit(server.url).netloc
            assert not {"x-hop", "te", "keep-alive"} & request.fields.keys()

    def test_other_paths_and_methods_pass(self, journeyman: Journeyman) -> None:
        def respond(connection: RawConnection) -> None:
            connection.whole(b"" if connection.command == "HEAD" else b"{}")

        def pieces() -> Iterator[bytes]:
            for _ in range(3):
                yield b"\x00\xff" * 1_000

        with (
            RawServer(respond) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            assert client.head("/").status_code == 200
            assert client.get("/v1/models").json() == {}
            client.post("/v1/files", content=pieces())
            client.post("/v1beta/models/m:streamGenerateContent?alt=sse&key=k", json={"tools": [1]})
            client.delete("/v1/files/1")
        sent = [(one.method, one.target, len(one.body)) for one in server.requests]
        assert sent == [
            ("HEAD", "/", 0),
            ("GET", "/v1/models", 0),
            ("POST", "/v1/files", 6_000),
            ("POST", "/v1beta/models/m:streamGenerateContent?alt=sse&key=k", 13),
            ("DELETE", "/v1/files/1", 0),
        ]

    def test_compressed_requests_and_answers(self, journeyman: Journeyman, home: HostHome) -> None:
        def respond(connection: RawConnection) -> None:
            message = {"role": "assistant", "content": "Packed."}
            body = {"model": "m", "choices": [{"index": 0, "message": message}]}
            packed = gzip.compress(json.dumps(body).encode())
            connection.whole(packed, content_type="application/json", content_encoding="gzip")

        request = {"messages": [{"role": "user", "content": TASK}], "tools": TOOLS}
        content = json.dumps(request).encode()
        with (
            RawServer(respond) as server,
            proxied(journeyman, server.url, folder=str(home.work)) as proxy,
            http_client(proxy.url) as client,
        ):
            client.headers["accept-encoding"] = "br, gzip;q=0.5"
            packed = {"content-encoding": "gzip", "content-type": "application/json"}
            answer = client.post(
                "/v1/chat/completions", content=gzip.compress(content), headers=packed
            )
            assert answer.json()["choices"][0]["message"]["content"] == "Packed."
            unreadable = {"content-encoding": "br", "content-type": "application/json"}
            client.post("/v1/chat/completions", content=b"\x1b\x00\xff", headers=unreadable)
            (session,) = recorded(journeyman)
        first, second = server.requests
        assert MARK in json.loads(first.body)["messages"][0]["content"]
        assert "content-encoding" not in first.fields
        assert first.fields["accept-encoding"] == "gzip;q=0.5"
        assert (second.body, second.fields["content-encoding"]) == (b"\x1b\x00\xff", "br")
        assert session.messages == 2

    def test_errors_of_the_server_pass_and_cost_no_session(self, journeyman: Journeyman) -> None:
        answers = iter([(429, {"retry_after": "1"}), (500, {}), (200, {})])

        def respond(connection: RawConnection) -> None:
            status, headers = next(answers)
            message = {"role": "assistant", "content": "At last."}
            body = {"error": "no"} if status > 200 else {"choices": [{"message": message}]}
            connection.whole(json.dumps(body).encode(), status, **headers)

        body = {"messages": [{"role": "user", "content": "try"}], "tools": TOOLS}
        with (
            RawServer(respond) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            statuses = [
                client.post("/v1/chat/completions", json=body).status_code for _ in range(3)
            ]
        assert statuses == [429, 500, 200]
        (session,) = recorded(journeyman)
        assert session.messages == 2


class TestFailures:
    def test_an_upstream_that_is_down(self, journeyman: Journeyman) -> None:
        with RawServer(lambda _: None) as server:
            address = server.url
        body = {"messages": [{"role": "user", "content": "x"}], "tools": ANTHROPIC_TOOLS}
        with (
            proxied(journeyman, address) as proxy,
            http_client(proxy.url) as client,
        ):
            for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/models"):
                answer = client.post(path, json=body)
                assert answer.status_code == 502
                message = answer.json()["error"]["message"]
                assert f"cannot reach {address}" in message
                assert "Check that the server runs, and the --upstream" in message
            assert client.post("/v1/messages", json=body).json()["type"] == "error"

    def test_an_upstream_that_breaks_off(self, journeyman: Journeyman) -> None:
        """The client sees that the answer has no end, and the proxy goes on."""
        is_first = iter([True, False])

        def respond(connection: RawConnection) -> None:
            connection.stream()
            connection.piece(chat_chunk("half a "))
            if next(is_first):
                connection.close_connection = True
                connection.connection.close()
                return
            connection.piece(chat_chunk("thought", "stop"))
            connection.end()

        body = {"messages": [{"role": "user", "content": "think"}], "tools": TOOLS, "stream": True}
        with (
            RawServer(respond) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                received = answer.iter_raw()
                assert next(received) == chat_chunk("half a ")
                with pytest.raises(httpx2.RemoteProtocolError):
                    next(received)
            again = client.post("/v1/chat/completions", json=body)
            assert again.content == chat_chunk("half a ") + chat_chunk("thought", "stop")
        (session,) = recorded(journeyman)
        texts = [one.text for one in journeyman.sessions.messages(session.session.id)]
        assert texts == ["think", "half a thought"]

    def test_a_client_that_goes(self, journeyman: Journeyman) -> None:
        """The upstream's connection is closed, so that it need not go on."""

        def respond(connection: RawConnection) -> None:
            connection.stream()
            while True:
                connection.piece(chat_chunk("word "))
                time.sleep(0.01)

        body = {"messages": [{"role": "user", "content": "talk"}], "tools": TOOLS, "stream": True}
        with RawServer(respond) as server, proxied(journeyman, server.url) as proxy:
            with (
                http_client(proxy.url) as client,
                client.stream("POST", "/v1/chat/completions", json=body) as answer,
            ):
                next(answer.iter_raw())
            assert server.hung_up.wait(LONGEST_S)
            (session,) = recorded(journeyman)
        assert session.messages == 1

    def test_a_client_that_goes_before_the_first_token(self, journeyman: Journeyman) -> None:
        arrived = threading.Event()

        def respond(connection: RawConnection) -> None:
            arrived.set()
            assert connection.rfile.read(1) == b""  # it hangs up
            connection.server.owner.hung_up.set()

        body = {"messages": [{"role": "user", "content": "talk"}], "tools": TOOLS}
        with RawServer(respond) as server, proxied(journeyman, server.url) as proxy:
            with (
                http_client(proxy.url) as client,
                pytest.raises(httpx2.ReadTimeout),
            ):
                client.post("/v1/chat/completions", json=body, timeout=0.5)
            assert arrived.is_set()
            assert server.hung_up.wait(LONGEST_S)

    def test_websockets_are_refused_at_once(self, journeyman: Journeyman) -> None:
        headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        with (
            RawServer(lambda connection: connection.whole(b"{}")) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            assert client.get("/v1/responses", headers=headers).status_code == 426
            assert client.get("/v1/models").status_code == 200
        assert len(server.requests) == 1

    def test_pages_in_a_browser_may_not_use_it(self, journeyman: Journeyman) -> None:
        with (
            RawServer(lambda connection: connection.whole(b"{}")) as server,
            proxied(journeyman, server.url) as proxy,
            http_client(proxy.url) as client,
        ):
            for headers in (
                {"host": "evil.example"},
                {"origin": "https://evil.example"},
                {"origin": "null"},
            ):
                answer = client.get("/v1/models", headers=headers)
                assert (answer.status_code, server.requests) == (403, [])
                assert "Journeyman's proxy refuses this" in answer.text
            for origin in ("http://localhost:3000", "vscode-webview://x"):
                assert client.get("/v1/models", headers={"origin": origin}).status_code == 200


class TestCommand:
    def test_it_serves_until_it_is_interrupted(self, command: Command) -> None:
        with ScriptedServer(SCRIPT) as server:
            upstream = server.base_url
            process = command.start("proxy", "--upstream", upstream, "--port", 0, "--json")
            until(lambda: "}" in process.printed or not process.running)
            started = json.loads(process.printed)
            assert started["upstream"] == upstream
            with http_client(started["url"]) as client:
                messages = chat_loop(client, TASK)
            process.signal(signal.SIGINT)
            ended = process.wait(code=0)
        assert len(server.requests) == 3
        assert KEY not in ended.stderr
        (session,) = command.json("sessions", "list")
        assert (session["session"]["source"], session["messages"]) == ("proxy", len(messages))

    def test_it_says_what_to_set_and_what_happened(self, command: Command) -> None:
        with ScriptedServer(SCRIPT) as server:
            process = command.start("proxy", "--upstream", server.url, "--port", 0)
            until(lambda: "sessions" in process.printed or not process.running)
            assert "/v1   for OpenAI's API" in process.printed
            url = process.printed.split("base URL")[1].split()[0].removesuffix("/v1")
            with http_client(url) as client:
                chat_loop(client, TASK)
            until(lambda: "is cold: " in process.printed)
            process.signal(signal.SIGTERM)
            assert process.wait(code=0).stdout.endswith("Stopped.\n")

    def test_a_stream_in_progress_does_not_hold_it(self, command: Command) -> None:
        def respond(connection: RawConnection) -> None:
            connection.stream()
            while True:
                connection.piece(chat_chunk("word "))
                time.sleep(0.02)

        body = {"messages": [{"role": "user", "content": "talk"}], "tools": TOOLS, "stream": True}
        with RawServer(respond) as server:
            process = command.start("proxy", "--upstream", server.url, "--port", 0, "--json")
            until(lambda: "}" in process.printed or not process.running)
            with (
                http_client(json.loads(process.printed)["url"]) as client,
                client.stream("POST", "/v1/chat/completions", json=body) as answer,
            ):
                next(answer.iter_raw())
                process.signal(signal.SIGINT)
                process.wait(code=0)

    def test_wrong_options_and_a_port_in_use(self, command: Command) -> None:
        with ScriptedServer({}) as server:
            port = urlsplit(server.url).port
            taken = command("proxy", "--upstream", "http://127.0.0.1:1", "--port", port, code=1)
            assert "another program uses it" in taken.stderr
            assert "Choose another with --port" in taken.stderr
            own = command("proxy", "--upstream", server.url, "--port", port, code=1)
            assert "is the proxy's own address" in own.stderr
        for wrong in ("api.openai.com", "ftp://x", "https://", "https://u:p@x", "http://x?y=1"):
            bad = command("proxy", "--upstream", wrong, "--port", 0, code=1)
            assert "cannot be used" in bad.stderr
            assert "Pass the address of the API, such as" in bad.stderr
        outside = ("proxy", "--upstream", "http://x", "--host", "0.0.0.0")
        assert "Use 127.0.0.1 or ::1" in command(*outside, code=1).stderr
        assert "Missing option '--upstream'" in command("proxy", code=2).stderr
