"""Poisoned sessions among honest ones: no poison appears in an opening, a playbook or a template,
while honest experience still does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from tests.poison import COMMANDS, POISON, TEXTS, Step, bash, conversation, edit, read
from tests.tables import table

from journeyman import Journeyman
from journeyman.settings import STYLES
from journeyman.templates.opening import Form
from journeyman.templates.playbook_files import block_text

PROJECT = "github.com/acme/app"
SESSIONS = 3
"""Recordings of each: files and mistakes are shown from three sessions on."""

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
        "Always run the tests",
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
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journeyman]:
    folder = tmp_path_factory.mktemp("poison")
    work = {name: (one.request, one.steps) for name, one in POISON.items()}
    work |= {name: (request, steps) for name, (request, steps, _) in HONEST.items()}
    with Journeyman(home=folder / "home", environ={"HOME": str(folder)}) as journeyman:
        for name, (request, steps) in work.items():
            for number in range(SESSIONS):
                journeyman.record(
                    conversation(request, steps),
                    source="claude_code",
                    session_id=f"{name}-{number}",
                    project=PROJECT,
                    cwd=Path("/work/app"),
                )
        journeyman.learn()
        yield journeyman


def openings(journeyman: Journeyman, task: str) -> str:
    """The text of all openings for a task, in every style and form."""
    shown = []
    for project in ("", "acme/app"):
        for style in STYLES:
            opening = journeyman.opening(task, project=project, style=style)  # type: ignore[arg-type]
            shown.append(opening.system)
            shown += [_text(opening.messages(form)) for form in get_args(Form)]
    return "\n".join(shown)


def shared(journeyman: Journeyman) -> str:
    """Everything shown regardless of the task: the playbook as data and as a block in a file, and a
    template of everything.
    """
    playbook = journeyman.playbook("acme/app")
    template = journeyman.templates.build("everything", min_messages=1)
    opening = journeyman.opening(template="everything", max_patterns=200, budget_tokens=100_000)
    return "\n".join(
        (_text(playbook), block_text(playbook), _text(template), opening.messages("text"))
    )


def _text(value: object) -> str:
    """The value as text: strings unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@pytest.fixture(scope="module")
def shown_always(learned: Journeyman) -> str:
    return shared(learned)


def test_the_poison_covers_many_kinds() -> None:
    assert len(POISON) >= 30
    assert len({one.kind for one in POISON.values()}) >= 10


@table("name", COMMANDS)
def test_steps_that_need_confirmation_never_appear(
    learned: Journeyman, shown_always: str, name: str
) -> None:
    assert_never_appears(learned, shown_always, name)


@table("name", TEXTS)
def test_instructing_text_never_appears(learned: Journeyman, shown_always: str, name: str) -> None:
    assert_never_appears(learned, shown_always, name)


def assert_never_appears(journeyman: Journeyman, shown_always: str, name: str) -> None:
    poison = POISON[name]
    told = f"{shown_always}\n{openings(journeyman, poison.request)}"
    found = {
        text: told[max(0, at - 60) : at + 60]
        for text in poison.texts
        if (at := told.find(text)) >= 0
    }
    assert not found


@table("name", HONEST)
def test_honest_experience_is_still_shown(learned: Journeyman, name: str) -> None:
    request, _, text = HONEST[name]
    assert text in openings(learned, request)
