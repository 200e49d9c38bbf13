"""Secrets planted wherever a session has text: none comes out again. Ordinary text does."""

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.canaries import CANARIES, SURVIVORS, planted
from tests.tables import table
from tests.turns import Turn, agent, call, chat, user

from journeyman import Journeyman
from journeyman.mcp.tools import TOOLS

TASK = "Look after the deployment of the shop"
PLACES = ("run", "send", "store", "tell")


def groups(most: int = 6) -> list[list[str]]:
    """The canaries in few groups. None is part of another in its group: a secret that is known
    from one place is found in the others, and would not be tested there.
    """
    found: list[list[str]] = []
    for name, (canary, _) in CANARIES.items():
        for group in found:
            others = [CANARIES[one][0] for one in group]
            if len(group) < most and not any(canary in one or one in canary for one in others):
                group.append(name)
                break
        else:
            found.append([name])
    return found


def coded(names: Sequence[str]) -> str:
    text = "\n".join(map(planted, names))
    return base64.b64encode(f"\n{text}\n".encode()).decode()


def session_with(number: int, names: Sequence[str]) -> list[dict[str, Any]]:
    """A session in which canaries stand in the request, in arguments, in results, in JSON within
    JSON and in base64, and each of them where an intent and where a result is cut.
    """
    text = "\n".join(map(planted, names))
    nested = json.dumps({"inner": json.dumps({"rows": [{"text": text}]})})
    encoded = coded(names)
    long = "x" * 400 + f"\n{text}\n" + "y" * 33_000
    return chat(
        user(f"{TASK}.\n{text}\nThat is all."),
        call(f"run_{number}", {"words": text, "times": 3}, f"output\n{text}\ndone"),
        call(f"send_{number}", {"body": nested}, json.dumps({"ok": True, "echo": text})),
        call(f"store_{number}", {"data": encoded}, f"stored {encoded} today"),
        call(f"tell_{number}", {"to": "all"}, long),
        agent("It is looked after."),
        *(turn for name in names for turn in cut_turns(name)),
    )


def cut_turns(name: str) -> Iterator[Turn]:
    text = planted(name)
    yield user("Go on with it " + "as before " * 36 + f"\n{text}\n")
    result = "y " * (8_192 - 20) + f"\n{text}\n" + " z" * 9_000
    yield call(f"cut_{name}", {"where": "inside"}, result)
    yield agent("It went on.")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All that comes out of a store in which every canary was planted."""
    home = tmp_path_factory.mktemp("canaries")
    planted_in = {f"s{number}": names for number, names in enumerate(groups())}
    with Journeyman(home=home, environ={}) as jm:
        for number, (session, names) in enumerate(planted_in.items()):
            jm.record(session_with(number, names), session_id=session, outcome=1.0)
        report = jm.learn()
        assert report.teaching == len(planted_in)
        jm.build_template("all", min_messages=1, max_sessions=500)
        single = [jm.templates.create(one, name=f"of-{one}") for one in planted_in]
        stored = [*jm.patterns.list(), *jm.patterns.list(quarantined=True)]
        asked = {one.pattern.sessions[0]: one.pattern.intent for one in stored}
        openings = [
            jm.opening(asked[one], template=f"of-{one}", max_patterns=20, budget_tokens=20_000)
            for one in planted_in
        ]
        openings.append(jm.opening(TASK, max_patterns=20, budget_tokens=20_000))
        assert all(opening.choices for opening in openings)
        learned = {step.tool for one in stored for step in one.pattern.steps}
        assert learned == {
            *(f"{place}_{number}" for place in PLACES for number in range(len(planted_in))),
            *(f"cut_{name}" for name in CANARIES),
        }
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
        for where, text in told.items():
            spelled = (canary, json.dumps(canary)[1:-1])
            leaks += [f"{name} in {where}: {one}" for one in spelled if one in text]
    for names in groups():
        beginning = coded(names)[:40]
        leaks += [f"{names} in {where}" for where, text in told.items() if beginning in text]
    assert leaks == []


def test_a_tool_that_gives_something_away_is_never_shown(tmp_path: Path):
    key = CANARIES["github"][0]
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(TASK), call(key), agent("Done.")), session_id="s", outcome=1.0)
        jm.learn()
        assert jm.opening(TASK).is_empty
        told = msgspec.json.encode([one.pattern for one in jm.patterns.list()]).decode()
    assert key not in told


@table("query", ["ghp", "deploy", "token"])
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
