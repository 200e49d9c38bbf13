"""What the proxy reads in requests, and where openings go."""

import json
from pathlib import Path
from typing import Any

from journeyman.hosts.proxy.answers import decompressed, read_answer
from journeyman.hosts.proxy.requests import Injection, ModelRequest, chat_messages, form_of
from journeyman.templates.opening import MessageForm

EXAMPLES = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "Done."}]
OPENING = Injection.of("0123456789abcdef", "Known here: `make test`.", EXAMPLES)
TOOLS = [{"type": "function", "function": {"name": "run"}}]


def read(form: MessageForm, **fields: Any) -> ModelRequest:
    request = ModelRequest.read(form, json.dumps({"tools": TOOLS, **fields}).encode())
    assert request is not None
    return request


def opened(form: MessageForm, **fields: Any) -> Any:
    return json.loads(read(form, **fields).with_opening(OPENING))


class TestChat:
    def test_the_text_joins_the_system_message(self) -> None:
        system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "go"}
        body = opened("openai", messages=[system, user])
        joined = {"role": "system", "content": f"Be brief.\n\n{OPENING.system}"}
        assert body["messages"] == [joined, *EXAMPLES, user]

    def test_blocks_with_marks_for_the_cache_stay_before_it(self) -> None:
        block = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
        messages = [{"role": "developer", "content": [block]}, {"role": "user", "content": "go"}]
        body = opened("openai", messages=messages)
        added = {"type": "text", "text": OPENING.system}
        assert body["messages"][0]["content"] == [block, added]

    def test_without_a_system_message_it_is_one(self) -> None:
        user = {"role": "user", "content": "go"}
        body = opened("openai", messages=[user])
        added = {"role": "system", "content": OPENING.system}
        assert body["messages"] == [added, *EXAMPLES, user]


class TestAnthropic:
    def test_the_text_follows_the_system_blocks_and_the_examples_come_first(self) -> None:
        blocks = [{"type": "text", "text": "You are x.", "cache_control": {"type": "ephemeral"}}]
        messages = [{"role": "user", "content": "go"}, {"role": "system", "content": "Note."}]
        body = opened("anthropic", system=blocks, messages=messages)
        assert body["system"] == [*blocks, {"type": "text", "text": OPENING.system}]
        assert body["messages"] == [*EXAMPLES, *messages]
        assert json.dumps(body).count("cache_control") == 1

    def test_a_text_stays_a_text(self) -> None:
        messages = [{"role": "user", "content": "go"}]
        body = opened("anthropic", system="You are x.", messages=messages)
        assert body["system"] == f"You are x.\n\n{OPENING.system}"
        assert opened("anthropic", messages=messages)["system"] == OPENING.system

    def test_an_answer_that_was_begun_for_the_model_is_left_alone(self) -> None:
        request = read("anthropic", messages=[{"role": "assistant", "content": "{"}])
        assert not request.takes_opening


class TestResponses:
    def test_the_text_follows_the_developers_messages(self) -> None:
        developer = {"type": "message", "role": "developer", "content": "You are Codex."}
        user = {"type": "message", "role": "user", "content": "go"}
        body = opened("responses", input=[developer, user])
        added = {"type": "message", "role": "developer", "content": OPENING.system}
        assert body["input"] == [developer, added, *EXAMPLES, user]

    def test_a_text_becomes_a_message(self) -> None:
        body = opened("responses", input="go", instructions="Be brief.")
        assert body["input"][-1] == {"type": "message", "role": "user", "content": "go"}
        assert body["input"][0]["role"] == "developer"
        assert body["instructions"] == "Be brief."

    def test_what_the_server_keeps_is_left_alone(self) -> None:
        assert not read("responses", input="go on", previous_response_id="resp_1").takes_opening
        assert not read("responses", input="go on", conversation="conv_1").takes_opening

    def test_items_become_messages(self) -> None:
        items = [
            {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "summary": [{"text": "Look first."}], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
            {"type": "web_search_call", "id": "ws_1", "action": {"query": "q"}},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
            {"type": "message", "role": "assistant", "content": [{"text": "Finished."}]},
        ]
        user, answer, first, second, last = chat_messages(items)
        assert user["role"] == "user"
        assert (answer["reasoning"], [call["id"] for call in answer["tool_calls"]]) == (
            "Look first.",
            ["c1", "c2"],
        )
        assert (first["tool_call_id"], second["content"]) == ("c1", "done")
        assert last == {"role": "assistant", "content": "Finished."}


def test_requests_without_tools_are_left_alone() -> None:
    messages = [{"role": "user", "content": "go"}]
    for tools in ([], None, "none"):
        assert not read("openai", messages=messages, tools=tools).takes_opening


def test_paths_of_apis() -> None:
    assert form_of("POST", "/v1/messages") == "anthropic"
    assert form_of("POST", "/openai/deployments/m/chat/completions") == "openai"
    assert form_of("POST", "/responses/") == "responses"
    others = ("/v1/messages/count_tokens", "/v1/responses/compact", "/v1/models", "/v1/completions")
    assert [form_of("POST", path) for path in others] == [None] * 4
    assert form_of("GET", "/v1/responses") is None


def test_lone_surrogates_and_large_numbers_pass() -> None:
    text = '{"messages": [{"role":"user","content":"cut \\ud83d"}], "tools": [{}], "x": 1e999, '
    text += f'"y": {"9" * 100}, "z": -0.0}}'
    request = ModelRequest.read("openai", text.encode())
    assert request is not None
    body = request.with_opening(OPENING).decode()
    assert body.endswith(text[text.index('{"role"') :])


def test_the_task_and_the_folder(tmp_path: Path) -> None:
    reminder = "<system-reminder>\n# Rules\nBe nice.\n</system-reminder>"
    context = f"<environment_context>\n  <cwd>{tmp_path}</cwd>\n</environment_context>"
    codex = [{"role": "user", "content": context}, {"role": "user", "content": "count files"}]
    claude = [
        {"role": "user", "content": [{"text": reminder}, {"type": "text", "text": "count files"}]},
        {"role": "system", "content": f"# Environment\n - Primary working directory: {tmp_path}\n"},
    ]
    for messages in (codex, claude):
        request = read("openai", messages=messages)
        assert (request.task, request.folder) == ("count files", str(tmp_path))
    env = f"<env>\n  Working directory: {tmp_path}\n</env>"
    opencode = [{"role": "system", "content": env}, {"role": "user", "content": "x"}]
    assert read("openai", messages=opencode).folder == str(tmp_path)
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    shown = [{"role": "user", "content": [image, {"type": "text", "text": "what is this"}]}]
    assert read("openai", messages=shown).task == "what is this"
    gone = [{"role": "user", "content": "Working directory: /nowhere/at/all"}]
    assert read("openai", messages=gone).folder == ""


def test_an_opening_that_is_there_already() -> None:
    hooked = f"=== Journeyman: examples begin here ({OPENING.id}) ==="
    assert read("openai", messages=[{"role": "user", "content": hooked}]).contains(OPENING)
    system = {"role": "system", "content": f"x\n{OPENING.system}"}
    assert read("openai", messages=[system]).contains(OPENING)
    assert not read("openai", messages=[{"role": "user", "content": "x"}]).contains(OPENING)


def test_streams_in_unusual_forms() -> None:
    """Calls without an index, usage in every chunk, thoughts beside the text, pings."""

    def calls(id_: str) -> dict[str, Any]:
        return {"tool_calls": [{"id": id_, "function": {"name": "run", "arguments": "{}"}}]}

    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"reasoning_content": "hm"}}], "usage": {"prompt_tokens": 1}},
        {"choices": [{"delta": calls("a")}]},
        {"choices": [{"delta": calls("b")}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 9}},
    ]
    stream = b": ping\n\n" + b"".join(b"data:%s\n\n" % json.dumps(one).encode() for one in chunks)
    answer = read_answer("openai", stream, is_stream=True)
    assert answer.message is not None
    assert [call["id"] for call in answer.message["tool_calls"]] == ["a", "b"]
    assert (answer.message["reasoning_content"], answer.message["content"]) == ("hm", "")
    assert answer.usage == {"prompt_tokens": 9}


def test_encodings_that_cannot_be_undone() -> None:
    assert decompressed(b"x", "") == b"x"
    assert decompressed(b"x", "br") is None
    assert decompressed(b"not gzip", "gzip") is None
