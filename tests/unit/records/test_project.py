"""Deriving the project name from folders and remotes."""

from tests.tables import table

from journeyman.records.project import (
    is_home_folder,
    project_name,
    remote_project,
    repository_folder,
)

WORKTREES = (
    "/x/.codex/worktrees/7f3a/cli/cmd",
    "/home/ada/.cursor/worktrees/cli/qx1",
    "/x/conductor/workspaces/cli/lima",
    "/home/ada/worktrees/cli/fix-42",
    "/srv/cli/.claude/worktrees/fix-42",
    "/srv/cli/.worktrees/ada/fix-42",
    "/srv/cli.worktrees/fix-42",
    "/srv/cli/worktrees/fix-42",
)


@table("folder", WORKTREES)
def test_a_worktree_belongs_to_its_repository(folder: str) -> None:
    assert project_name(folder) == "cli"


@table(
    "folder, project",
    [
        ("", ""),
        ("/", ""),
        ("/home/ada/src/cli", "cli"),
        ("/Users/grace/work/cli/", "cli"),
        ("/home/ada", "ada"),
        ("/tmp/tmpx8f2", "tmpx8f2"),
        ("/tmp/pytest-of-ada/pytest-3/test_one0", "test_one0"),
        ("/src/cli_2", "cli"),
        ("/src/cli.2", "cli"),
        ("/src/cli-20260205", "cli"),
        ("/src/20260205-cli-2", "cli"),
        ("/src/2026-02-05_cli", "cli"),
        ("/src/cli-20261505", "cli-20261505"),  # not a valid date
        ("/src/cli-2024", "cli-2024"),
        ("/src/lib-1.2", "lib-1.2"),
        ("/src/2", "2"),
        ("/src/20260205", "20260205"),
        ("/src/cli-2/.worktrees/ada/fix", "cli"),
        ("/src/cli/.claude/worktrees/a/.worktrees/b", "cli"),
        ("/src/cli-worktrees/fix/cmd", "cli"),
        ("/src/.worktrees-are-fine", ".worktrees-are-fine"),
        ("/src/worktrees", "worktrees"),
        ("/home/ada/.codex/worktrees/7f3a", "7f3a"),
        ("/home/ada/worktrees/fix", "fix"),
        ("/root/worktrees/cli/fix", "cli"),
        ("C:\\Users\\ada\\src\\cli-2", "cli"),
        ("C:\\Users\\ada\\src\\cli\\.worktrees\\fix", "cli"),
        ("~/src/cli", "cli"),
        ("src/a\\b", "a\\b"),
    ],
)
def test_project_name_of_folders(folder: str, project: str) -> None:
    assert project_name(folder) == project


def test_repository_of_a_worktree() -> None:
    assert repository_folder("/src/cli/.worktrees/ada/fix") == "/src/cli"
    assert repository_folder("/src/cli/cmd/") == "/src/cli/cmd"


@table(
    "folder, is_home",
    [
        ("/home/ada", True),
        ("/Users/ada/", True),
        ("/root", True),
        ("C:\\Users\\ada", True),
        ("/home/ada/src", False),
        ("/srv/home/ada", False),
        ("/home", False),
    ],
)
def test_home_folders(folder: str, is_home: bool) -> None:
    assert is_home_folder(folder) == is_home


@table(
    "url, project",
    [
        ("https://github.com/acme/app.git", "github.com/acme/app"),
        ("https://github.com/acme/app/", "github.com/acme/app"),
        ("https://ada:pass@GitHub.com/acme/app", "github.com/acme/app"),
        ("https://ada:p@ss/word@github.com/acme/app", "github.com/acme/app"),
        ("git@github.com:acme/app.git", "github.com/acme/app"),
        ("github.com:acme/app", "github.com/acme/app"),
        ("ssh://git@github.com:22/acme/app.git", "github.com/acme/app"),
        ("ssh://git@github.com/Acme/App.git\n", "github.com/Acme/App"),
        ("https://gitlab.com/group/part/app.git?x=1#y", "gitlab.com/group/part/app"),
        ("git@host:/srv/git/app.git", "host/srv/git/app"),
        ("/srv/git/app.git", ""),
        ("../app.git", ""),
        ("file:///srv/git/app.git", ""),
        ("C:/git/app", ""),
        ("C:\\git\\app", ""),
        ("https://github.com", ""),
        ("https://github.com/", ""),
        ("", ""),
    ],
)
def test_project_name_of_remotes(url: str, project: str) -> None:
    assert remote_project(url) == project
