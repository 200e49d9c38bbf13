"""Forgetting as a person uses it: forgotten text never appears again."""

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.program import Command
from tests.tables import table
from tests.turns import agent, call, chat, learned, user
from tests.waiting import LONGEST_S

from journeyman import Journeyman
from journeyman.records.errors import WrongInput

CANARY = "heron-lagoon"
REPORT = "Write the report of the staging host"


def reporting(host: str) -> list[dict[str, Any]]:
    return chat(
        user(f"{REPORT} {host}"),
        call("bash", {"command": f"make report HOST={host.lower()}"}, f"written for {host}"),
        call("read_file", {"path": f"reports/{host}.toml"}, f"name = '{host}'"),
        agent("It is written."),
        user("Count the open orders of the north depot"),
        call("bash", {"command": "make orders DEPOT=north"}, "twelve"),
        agent("There are twelve."),
    )


SESSIONS = {
    "aa-first": ("codex", "acme/shop", CANARY),
    "ab-second": ("codex", "acme/shop", CANARY.title()),
    "b-other": ("claude_code", "acme/shop", "sparrow"),
    "c-elsewhere": ("claude_code", "acme/site", "magpie"),
    "codex-notes": ("hermes", "codex", "raven"),
}


@pytest.fixture(scope="module")
def learned_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which something was learned. Do not change it: copy it."""
    home = tmp_path_factory.mktemp("forgetful")
    with Journeyman(home=home / ".journeyman", environ={"HOME": str(home)}) as jm:
        for name, (source, project, host) in SESSIONS.items():
            options = {"source": source, "project": project, "session_id": name}
            jm.record(reporting(host), outcome=1.0, **options)
        jm.learn()
        jm.templates.build("all", min_messages=1, description=f"All but for {CANARY}")
        jm.templates.create("aa-first", name="first")
    return home


@pytest.fixture
def program(learned_home: Path, tmp_path: Path) -> Command:
    shutil.copytree(learned_home, tmp_path / "home")
    return Command(tmp_path / "home")


@pytest.fixture
def jm(program: Command) -> Iterator[Journeyman]:
    with Journeyman(home=program.home / ".journeyman", environ={}) as jm:
        yield jm


def told(jm: Journeyman) -> dict[str, str]:
    """Everything that Journeyman shows of what it has learned."""
    openings = [
        jm.opening(REPORT, project=project, small=small)
        for project in ("acme/shop", "")
        for small in (False, True)
    ]
    openings += [jm.opening(template=one.name) for one in jm.templates.list()]
    moments = jm.moments("acme/shop")
    told = [moments.start(), *(moments.prompt(f"{REPORT} {one}") for one in (CANARY, "sparrow"))]
    told += [moments.compaction(jm.observed(name), "") for name in SESSIONS]
    everything = {
        "openings": [one.messages("openai") for one in openings if not one.is_empty],
        "moments": [one.text for one in told],
        "playbook": jm.playbook("acme/shop"),
        "episodes": learned(jm),
        "templates": jm.templates.list(versions=True),
        "exports": [jm.templates.export(one.name).decode() for one in jm.templates.list()],
    }
    return {name: msgspec.json.encode(one).decode() for name, one in everything.items()}


def where(jm: Journeyman, text: str = CANARY) -> set[str]:
    return {name for name, said in told(jm).items() if text in said.casefold()}


def test_forgotten_text_never_appears(program: Command, jm: Journeyman) -> None:
    everywhere = {"openings", "moments", "playbook", "episodes", "templates", "exports"}
    assert where(jm) == everywhere
    looked = program.json("forget", "--matching", CANARY, "--dry-run")
    assert where(jm) == everywhere
    found = program.json("forget", "--matching", CANARY.upper(), "--yes")
    assert found == looked
    assert found["sessions"] == ["aa-first", "ab-second"]
    assert found["episodes"] == 2
    assert found["templates_changed"] == ["all@1", "first@1"]
    assert where(jm) == set()
    jm.learn()
    assert where(jm) == set()
    # Everything else stays known, including what else these sessions taught.
    assert where(jm, "sparrow") >= {"openings", "moments", "episodes"}
    assert "make orders" in told(jm)["playbook"]
    assert program.json("forget", "--list")[0]["requests"] == [1]
    # The sessions are still stored; once they are deleted, the text is not even in the file.
    assert len(jm.sessions.search(CANARY)) > 0
    for name in ("aa-first", "ab-second"):
        jm.sessions.delete(name)
    jm.close()
    for file in (program.home / ".journeyman").iterdir():
        assert CANARY.encode() not in file.read_bytes().lower(), file.name


@table(
    ("chosen", "sessions"),
    [
        (["aa-f"], ["aa-first"]),
        (["--project", "shop"], ["aa-first", "ab-second", "b-other"]),
        (["--project", "codex"], ["codex-notes"]),
    ],
)
def test_selecting_what_to_forget(program: Command, chosen: list[str], sessions: list[str]) -> None:
    found = program.json("forget", *chosen, "--dry-run")
    assert found["sessions"] == sessions
    assert found["episodes"] == 2 * len(sessions)


@table(
    ("chosen", "code", "said"),
    [
        (["a"], 1, "More than one session id starts with 'a'"),
        (["--project", "nowhere"], 1, "None matches the project 'nowhere'."),
        (["nowhere"], 1, "There is no session 'nowhere'"),
        (["aa-first", "--project", "codex"], 1, "Say what to forget"),
        (["--undo"], 2, "Name what to undo"),
        (["aa-first", "--matching", "x"], 1, "Forget one of them"),
        ([], 2, "Name what to forget"),
        (["--matching", " "], 1, "is empty"),
        (["--undo", "aa-first"], 1, "`journeyman forget --list`"),
        (["--undo", "--matching", "x"], 2, "--undo takes a session"),
    ],
)
def test_errors_are_explained(program: Command, chosen: list[str], code: int, said: str) -> None:
    assert said in " ".join(program("forget", *chosen, "--yes", code=code).stderr.split())
    assert program.json("forget", "--list") == []


def test_removals_are_reported_and_can_be_undone(program: Command, jm: Journeyman) -> None:
    before = jm.playbook("acme/shop")
    asked = program("forget", "--project", "acme/shop", code=2)
    assert "Pass --yes" in asked.stderr
    said = " ".join(program("forget", "--project", "acme/shop", "--yes").stdout.split())
    for line in ("sessions 3", "episodes 6", "templates deleted all@1, first@1"):
        assert line in said
    assert "`journeyman playbook --write FILE`" in said
    assert "`journeyman forget --undo SESSION`" in said
    unknown = program("playbook", "acme/shop", code=1).stderr
    assert "was forgotten" in unknown
    assert where(jm) == set()
    assert jm.playbook("acme/shop").facts == ()
    assert jm.learn().reasons == {"forgotten": 3}
    listed = program("forget", "--list").stdout
    assert re.search(r"^aa-first .* all *$", listed, re.MULTILINE)
    undone = program("forget", "--undo", "--project", "acme/shop").stdout
    assert "3 sessions can be learned from again" in undone
    assert "Nothing is forgotten." in program("forget", "--list").stdout
    jm.learn()
    assert jm.playbook("acme/shop") == before
    nothing = program("forget", "--matching", "no such words", "--yes").stdout
    assert "nothing to forget" in nothing


def test_a_terminal_shows_a_preview_and_asks_for_confirmation(
    program: Command, jm: Journeyman
) -> None:
    said = on_terminal(program, "n\n", "forget", "aa-first")
    assert "This would be forgotten:" in said
    assert "Not confirmed. Nothing was changed." in said
    assert jm.forgotten.list() == []
    on_terminal(program, "y\n", "forget", "aa-first")
    assert [one.session for one in jm.forgotten.list()] == ["aa-first"]


def on_terminal(program: Command, typed: str, *arguments: str) -> str:
    """The output for a person who types this."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    done = subprocess.run(
        [sys.executable, "-m", "journeyman", *arguments],
        env=program.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=program.home,
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    for end in (ours, theirs):
        os.close(end)
    return done.stdout + done.stderr


def test_a_folder_selects_its_project(program: Command) -> None:
    folder = program.home / "site"
    folder.mkdir()
    found = program.json("forget", "--project", str(folder), "--dry-run")
    assert found["sessions"] == ["c-elsewhere"]


def test_the_library_reports_the_same(jm: Journeyman) -> None:
    assert jm.forget("aa-first", dry_run=True) == jm.forget(session="aa-first")
    assert jm.unforget("aa-first") == ["aa-first"]
    with pytest.raises(WrongInput):
        jm.forget()
