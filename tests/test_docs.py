"""The docs are accurate: everything they name exists, everything that exists is documented, and
every example runs.
"""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet
from tests.program import Command
from tests.tables import table
from tests.waiting import LONGEST_S

from journeyman.cli import command_line
from journeyman.gate.decision import rules_file
from journeyman.logs.registry import Readers
from journeyman.records import errors
from journeyman.settings import HOME_VARIABLE, SETTINGS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def all_text() -> str:
    return "\n".join(page.read_text() for page in PAGES)


def commands() -> dict[str, click.Command]:
    """Every command by its full name."""
    return dict(_commands_of(command_line, ""))


def _commands_of(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{before} {name}".strip()
        if isinstance(command, click.Group):
            yield from _commands_of(command, words)
        elif before or not command.hidden:  # `journeyman hook` is for hooks, not for people
            yield before if command.hidden else words, command


@table("name", commands())
def test_every_command_is_in_the_docs_and_has_examples(name: str) -> None:
    assert f"journeyman {name}" in all_text()
    epilog = commands()[name].epilog or ""
    assert f"journeyman {name}" in epilog, "the help shows no example"


def test_every_command_in_the_docs_exists() -> None:
    known = commands()
    groups = {name.rpartition(" ")[0] for name in known}
    ours = r"(?<!/)journeyman (?:--home \S+ )?([a-z]+(?: [a-z]+){0,2})"
    for words in re.findall(ours, all_text()):
        first, *more = words.split()
        begun = [" ".join((first, *more[:count])) for count in range(len(more) + 1)]
        assert any(name in known for name in begun) or first == "sessions", words
        assert begun[0] in known or begun[0] in groups, words


def test_every_flag_in_the_docs_exists() -> None:
    known = {"--home", "--database", "--help", "--version"}
    known |= {"--no-deps", "--user", "--now"}  # pip's and systemctl's
    known |= {"--no-verify", "--trusted-host"}  # git's and pip's
    known |= {"--from", "--mcp-config", "--permission-prompt-tool"}  # uvx's and Claude Code's
    for script in (ROOT / "benchmarks").glob("*.py"):
        known |= set(re.findall(r'"(--[a-z-]+)"', script.read_text()))
    for command in commands().values():
        for parameter in command.params:
            known |= {*parameter.opts, *parameter.secondary_opts}
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", all_text()):
        assert flag in known, flag


def test_settings_and_docs_agree() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    for setting in SETTINGS:
        assert f"| `{setting.key}` | " in page
        if setting.also:
            assert f"`{setting.also}`" in page
    known = {setting.variable for setting in SETTINGS} | {HOME_VARIABLE}
    known |= {"JOURNEYMAN_JOB"}  # set for the scripts of jobs
    known |= {"JOURNEYMAN_COMPLETE"}  # click's own, for shells
    assert set(re.findall(r"JOURNEYMAN_[A-Z_]+", all_text())) <= known


def test_no_placeholders() -> None:
    known = {setting.variable for setting in SETTINGS} | {HOME_VARIABLE}
    known |= {setting.also for setting in SETTINGS}
    known |= {"HERMES_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENAI_API_KEY"}
    known |= {"XDG_DATA_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"}
    known |= {"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"}
    known |= {"SCRIPT_FAILED", "JOURNEYMAN_JOB", "RULES_VERSION"}
    assert set(re.findall(r"\b[A-Z]{2,}_[A-Z_]{2,}\b", all_text())) <= known


def test_errors_and_docs_agree() -> None:
    classes = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.JourneymanError)
    }
    page = (ROOT / "docs" / "errors.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert listed | {"JourneymanError"} == classes


def test_sources_and_docs_agree() -> None:
    page = (ROOT / "docs" / "import.md").read_text()
    for reader in Readers(plugins=[]).all:
        assert f"`{reader.name}`" in page


def test_rules_of_the_gate_and_docs_agree() -> None:
    named = set(
        re.findall(r"`([a-z_]+(?:\.(?:\*|[a-z_]+))?)`", (ROOT / "docs/agent.md").read_text())
    )
    rules = {row.id for row in rules_file().rule}
    families = {f"{id_.partition('.')[0]}.*" for id_ in rules}
    missing = [id_ for id_ in rules if not {id_, f"{id_.partition('.')[0]}.*"} & named]
    assert sorted(missing) == []
    assert sorted(name for name in named if name.endswith(".*") and name not in families) == []


def test_links_resolve() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.fixture
def follower(page: Path, user_home: Path, learned_home: Path, tmp_path: Path) -> Command:
    """The program as a reader of this page has it, with sessions recorded by agents."""
    if page.name == "import.md":
        return Command(user_home)
    if page.name == "README.md":
        for agent in (".claude", ".hermes"):  # learning from one agent's sessions is faster
            shutil.rmtree(user_home / agent)
        return Command(user_home)
    shutil.copytree(learned_home, tmp_path / "learned")
    return Command(tmp_path / "learned")


def shell_pages() -> list[ParameterSet]:
    """The pages with shell examples. Together they take long, so only the README is not marked as
    soak.
    """
    return [
        pytest.param(page, id=page.name, marks=[pytest.mark.soak] * (page.name != "README.md"))
        for page in pages_with("sh")
    ]


@pytest.mark.parametrize("page", shell_pages())
def test_every_shell_example_runs(page: Path, follower: Command) -> None:
    """`SESSION` is replaced by a recorded session."""
    lines = [
        line
        for block in blocks(page, "sh")
        for line in block.splitlines()
        if line.strip() and not line.startswith("make ")
    ]
    session = ""
    if any("SESSION" in line for line in lines):
        session = follower.json("sessions", "list", "--limit", 1)[0]["session"]["id"]
    for line in lines:
        done = ran(line.replace("SESSION", session), follower)
        # A search without matches exits with 1, and so do filters that match no session.
        is_empty = " search " in line or "No stored session matches" in done.stderr
        assert done.returncode in ({0, 1} if is_empty else {0}), (
            f"{line}\n{done.stdout}\n{done.stderr}"
        )


def ran(line: str, command: Command) -> subprocess.CompletedProcess[str]:
    """Run a line, in a shell only if it uses shell syntax."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "journeyman" and not re.search(r"[|<>$~&;]", re.sub(r"'.*?'|\".*?\"", "", line)):
        return command(*arguments, code=None)
    return subprocess.run(
        line,
        shell=True,
        cwd=command.home,
        env=command.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_every_python_example_runs(page: Path, follower: Command) -> None:
    for block in blocks(page, "python"):
        follower.python(block)


def test_the_reader_plugin_in_the_docs(command: Command, tmp_path: Path) -> None:
    """The package of readers, installed, and the part of it that the docs show."""
    source = ROOT / "benchmarks" / "readers"
    (shown,) = blocks(ROOT / "docs" / "readers.md", "python")
    assert shown[shown.index("class") :].strip() in (source / "tau_readers.py").read_text()
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    readers = project["entry-points"]["journeyman.readers"]
    described = tmp_path / "site" / "tau_readers-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: tau-readers\nVersion: 1.0\n")
    entries = "".join(f"{name} = {value}\n" for name, value in readers.items())
    (described / "entry_points.txt").write_text(f"[journeyman.readers]\n{entries}")
    messages = [{"role": "user", "content": "Book a flight."}, {"role": "ghost", "content": "boo"}]
    run = {"task_id": 1, "trial": 0, "reward": 1.0, "info": {}, "traj": messages}
    (command.home / "tau.json").write_text(json.dumps([run]))
    simulation = {"id": "1", "task_id": "1", "trial": 0, "messages": messages[:1]}
    info: dict[str, object] = {"agent_info": {}, "environment_info": {"domain_name": "shop"}}
    (command.home / "tau2.json").write_text(
        json.dumps({"info": info, "tasks": [], "simulations": [simulation]})
    )
    path = f"{described.parent}:{source}"
    logs = [command.home / name for name in ("tau.json", "tau2.json")]
    report = command.json("import", *logs, PYTHONPATH=path)
    assert {name: one["new"] for name, one in report["sources"].items()} == {
        "tau_bench": 1,
        "tau2": 1,
    }
    assert "message 2: a message has the unknown role 'ghost'" in report["skipped"][0]["reason"]
