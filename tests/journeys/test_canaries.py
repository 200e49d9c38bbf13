"""Secrets planted wherever a session has text: none comes out again. Ordinary text does."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.canaries import CANARIES, SURVIVORS, planted
from tests.turns import agent, call, chat, user

from journeyman import Journeyman
from journeyman.mcp.tools import TOOLS

TASK = "Look after the deployment of the shop"


def session_with(text: str) -> list[dict[str, Any]]:
    """A session in which a text stands in the request, in arguments, in results, in JSON within
    JSON and in base64.
    """
    nested = json.dumps({"inner": json.dumps({"rows": [{"text": text}]})})
    coded = base64.b64encode(f"\n{text}\n".encode()).decode()
    return chat(
        user(f"{TASK}.\n{text}\nThat is all."),
        call("run", {"command": text, "times": 3}, f"output\n{text}\ndone"),
        call("send", {"body": nested}, json.dumps({"ok": True, "echo": text})),
        call("store", {"data": coded}, f"stored {coded} today"),
        call("tell", {"to": "all"}, "x" * 400 + f"\n{text}\n" + "y" * 40_000),
        call("cut", {"where": "inside"}, "y " * (8_192 - 20) + f"\n{text}\n" + " z" * 20_000),
        agent("It is looked after."),
        user("Go on with it " + "as before " * 36 + f"\n{text}\n"),  # where an intent is cut
        call("go", {"on": True}, "went on"),
        agent("It went on."),
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All that comes out of a store in which every canary was planted."""
    home = tmp_path_factory.mktemp("canaries")
    with Journeyman(home=home, environ={}) as jm:
        for name in CANARIES:
            jm.record(session_with(planted(name)), session_id=name, outcome=1.0)
        report = jm.learn()
        assert report.teaching == len(CANARIES)
        jm.build_template("all", min_messages=1, max_sessions=500)
        single = [jm.templates.create(name, name=f"of-{name}") for name in CANARIES]
        stored = [*jm.patterns.list(), *jm.patterns.list(quarantined=True)]
        openings = [
            jm.opening(TASK, template=one.name, max_patterns=20, budget_tokens=20_000)
            for one in single
        ]
        openings.append(jm.opening(TASK, max_patterns=20, budget_tokens=20_000))
        assert all(opening.choices for opening in openings)
        assert len(stored) >= 2 * len(CANARIES)
        return {
            "patterns": msgspec.json.encode([one.pattern for one in stored]).decode(),
            "templates": msgspec.json.encode(jm.templates.list()).decode(),
            "openings": json.dumps(
                [
                    one.messages(form)
                    for one in openings
                    for form in ("openai", "responses", "anthropic", "text")
                ],
                ensure_ascii=False,
            ),
            "exports": "".join(jm.templates.export(one.name).decode() for one in single),
        }


def test_no_canary_comes_out(told: dict[str, str]):
    """One test for all, so that they are planted once."""
    leaks = []
    for name, (canary, _) in CANARIES.items():
        coded = base64.b64encode(f"\n{planted(name)}\n".encode()).decode()
        for where, text in told.items():
            spelled = (canary, json.dumps(canary)[1:-1], coded)
            leaks += [f"{name} in {where}: {one}" for one in spelled if one in text]
    assert leaks == []


def test_a_tool_that_gives_something_away_is_never_shown(tmp_path: Path):
    key = CANARIES["github"][0]
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(TASK), call(key), agent("Done.")), session_id="s", outcome=1.0)
        jm.learn()
        assert jm.opening(TASK).is_empty
        told = msgspec.json.encode([one.pattern for one in jm.patterns.list()]).decode()
    assert key not in told


@pytest.mark.parametrize("query", ["ghp", "deploy", "token"])
def test_what_a_model_finds_is_redacted_whatever_it_looks_for(tmp_path: Path, query: str):
    key = CANARIES["github"][0]
    search = next(tool for tool in TOOLS if tool.name == "search_sessions")
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(f"The deploy token is {key} for now"), agent("Noted.")))
        answer = search.run(jm, {"query": query}).text
    assert key not in answer
    assert key[8:] not in answer


def test_ordinary_text_comes_out_as_it_went_in(tmp_path: Path):
    lines = [line for line in SURVIVORS if len(line) < 150]
    with Journeyman(home=tmp_path, environ={}) as jm:
        for number, line in enumerate(lines):
            turns = (user(f"Explain number {number}"), call("read", {"text": line}, line))
            jm.record(chat(*turns, agent("Read.")), session_id=f"s{number}", outcome=1.0)
        jm.learn()
        steps = {
            (step.arguments, step.result)
            for one in jm.patterns.list()
            for step in one.pattern.steps
        }
        ids = {one.pattern.id for one in jm.patterns.list()}
    kept = {result for _, result in steps}
    assert kept <= set(lines)
    # Lines that differ only in particular values are one pattern, shown once.
    assert len(kept) == len(ids) > len(lines) / 2
    assert all(json.loads(arguments)["text"] in lines for arguments, _ in steps)
