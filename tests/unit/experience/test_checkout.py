"""What facts are checked against: a real folder and a real Git repository."""

from pathlib import Path

from tests.repositories import git, make_repository
from tests.tables import table

from journeyman.experience.checkout import (
    Checkout,
    branch_of,
    find_root,
    says,
)


def test_paths_and_programs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "test").touch()
    (tmp_path / "dangling").symlink_to("nothing")
    checkout = Checkout(tmp_path)
    paths = ("bin/test", "./bin/test", "bin", "bin/gone", "dangling", "a\0b", "x" * 5_000)
    assert [checkout.exists(path) for path in paths] == [True] * 3 + [False] * 4
    assert checkout.is_installed("git")
    assert not checkout.is_installed("no-such-program")
    # Of a project without a known folder, nothing is known.
    unknown = Checkout()
    assert (unknown.exists("bin/test"), unknown.is_installed("git")) == (None, False)
    assert unknown.instructions == {}


@table(
    ("file", "text", "command", "is_defined"),
    [
        ("Makefile", ".PHONY: test\nall test: build\n\t@pytest\n", "make test", True),
        ("Makefile", "all: build\nX := lint\n", "make lint", False),
        ("Makefile", "include more.mk\nall: build\n", "make lint", None),
        ("Makefile", "test-%: build\n", "make test-all", None),
        ("Makefile", "all:\n", "make -B", None),
        ("Makefile", "check:\n\tpython -m test\nbuild:\n", "make test", False),
        ("Makefile", "all:\n\tdocker push test image:tag\n", "make test", False),
        ("Makefile", "all:\n", "just test", False),  # no justfile
        ("Makefile", "all:\n", "gradle test", None),
        ("package.json", '{"scripts": {"test:unit": "vitest"}}', "npm run test:unit", True),
        ("package.json", '{"scripts": {"test:unit": "vitest"}}', "npm test", False),
        ("package.json", '{"workspaces": ["a"], "scripts": {}}', "npm run lint", None),
        ("package.json", "{}", "npm exec vitest", None),
        ("package.json", "{}", "pytest", None),
        ("justfile", "@check dir='.': fmt\n  ruff\n", "just check", True),
        ("justfile", "check:\n  ruff\nfast := 'x'\n", "just fast", False),
        ("justfile", "test-all:\n  ruff\nalias t := test-all\n", "just test", False),
        ("justfile", "test-all:\n  ruff\nalias t := test-all\n", "just t", True),
        (
            "package.json",
            '{"devDependencies": {"jest": "29"}, "scripts": {}}',
            "npm run jest",
            False,
        ),
        ("mise.toml", '[tasks]\nlint = "ruff"\n[tasks.test]\nrun = "x"\n', "mise run lint", True),
        ("mise.toml", '[tasks]\nlint = "ruff"\n[tasks.test]\nrun = "x"\n', "mise run test", True),
        ("mise.toml", '[tasks]\nlint = "ruff"\n', "mise run build", False),
    ],
)
def test_tasks(tmp_path: Path, file: str, text: str, command: str, is_defined: bool | None) -> None:
    for other in tmp_path.iterdir():
        other.unlink()
    (tmp_path / file).write_text(text)
    assert Checkout(tmp_path).has_task(command) is is_defined
    assert Checkout().has_task(command) is None


def test_instructions_files(tmp_path: Path) -> None:
    own = (
        "<!-- journeyman playbook: begin. It is rewritten. -->\n- `bin/test`\n"
        "<!-- journeyman playbook: end -->\n"
    )
    (tmp_path / "CLAUDE.md").write_text(f"# Work\nRun make lint.\n{own}End.\n")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_bytes(b"Ask first. See @docs/dev.md. \xff")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "dev.md").write_text("Run bin/lint.")
    (tmp_path / "README.md").mkdir()
    (tmp_path / "NOTES.md").write_text("Run bin/notes.")
    checkout = Checkout(tmp_path)
    # Those of a person, without what Journeyman wrote into them.
    assert list(checkout.instructions) == ["CLAUDE.md", ".claude/CLAUDE.md", "docs/dev.md"]
    assert checkout.instructions["CLAUDE.md"] == "# Work\nRun make lint.\nEnd.\n"
    assert "- `bin/test`" in checkout.playbook
    assert "Ask first." in checkout.instructions[".claude/CLAUDE.md"]
    assert Checkout(tmp_path / "gone").instructions == {}


@table(
    ("text", "is_said"),
    [
        ("bin/test", True),
        ("Run `bin/test` first.", True),
        ("Run ./bin/test, please", True),
        ("bin/test.", True),
        ("(bin/test -q)", True),
        ("bin/tests", False),
        ("bin/test-all", False),
        ("bin/test.sh", False),
        ("bin/test/all", False),
        ("src/bin/test", False),
        ("bin test", False),
    ],
)
def test_words_of_instructions(text: str, is_said: bool) -> None:
    assert says(f"# Work\n{text}\n", "bin/test") is is_said


def test_root_and_branch(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "app")
    git(repository, "checkout", "-q", "-b", "feature/tax")
    (repository / "src" / "deep").mkdir(parents=True)
    assert find_root(repository / "src" / "deep") == find_root(repository) == repository
    assert branch_of(repository) == "feature/tax"

    # A linked work tree has its own root and its own branch.
    tree = tmp_path / "tree"
    git(repository, "worktree", "add", "-q", "-b", "other", tree)
    (tree / "src").mkdir()
    assert (find_root(tree / "src"), branch_of(tree)) == (tree, "other")
    assert branch_of(repository) == "feature/tax"

    # Neither a commit that is checked out nor a plain folder is on a branch.
    git(repository, "checkout", "-q", "--detach")
    assert branch_of(repository) == ""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert (find_root(plain), branch_of(plain)) == (plain, "")
    (plain / ".git").write_text("gitdir: /nonexistent\n")
    assert branch_of(plain) == ""
