"""Which tools a job's agent has."""

import pytest
from tests.tables import table

from journeyman.records.errors import WrongInput
from journeyman.schedule.job_tools import chosen_tools, is_remote

AVAILABLE = (
    *("terminal", "execute_code", "read_file", "write_file", "patch", "search_files"),
    *("session_search", "memory", "skills_list", "skill_view", "skill_manage"),
    *("warm_session", "request_confirmation"),
)


def test_the_usual_tools_run_no_commands_for_a_model_elsewhere() -> None:
    assert chosen_tools(AVAILABLE, None, remote=True) == AVAILABLE[2:]
    assert chosen_tools(AVAILABLE, None, remote=False) == AVAILABLE
    assert chosen_tools(AVAILABLE, (), remote=False) == ()


def test_tools_for_schedules_messages_and_questions_are_never_usual() -> None:
    names = ("cronjob", "Send-Message", "read_file", "clarify")
    assert chosen_tools(names, None, remote=False) == ("read_file",)
    assert chosen_tools(names, ("usual",), remote=False) == ("read_file",)


@table("remote", [True, False], ids=["remote", "near"])
def test_what_is_chosen_is_had_in_the_order_of_the_available(remote: bool) -> None:
    wanted = ("patch", "terminal", "read_file", "patch")
    assert chosen_tools(AVAILABLE, wanted, remote=remote) == ("terminal", "read_file", "patch")


def test_usual_stands_for_the_usual_ones() -> None:
    chosen = chosen_tools(AVAILABLE, ("usual", "terminal"), remote=True)
    assert chosen == tuple(name for name in AVAILABLE if name != "execute_code")


@table(
    ("name", "why"),
    [
        ("cronjob", "journeyman jobs"),
        ("jobs", "journeyman jobs"),
        ("send_message", "--deliver"),
        ("Notify", "--deliver"),
        ("ask-user", "prompt"),
        ("clarify", "prompt"),
    ],
)
def test_a_tool_that_no_job_has_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(WrongInput) as caught:
        chosen_tools((*AVAILABLE, name), ("usual", name), remote=False)
    assert repr(name) in str(caught.value)
    assert why in str(caught.value)


def test_an_unknown_tool_is_refused_with_close_ones() -> None:
    with pytest.raises(WrongInput, match=r"'terminl', and there is none\. Did you mean terminal"):
        chosen_tools(AVAILABLE, ("terminl",), remote=False)


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
