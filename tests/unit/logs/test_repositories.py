"""The project of a folder on this machine, with repositories as git lays them out."""

from pathlib import Path

import pytest

from journeyman.logs.repositories import Projects, find_project
from journeyman.records import Session, SessionId


def a_repository(root: Path, remote: str = "") -> Path:
    git = root / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    config = '[core]\n\tbare = false\n[remote "upstream"]\n\turl = git@other.org:up/stream.git\n'
    if remote:
        config += f'[remote "origin"]\n\tfetch = +refs/*\n\turl = {remote}\n[branch "main"]\n'
    (git / "config").write_text(config)
    return root


def a_worktree(root: Path, main: Path, name: str) -> Path:
    files = main / ".git" / "worktrees" / name
    files.mkdir(parents=True)
    (files / "commondir").write_text("../..\n")
    root.mkdir(parents=True)
    (root / ".git").write_text(f"gitdir: {files}\n")
    return root


class TestFindProject:
    def test_a_repository_with_a_remote(self, tmp_path: Path) -> None:
        root = a_repository(tmp_path / "src" / "cli", "git@github.com:acme/app.git")
        (root / "cmd" / "deep").mkdir(parents=True)
        assert find_project(root) == "github.com/acme/app"
        assert find_project(root / "cmd" / "deep") == "github.com/acme/app"

    def test_this_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(a_repository(tmp_path / "cli", "https://github.com/acme/app"))
        assert find_project(".") == "github.com/acme/app"

    def test_worktrees_are_their_repository(self, tmp_path: Path) -> None:
        main = a_repository(tmp_path / "app", "https://github.com/acme/app")
        assert find_project(a_worktree(tmp_path / "wt" / "x", main, "x")) == "github.com/acme/app"
        local = a_repository(tmp_path / "local")
        tree = a_worktree(tmp_path / "wt" / "y", local, "y")
        assert find_project(tree, home=tmp_path) == "~/local"
        (local / ".git" / "worktrees" / "y" / "commondir").unlink()
        assert find_project(tree, home=tmp_path) == "~/local"

    def test_a_submodule_is_a_project_of_its_own(self, tmp_path: Path) -> None:
        main = a_repository(tmp_path / "app", "https://github.com/acme/app")
        module = main / "vendored"
        module.mkdir()
        (module / ".git").write_text("gitdir: ../.git/modules/vendored\n")
        files = main / ".git" / "modules" / "vendored"
        files.mkdir(parents=True)
        (files / "config").write_text('[remote "origin"]\nurl = "https://git.org/lib/part.git"\n')
        assert find_project(module) == "git.org/lib/part"

    def test_a_repository_without_a_remote_is_its_path(self, tmp_path: Path) -> None:
        root = a_repository(tmp_path / "home" / "src" / "cli")
        (root / "cmd").mkdir()
        assert find_project(root / "cmd", home=tmp_path / "home") == "~/src/cli"
        assert find_project(root, home=tmp_path / "other") == str(root.resolve())
        assert find_project(root, home=root) == "~"

    def test_a_remote_that_is_a_folder_is_none(self, tmp_path: Path) -> None:
        root = a_repository(tmp_path / "cli", "/srv/git/cli.git")
        assert find_project(root, home=tmp_path) == "~/cli"

    def test_other_folders_have_their_name(self, tmp_path: Path) -> None:
        (tmp_path / "notes-2").mkdir()
        assert find_project(tmp_path / "notes-2") == "notes"
        assert find_project(tmp_path / "never" / "was") == "was"

    def test_files_that_are_not_of_git(self, tmp_path: Path) -> None:
        for number, content in enumerate((b"", b"\xff\xfe", b"gitdir", b"gitdir: /nowhere\n")):
            folder = tmp_path / f"case{number}x"
            folder.mkdir()
            (folder / ".git").write_bytes(content)
            assert find_project(folder, home=tmp_path) in (folder.name, f"~/{folder.name}")
        assert find_project("/nul\x00byte/x") == "x"


def a_session(cwd: str, *, branch: str = "main", **facts: object) -> Session:
    session = {"id": SessionId("s"), "source": "test", "cwd": cwd, "git_branch": branch}
    return Session(**session | facts)


class TestProjects:
    def test_what_the_log_says_comes_first(self, tmp_path: Path) -> None:
        root = str(a_repository(tmp_path / "cli", "https://github.com/acme/app"))
        projects = Projects(home=tmp_path)
        named = a_session(root, project="github.com/other/name")
        assert projects.project_of(named, dict) == "github.com/other/name"
        assert projects.project_of(a_session(root), dict) == "github.com/acme/app"
        assert projects.project_of(a_session(""), dict) == ""
        elsewhere = a_session("/gone", details={"git_repo_root": root})
        assert projects.project_of(elsewhere, dict) == "github.com/acme/app"

    def test_a_worktree_that_was_deleted(self, tmp_path: Path) -> None:
        root = a_repository(tmp_path / "cli", "https://github.com/acme/app")
        gone = f"{root}/.worktrees/ada/fix"
        assert Projects().project_of(a_session(gone), dict) == "github.com/acme/app"

    def test_a_relative_folder_is_not_looked_up_here(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a_repository(tmp_path / "cli", "https://github.com/acme/app")
        monkeypatch.chdir(tmp_path)
        assert Projects().project_of(a_session("cli"), dict) == "cli"

    def test_a_folder_inside_of_a_known_one(self) -> None:
        projects = Projects()

        def stored() -> dict[str, str]:
            return {"/gone/app": "github.com/acme/app", "/home/ada": "dotfiles"}

        assert projects.project_of(a_session("/gone/app/cmd"), stored) == "github.com/acme/app"
        assert projects.project_of(a_session("/gone/application"), stored) == "application"
        assert projects.project_of(a_session("/home/ada/notes"), stored) == "notes"
        assert projects.project_of(a_session("/gone/cli"), stored) == "cli"
        assert projects.project_of(a_session("/gone/cli/cmd/tool"), stored) == "cli"
        # Where no branch was recorded, it may be a folder of many projects.
        assert projects.project_of(a_session("/gone/src", branch=""), stored) == "src"
        assert projects.project_of(a_session("/gone/src/web"), stored) == "web"
