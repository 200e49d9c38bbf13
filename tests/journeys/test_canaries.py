"""Secrets planted wherever a session has text are never shown again; ordinary text is."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.canaries import CANARIES, SURVIVORS, Planted, families, in_all_forms
from tests.program import Command
from tests.tables import table
from tests.turns import Turn, agent, call, chat, failed, learned, user

from journeyman import Journeyman
from journeyman.mcp.tools import TOOLS
from journeyman.records import Call
from journeyman.redaction.masking import mask_text

TASK = "Look after the deployment of the shop"
PLACES = ("request", "arguments", "result")
LEARNED = ("episodes", "templates")
SOME = [one for one in families() if one.secret == one.example][::8]
"""Families for places with less space: names of tools, models and folders."""
IN_PATHS = [one for one in SOME if not one.name.startswith(("twitter_token", "mailgun_key"))]
"""Those that cannot be taken for the hash in the name of a file."""

SIZES = (False, True)
"""Whether the model is small."""

FORMATS = ("openai", "responses", "anthropic", "text")


def served(number: int, one: Planted, place: str) -> list[Turn]:
    """A request, and a call of its own tool that completes it."""
    said = {where: one.text if where == place else f"case {number}" for where in PLACES}
    return [
        user(f"Handle case {number}.\n{said['request']}"),
        call(f"handle_{number}", {"words": said["arguments"]}, f"output\n{said['result']}\ndone"),
        agent("It is handled."),
    ]


def learned_from() -> Iterator[list[dict[str, Any]]]:
    """Sessions with every secret in every form, and plain canaries in every place."""
    cases: list[tuple[Planted, str]] = []
    for number, one in enumerate(in_all_forms()):
        if one.form == "plain" and one.name in CANARIES:
            cases += [(one, place) for place in PLACES]
        elif one.form != "command":
            cases.append((one, PLACES[number % len(PLACES)]))
    turns = [served(number, *case) for number, case in enumerate(cases)]
    for at in range(0, len(turns), 100):
        yield chat(*(turn for some in turns[at : at + 100] for turn in some))


def reported_from() -> Iterator[list[dict[str, Any]]]:
    """Sessions for reports and playbooks: failures, commands that worked, and tools. Titles contain
    secrets too.
    """
    names = {*CANARIES, *(one.name for one in SOME)}
    plain = [one for one in in_all_forms() if one.form == "plain" and one.name in names]
    turns = [failed("deploy", {"at": n}, f"deploy\n{one.text}") for n, one in enumerate(plain)]
    for at in range(0, len(turns), 40):
        yield chat(user(f"{plain[at].text}\n{TASK}."), *turns[at : at + 40], agent("It failed."))
    lines = [one.text for one in in_all_forms() if one.form == "command"]
    lines += [f"deploy-{n} --with {one.example}" for n, one in enumerate(SOME)]
    for at in range(0, len(lines), 40):
        calls = (call("Bash", {"command": line}, "deployed") for line in lines[at : at + 40])
        yield chat(user(TASK), *calls, agent("It is deployed."))
    tools = [one.example for one in SOME]
    yield chat(user(TASK), *(failed(tool, {}, "no") for tool in tools), agent("It is not done."))


def known_from() -> Iterator[list[dict[str, Any]]]:
    """Sessions for facts: every part of a call that a fact is made of is a secret, or contains one.
    Each is recorded twice, because two sessions make a fact.
    """
    for _ in range(2):
        for at in range(0, len(IN_PATHS), 10):
            turns = (turn for one in IN_PATHS[at : at + 10] for turn in known(one))
            said = chat(user(f"{TASK} {at}"), *turns, bash("make done", "done"), agent("Done."))
            for message in said:
                if str(message.get("content")).startswith(_REFUSED):
                    message["is_error"] = True  # as Claude Code records a refusal
            yield said


def known(one: Planted) -> list[Turn]:
    key, name = one.example, one.name.replace("_", "-")
    return [
        bash(f"make ship-{name} KEY={key}", "shipped"),
        bash(f"./bin/{key} --fast", "ok"),
        bash(f"cat notes/{key}.txt", f"cat: notes/{key}.txt: No such file or directory"),
        bash(f"cat old/{name}.txt", f"cat: old/{name}.txt: No such file or directory"),
        bash(f"cat new/{key}/{name}.txt", "moved"),
        bash(f"tool-{key} -q a.txt", f"bash: tool-{key}: command not found"),
        bash(f"make pack-{name} --{key}", f"make: unrecognized option '--{key}'"),
        bash(f"make test-{name} KEY={key}", f"Exit code 1\nFAILED tests/{key}/a.py::test_it - no"),
        bash(f"make lint-{name}", f"Exit code 1\na.py:1: error: Bad [{key}]"),
        call("Edit", EDIT, f"{_REFUSED}always use the key {key} in {name} instead"),
        failed("edit_page", {key: 1}, "unexpected keyword argument"),
        call("edit_page", {"page": 1}),
    ]


EDIT = {"file_path": "shop/keys.py", "old_string": "a", "new_string": "b"}


def bash(line: str, result: str) -> Turn:
    return call("Bash", {"command": line}, result)


_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was "
    "a file edit, the new_string was NOT written to the file). To tell you how to proceed, the "
    "user said:\n"
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Everything shown from a store in which every secret was planted, by where it is shown."""
    home = tmp_path_factory.mktemp("canaries")
    command = Command(home)
    command.environ["JOURNEYMAN_HOME"] = str(home / "store")
    names = [one.example.replace("/", "-") for one in SOME]
    with Journeyman(home=home / "store", environ={}) as jm:
        for number, said in enumerate(learned_from()):
            jm.record(said, session_id=f"learned-{number}", outcome=1.0, project="shop")
        for number, said in enumerate(reported_from()):
            name, folder = f"reported-{number}", f"/home/carol/{names[min(number, 3)]}"
            jm.record(said, session_id=name, cwd=folder, model=names[-1 - number], tags="t")
        for number, said in enumerate(known_from()):
            jm.record(said, session_id=f"known-{number}", cwd=f"/home/carol/{names[3]}")
        assert jm.learn().teaching
        sessions, most = jm.sessions.list(), 10_000
        template = jm.templates.build("all", min_messages=1, max_sessions=most, max_patterns=most)
        assert sum(len(one.steps) for one in template.patterns) > 900
        everything = jm.opening(template="all", max_patterns=most)
        facts = [*jm.facts.list(names[3]), *jm.facts.list(names[3], drafts=True)]
        assert {"command", "trap", "finding", "preference"} <= {one.kind for one in facts}
        assert len(facts) > 2 * len(IN_PATHS)
        projects = ("", "shop", *names[:4])
        openings = [
            jm.opening(task, project=one, small=small)
            for task in (TASK, "Handle case 12")
            for one in projects
            for small in SIZES
        ]
        assert any(one.facts for one in openings)
        assert any(one.choices for one in openings)
        told = {
            **moments(jm, names[3]),
            "facts": msgspec.json.encode(facts).decode(),
            **{
                f"opening as {form}": json.dumps(
                    [one.messages(form) for one in openings], ensure_ascii=False
                )
                for form in FORMATS
            },
            "whole template": everything.messages("text"),
            "opening explained": msgspec.json.encode(openings).decode(),
            "MCP": "\n".join(mcp_answers(jm)),
            "playbook": msgspec.json.encode([jm.playbook(one) for one in names[:4]]).decode(),
            "judged sessions": msgspec.json.encode(jm.judged()).decode(),
            "session export": "\n".join(
                msgspec.json.encode(jm.sessions.export(one.session.id, redacted=True)).decode()
                for one in sessions[::3]
            ),
        }
    with sqlite3.connect(home / "store" / "journeyman.db") as database:
        told |= {
            f"table {name}": "\n".join(
                str(value)
                for row in database.execute(f"SELECT * FROM {name}")
                for value in row
                if isinstance(value, str)
            )
            for name in LEARNED
        }
    return told | printed(command, names)


def moments(jm: Journeyman, project: str) -> dict[str, str]:
    """What a session is told that does all of this again."""
    at = jm.moments(project)
    start = at.start(["edit_page"]).text
    turns = [turn for one in IN_PATHS for turn in known(one)]
    made = [
        Call(id="c", tool=turn.tool, arguments=turn.arguments, result=turn.result) for turn in turns
    ]
    own = (jm.observed(f"known-{number}") for number in range(3))
    told = {
        "start": [start],
        "prompts": [at.prompt(turn.arguments.replace('"', " ")).text for turn in turns],
        "calls": [at.call(one).text for one in made],
        "failures": [at.failure(replace(one, result="it broke")).text for one in made],
        "compaction": [at.compaction(one, start).text for one in own],
    }
    assert all(any(texts) for texts in told.values()), told
    return {moment: "\n".join(texts) for moment, texts in told.items()}


def mcp_answers(jm: Journeyman) -> Iterator[str]:
    tools = {tool.name: tool.run for tool in TOOLS}
    yield tools["profile"](jm, {})
    yield tools["opening"](jm, {"task": TASK, "project": "shop", "max_patterns": 50})
    yield tools["search_sessions"](jm, {"query": "case", "limit": 50})
    yield tools["search_sessions"](jm, {"query": "deploy", "limit": 50})
    yield tools["warm_session"](jm, {"action": "list"})


def printed(command: Command, names: Sequence[str]) -> dict[str, str]:
    """The output and the files of commands."""
    files = [command.home / name for name in ("chart.svg", "AGENTS.md", "all.json")]
    chart, agents, exported = files
    told = {"profile": command("profile", "--plot", chart).stdout}
    command("playbook", names[3], "--write", agents, "--yes")
    command("templates", "export", "all", "-o", exported)
    lines = [
        ("profile", "--json"),
        *(("profile", "--by", by, "--json") for by in ("tool", "model", "project")),
        ("compare", "--warm-tag", "t", "--cold-tag", "t", "--json"),
        ("compression", "reported-0", "--json"),
        *(("usage", "--by", by, "--json") for by in ("model", "project")),
        ("playbook", names[3], "--all"),
        ("facts", "list", "--project", names[3]),
        ("facts", "list", "--project", names[3], "--json"),
        ("worth", "--project", names[3]),
        ("worth", "--project", names[3], "--json"),
        ("open", TASK, "--project", names[3]),
        ("open", TASK, "--project", names[3], "--explain"),
        ("open", TASK, "--project", names[3], "--explain", "--small"),
        ("sessions", "export", "reported-0", "--format", "openai"),
        ("sessions", "export", "reported-0"),
    ]
    told |= {" ".join(line).replace(names[3], "…"): command(*line).stdout for line in lines}
    return told | {file.name: file.read_text() for file in files}


def test_no_canary_is_shown(shown: dict[str, str]):
    """A single test, so that the secrets are planted once and every leak is reported."""
    leaks = defaultdict(set)
    looked_for = [*in_all_forms()]
    looked_for += [Planted(one.name, "named", "", (one.secret,)) for one in SOME]
    for one in looked_for:
        for where, text in shown.items():
            if any(spelling in text for spelling in one.spellings):
                leaks[one.form, one.name].add(where)
    told = [f"{form} {name}: {', '.join(sorted(of))}" for (form, name), of in sorted(leaks.items())]
    assert not told, "\n".join([f"{len(told)} secrets come out:", *told])


def test_notices_hide_every_token():
    """Notices keep names and addresses of people, but no token in any form."""
    known = {one.name for one in families()}
    told = [
        f"{one.form} {one.name}"
        for one in in_all_forms()
        if one.name in known
        and any(spelling in mask_text(f"It said {one.text}.") for spelling in one.spellings)
    ]
    assert not told, "\n".join([f"{len(told)} secrets come out:", *told])


def test_a_tool_name_that_contains_a_secret_is_never_shown(tmp_path: Path):
    key = CANARIES["github"][0]
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(TASK), call(key), agent("Done.")), session_id="s", outcome=1.0)
        jm.learn()
        assert jm.opening(TASK).is_empty
        told = msgspec.json.encode(learned(jm)).decode()
    assert key not in told


@table("query", ["ghp", "deploy", "token"])
def test_search_results_for_a_model_are_redacted(tmp_path: Path, query: str):
    key = CANARIES["github"][0]
    search = next(tool for tool in TOOLS if tool.name == "search_sessions")
    with Journeyman(home=tmp_path, environ={}) as jm:
        jm.record(chat(user(f"The deploy token is {key} for now"), agent("Noted.")))
        answer = search.run(jm, {"query": query})
    assert key not in answer
    assert key[8:] not in answer


PASSPHRASE = "Tr0ub4dor-horse-77"
"""Nothing but its context shows that this is a secret."""

_LOGIN = {"password": PASSPHRASE, "host": "db"}
REVEALED_ELSEWHERE: dict[str, list[Turn]] = {
    "arguments reveal, result repeats": [
        failed("login", _LOGIN, f"server says {PASSPHRASE} is wrong"),
    ],
    "arguments reveal, a result that worked repeats": [
        call("login", _LOGIN, f"server says {PASSPHRASE} is not wrong"),
    ],
    "arguments reveal, a refusal repeats": [
        call("login", _LOGIN, f"The user doesn't want to use {PASSPHRASE}, which is wrong."),
    ],
    "arguments reveal, the evidence is cut within it": [
        failed("login", _LOGIN, f"wrong {'very ' * 44}{PASSPHRASE}" + " again" * 50),
        failed("login", _LOGIN, f"wrong {'very ' * 45}{PASSPHRASE}" + " again" * 50),
        failed("login", _LOGIN, f"wrong {'very ' * 46}{PASSPHRASE}" + " again" * 50),
    ],
    "the end of a long result reveals": [
        failed("login", {}, f"{PASSPHRASE} is wrong. {'More. ' * 2_000}password: {PASSPHRASE}"),
    ],
    "the result reveals, arguments repeat": [
        failed("login", {"text": f"wrong {PASSPHRASE}"}, f"denied, password: {PASSPHRASE}"),
    ],
    "the text reveals, arguments repeat": [
        failed(
            "login",
            {"text": f"wrong {PASSPHRASE}"},
            f"{PASSPHRASE} is wrong",
            says=f"The password is {PASSPHRASE}.",
        ),
    ],
    "the result is long, and its searched part ends within it": [
        call("login", {}, f"{'wrong ' * 165}ghp_{'A1b2' * 9}"),
    ],
}


def test_a_secret_that_only_its_context_reveals_is_not_shown(tmp_path: Path):
    command = Command(tmp_path)
    search = next(tool for tool in TOOLS if tool.name == "search_sessions")
    leaks = []
    for number, (case, turns) in enumerate(REVEALED_ELSEWHERE.items()):
        home = tmp_path / str(number)
        with Journeyman(home=home, environ={}) as jm:
            jm.record(chat(user("Log in"), *turns, agent("Done.")), session_id="session")
            told = {
                "MCP search_sessions": search.run(jm, {"query": "wrong"}),
                "judged": msgspec.json.encode(jm.judged()).decode(),
            }
        shows = [("show", "session"), ("show", "session", "--full"), ("show", "session", "--calls")]
        shows += [("show", "session", "--call", str(n + 1)) for n in range(len(turns))]
        for line in (*shows, ("search", "wrong"), ("search", "denied"), ("search", "login")):
            for form in ((), ("--json",)):
                ended = command("--home", home, "sessions", *line, *form, code=None)
                assert ended.returncode == 0 or line[0] == "search", ended.stderr
                told[" ".join((*line, *form))] = ended.stdout
        assert "session" in told["search wrong"], case
        pieces = (PASSPHRASE[:3], "A1b2")
        leaks += [
            f"{case}: {where}"
            for where, text in told.items()
            if any(piece in text for piece in pieces)
        ]
    assert not leaks, "\n".join([f"{len(leaks)} secrets come out:", *leaks])


def test_ordinary_text_is_shown_unchanged(tmp_path: Path):
    lines = [line for line in SURVIVORS if len(line) < 150]
    with Journeyman(home=tmp_path, environ={}) as jm:
        for number, line in enumerate(lines):
            turns = (user(f"Explain number {number}"), call("read", {"text": line}, line))
            jm.record(chat(*turns, agent("Read.")), session_id=f"s{number}", outcome=1.0)
        jm.learn()
        steps = {step for one in learned(jm) for step in one.steps}
    assert len(steps) > len(lines) / 2
    assert {step.result for step in steps} <= {*lines, "(1 line)"}
    assert all(json.loads(step.arguments)["text"] in lines for step in steps)
