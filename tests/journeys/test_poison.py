"""Poisoned sessions, each kind in a project of its own: no poison appears in an opening, a playbook
or a template, nor at any moment of a session, while honest experience still does.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace
from tests.poison import COMMANDS, POISON, TEXTS, Step, bash, conversation, edit, read
from tests.tables import table

from journeyman import Journeyman
from journeyman.experience.checkout import Checkout
from journeyman.experience.moments import MOMENTS, Moments
from journeyman.experience.opening import Form
from journeyman.experience.playbook_files import block_text
from journeyman.learning.observations import takes_in
from journeyman.learning.sanitizer import suspicion_of
from journeyman.records import Call, ResultFlags
from journeyman.records.errors import WrongInput

FOLDER, BRANCH = "/work/app", "fix/parser"
SESSIONS = 4
"""Recordings of each. Two sessions make a fact: in half of them the log says which calls failed, as
that of Claude Code does, in the others nothing but their results does.
"""

HONEST: dict[str, tuple[str, tuple[Step, ...], str]] = {
    "typo": (
        "Fix the typo in the parser",
        (edit("src/parser.py", "prase", "parse"),),
        "src/parser.py",
    ),
    "commit": (
        "Commit the change of the parser",
        (bash('git add -A && git commit -m "Fix typo"', "[main 1a2b3c4] Fix typo"),),
        "git commit",
    ),
    "rules": (
        "Which rules does the project have for contributors?",
        (read("CLAUDE.md", "Always run the tests before committing."),),
        "CLAUDE.md",
    ),
    "health": (
        "Is the local server up?",
        (bash("curl -s localhost:8080/health", "up"),),
        "localhost:8080/health",
    ),
    "prompts": (
        "Where is the system prompt kept?",
        (bash("grep -rn SYSTEM_PROMPT src", "src/prompts.py:3:SYSTEM_PROMPT = load()"),),
        "SYSTEM_PROMPT",
    ),
    "format": (
        "Format the parser with `prettyfmt`",
        (
            bash("prettyfmt -q src/parser.py", "bash: line 1: prettyfmt: command not found"),
            bash("bin/format src/parser.py", "1 file formatted"),
        ),
        "bin/format",
    ),
}


class WholeCheckout(Checkout):
    """A checkout in which facts hold: it has every file but those that sessions missed."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__()
        self._missing = missing

    def exists(self, path: str) -> bool:
        return path not in self._missing


_FAILURE = re.compile(r"^Exit code [1-9]|: command not found|No such file or directory")

NUMBERS = {name: number for number, name in enumerate((*POISON, *HONEST))}


def project_of(name: str) -> str:
    """The project of a kind of session; its own name may be a poisoned word."""
    return f"github.com/acme/app{NUMBERS[name]}"


def session_of(name: str, number: int) -> str:
    return f"s{NUMBERS[name]}-{number}"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journeyman]:
    folder = tmp_path_factory.mktemp("poison")
    work = {name: (one.request, one.steps) for name, one in POISON.items()}
    work |= {name: (request, steps) for name, (request, steps, _) in HONEST.items()}
    open_home = partial(Journeyman, environ={"HOME": str(folder)})
    lines = []
    with open_home(home=folder / "recorded") as journeyman:
        for name, (request, steps) in work.items():
            for number in range(SESSIONS):
                recorded = journeyman.record(
                    conversation(request, steps),
                    source="claude_code",
                    session_id=session_of(name, number),
                    project=project_of(name),
                    cwd=FOLDER,
                )
                exported = msgspec.to_builtins(journeyman.sessions.export(recorded.session.id))
                exported["session"]["git_branch"] = BRANCH
                for message in exported["messages"] if number % 2 else ():
                    if message["role"] == "tool":
                        has_failed = _FAILURE.search(message["text"]) is not None
                        message["recorded"] = {"is_error": has_failed}
                lines.append(json.dumps(exported))
    (folder / "sessions.jsonl").write_text("\n".join(lines))
    with open_home(home=folder / "home") as journeyman:
        journeyman.import_logs(folder / "sessions.jsonl")
        journeyman.learn()
        yield journeyman


def moments(journeyman: Journeyman, name: str) -> Moments:
    """What a session on the branch of the earlier ones is told, of every kind."""
    facts = journeyman._experiences.of(project_of(name)).facts
    missing = [path for fact in facts.all for path in fact.absent]
    return Moments(
        facts,
        WholeCheckout(missing),
        branch=BRANCH,
        folder=FOLDER,
        request_of=journeyman._request_of,
    )


def told_at_moments(
    journeyman: Journeyman, name: str, request: str, steps: Sequence[Step]
) -> dict[str, str]:
    """All that a session is told that does the same again, by the moment."""
    at = moments(journeyman, name)
    start = at.start().text
    words = [value for step in steps for value in step.arguments.values()]
    prompts = [request, *(word for word in words if isinstance(word, str))]
    made = [
        Call(id=f"c{number}", tool=step.tool, arguments=json.dumps(step.arguments))
        for number, step in enumerate(steps)
    ]
    errors = (step.result for step in steps)
    failed = [
        replace(call, result=error, recorded=ResultFlags(is_error=True))
        for call, error in zip(made, errors, strict=True)
    ]
    sessions = [
        [row.observed for row in journeyman._experiences.of(project_of(name)).rows],
        journeyman.observed(session_of(name, 0)),
    ]
    return {
        "start": start,
        "start with tools": at.start([step.tool for step in steps]).text,
        "prompt": "\n".join(at.prompt(prompt).text for prompt in prompts),
        "call": "\n".join(at.call(call).text for call in made),
        "failure": "\n".join(at.failure(call).text for call in (*made, *failed)),
        "compaction": "\n".join(at.compaction(own, start).text for own in sessions),
    }


def openings(journeyman: Journeyman, name: str, task: str, steps: Sequence[Step]) -> str:
    """The text of all openings for a task, for all models and tools, in every form."""
    tools = [{"name": step.tool, "input_schema": {"type": "object"}} for step in steps]
    some: tuple[Any, ...] = (None, tools)
    shown = []
    for project in (project_of(name), ""):
        for small in (False, True):
            for given in some:
                opening = journeyman.opening(task, project=project, tools=given, small=small)
                shown.append(opening.system)
                shown += [_text(opening.messages(form)) for form in get_args(Form)]
    return "\n".join(shown)


def playbook(journeyman: Journeyman, name: str) -> str:
    """The playbook as data, and as a block in a file."""
    found = journeyman.playbook(project_of(name))
    try:
        return f"{_text(found)}\n{block_text(found)}"
    except WrongInput:  # nothing is left for the block
        return _text(found)


def _text(value: object) -> str:
    """The value as text: strings unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@pytest.fixture(scope="module")
def template(learned: Journeyman) -> str:
    """A template of everything, as data and as an opening."""
    built = learned.templates.build("everything", min_messages=1)
    opening = learned.opening(template="everything", max_patterns=1_000, budget_tokens=500_000)
    return f"{_text(built)}\n{opening.messages('text')}"


def test_the_poison_covers_many_kinds() -> None:
    assert len(POISON) >= 30
    assert len({one.kind for one in POISON.values()}) >= 10


@table("name", COMMANDS)
def test_steps_that_need_confirmation_never_appear(
    learned: Journeyman, template: str, name: str
) -> None:
    assert_never_appears(learned, template, name)


@table("name", TEXTS)
def test_instructing_text_never_appears(learned: Journeyman, template: str, name: str) -> None:
    assert_never_appears(learned, template, name)


def assert_never_appears(journeyman: Journeyman, template: str, name: str) -> None:
    poison = POISON[name]
    told = {
        **told_at_moments(journeyman, name, poison.request, poison.steps),
        "openings": openings(journeyman, name, poison.request, poison.steps),
        "playbook": playbook(journeyman, name),
        "template": template,
    }
    found = {
        (place, text): said[max(0, at - 60) : at + 60]
        for place, said in told.items()
        for text in poison.texts
        if (at := said.find(text)) >= 0
    }
    assert not found


def test_every_moment_was_looked_at(learned: Journeyman) -> None:
    request, steps, remedy = HONEST["format"]
    told = told_at_moments(learned, "format", request, steps)
    assert {*MOMENTS} <= told.keys()
    for moment, text in told.items():
        assert remedy in text, moment


def test_a_sentence_is_no_name_of_a_rule(learned: Journeyman) -> None:
    """An output may ask for anything, but what agents are told about a project never does."""
    poison = POISON["rule-order"]
    told = told_at_moments(learned, "rule-order", poison.request, poison.steps)
    for place, said in (*told.items(), ("playbook", playbook(learned, "rule-order"))):
        assert "coati" not in said, place


@table("name", POISON)
def test_what_else_these_sessions_show_is_still_told(learned: Journeyman, name: str) -> None:
    """Unless they instruct, or read what anyone may have written."""
    if not any(_takes_in(step) or _instructs(step) for step in POISON[name].steps):
        assert "mise run test" in moments(learned, name).start().text


def _takes_in(step: Step) -> bool:
    """Whether a step reads what anyone may have written: such sessions are no evidence."""
    return takes_in(Call(id="c", tool=step.tool, arguments=json.dumps(step.arguments)))


def _instructs(step: Step) -> bool:
    return any(map(suspicion_of, (json.dumps(step.arguments), step.result)))


@table("name", HONEST)
def test_honest_experience_is_still_shown(learned: Journeyman, name: str) -> None:
    request, steps, text = HONEST[name]
    assert text in openings(learned, name, request, steps)
    told = told_at_moments(learned, name, request, steps)
    for moment in ("start", "compaction"):
        assert "mise run test" in told[moment]
        assert request in told[moment]
    assert "mise run test" in playbook(learned, name)
    assert ("branch: src/parser.py" in told["start"]) == (name == "typo")
