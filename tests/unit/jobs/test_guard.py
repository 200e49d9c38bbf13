"""The model of a job, its context window, and the tools of its agent."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.tables import table

from journeyman import Journeyman
from journeyman.agent.tools.tool import Tool, worked
from journeyman.gate.decision import Risk
from journeyman.jobs.guard import ModelRoute, check_window, is_remote, is_simple, select_tools
from journeyman.records.errors import JobBlocked, WrongInput
from journeyman.records.job import Job, JobId, Schedule
from journeyman.settings import JobsSettings

SCHEDULE = Schedule(text="every 1h", kind="every", timezone="UTC", seconds=3600)
SIMPLE = Job(id=JobId("j1"), name="n", prompt="Tell me the weather in Graz.", schedule=SCHEDULE)
MINIMUM = JobsSettings().min_context


def routed(job: Job, home: Path, *, simple: str = "small") -> ModelRoute:
    (home / "config.toml").write_text(
        '[model]\nname = "usual"\n[providers.far]\nbase_url = "http://127.0.0.1:9"\n'
        'name = "distant"\n[providers.near]\nbase_url = "http://127.0.0.1:9"\n'
        f'[jobs]\nsimple_model = "{simple}"\nsimple_provider = "near"\nsimple_words = 8\n'
    )
    with Journeyman(home=home, environ={}) as journeyman:
        return journeyman.jobs._runner.route(job)


@table(
    ("changes", "model", "provider"),
    [
        ({}, "small", "near"),
        ({"prompt": "Refactor the parser."}, "small", "near"),
        ({"prompt": "Say what day it is, and then all the others."}, "usual", ""),
        ({"prompt": "x" * 400}, "usual", ""),
        ({"skills": ("s",)}, "usual", ""),
        ({"script": "a.py"}, "usual", ""),
        ({"model": "mine", "provider": "far"}, "mine", "far"),
        ({"model": "mine"}, "mine", ""),
        ({"provider": "far"}, "distant", "far"),
    ],
)
def test_model_is_declared_or_selected_by_prompt_size(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, object], model: str, provider: str
) -> None:
    found = routed(replace(SIMPLE, **changes), tmp_path_factory.mktemp("row"))
    assert found == ModelRoute(model=model, provider=provider)


def test_without_a_simple_model_it_is_the_usual_one(tmp_path: Path) -> None:
    assert routed(SIMPLE, tmp_path, simple="") == ModelRoute(model="usual", provider="")


def test_word_limit_of_simple_prompts() -> None:
    assert is_simple(replace(SIMPLE, prompt="one two three"), 3)
    assert not is_simple(replace(SIMPLE, prompt="one two three"), 2)


def check(window: int | None) -> tuple[str, ...]:
    return check_window(window, minimum=MINIMUM, model="small-1b", place="model.context_length")


@table("window", [MINIMUM, MINIMUM + 1, 1_000_000])
def test_sufficient_window(window: int) -> None:
    assert check(window) == ()


@table("window", [0, 8_192, MINIMUM - 1])
def test_window_below_the_minimum_blocks_the_job(window: int) -> None:
    with pytest.raises(JobBlocked) as caught:
        check(window)
    told = str(caught.value)
    for part in ("small-1b", f"{window:,} tokens", "64,000", "--model"):
        assert part in told
    assert "set model.context_length" in told


def test_unknown_window_gives_a_warning() -> None:
    (warning,) = check(None)
    assert warning.startswith("The context window of small-1b is unknown; ")
    assert "64,000" in warning
    assert "runs anyway" in warning


def tool(name: str, risk: Risk) -> Tool:
    return Tool(name=name, description="", parameters={}, run=lambda _call: worked(), risk=risk)


AVAILABLE = (
    tool("terminal", "command"),
    tool("execute_code", "code"),
    tool("read_file", "read"),
    tool("patch", "write"),
    tool("memory", "knowledge"),
    tool("request_confirmation", "report"),
)
NAMES = tuple(one.name for one in AVAILABLE)


def test_the_usual_tools_run_no_commands_for_a_model_elsewhere() -> None:
    assert select_tools(AVAILABLE, None, remote=True) == NAMES[2:]
    assert select_tools(AVAILABLE, None, remote=False) == NAMES
    assert select_tools(AVAILABLE, (), remote=False) == ()


@table("remote", [True, False], ids=["remote", "local"])
def test_selected_tools_keep_the_order_of_the_available_ones(remote: bool) -> None:
    wanted = ("patch", "terminal", "read_file", "patch")
    assert select_tools(AVAILABLE, wanted, remote=remote) == ("terminal", "read_file", "patch")


def test_usual_stands_for_the_default_tools() -> None:
    chosen = select_tools(AVAILABLE, ("usual", "terminal"), remote=True)
    assert chosen == tuple(name for name in NAMES if name != "execute_code")


def test_unknown_tool_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(WrongInput, match=r"'terminl'\. Valid tools are: terminal"):
        select_tools(AVAILABLE, ("terminl",), remote=False)


@table(
    "address",
    [
        "http://localhost:8080/v1",
        "http://LOCALHOST./v1",
        "http://llm.localhost/v1",
        "http://127.0.0.1:1234",
        "http://127.9.9.9",
        "http://[::1]:80/v1",
        "http://[::ffff:127.0.0.1]/v1",
    ],
)
def test_loopback_addresses_are_not_remote(address: str) -> None:
    assert not is_remote(address, "127.0.0.1")
    assert not is_remote("", "embedded")


@table(
    "address",
    [
        "",
        "https://api.example.org/v1",
        "http://localhost@example.org",
        "http://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://example.org\\@127.0.0.1",
        "http://192.168.1.5:8080",
        "http://0.0.0.0:8080",
        "http://[::2]/",
        "http://[broken",
        "localhost:8080",
    ],
    ids=ascii,
)
def test_everything_else_is_remote(address: str) -> None:
    assert is_remote(address, "some")
