"""Finding the project of a folder on this machine, using the on-disk layout of git."""

from pathlib import Path

import pytest

from journeyman.logs.repositories import Projects, find_project
from journeyman.records import Session, SessionId


def make_repository(root: Path, remote: str = "") -> Path:
    git = root / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    config = '[core]\n\tbare = false\n[remote "upstream"]\n\turl = git@other.org:up/stream.git\n'
    if remote:
        config += f'[remote "origin"]\n\tfetch = +refs/*\n\turl = {remote}\n[branch "main"]\n'
    (git / "config").write_text(config)
    return root


def make_worktree(root: Path, main: Path, name: str) -> Path:
    files = main / ".git" / "worktrees" / name
    files.mkdir(parents=True)
    (files / "commondir").write_text("../..\n")
    root.mkdir(parents=True)
    (root / ".git").write_text(f"gitdir: {files}\n")
    return root


class TestFindProject:
    def test_repository_with_a_remote(self, tmp_path: Path) -> None:
        root = make_repository(tmp_path / "src" / "cli", "git@github.com:acme/app.git")
        (root / "cmd" / "deep").mkdir(parents=True)
        assert find_project(root) == "github.com/acme/app"
        assert find_project(root / "cmd" / "deep") == "github.com/acme/app"

    def test_current_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(make_repository(tmp_path / "cli", "https://github.com/acme/app"))
        assert find_project(".") == "github.com/acme/app"

    def test_worktree_belongs_to_its_repository(self, tmp_path: Path) -> None:
        main = make_repository(tmp_path / "app", "https://github.com/acme/app")
        assert (
            find_project(make_worktree(tmp_path / "wt" / "x", main, "x")) == "github.com/acme/app"
        )
        local = make_repository(tmp_path / "local")
        tree = make_worktree(tmp_path / "wt" / "y", local, "y")
        assert find_project(tree, home=tmp_path) == "~/local"
        (local / ".git" / "worktrees" / "y" / "commondir").unlink()
        assert find_project(tree, home=tmp_path) == "~/local"

    def test_submodule_is_a_separate_project(self, tmp_path: Path) -> None:
        main = make_repository(tmp_path / "app", "https://github.com/acme/app")
        module = main / "vendored"
        module.mkdir()
        (module / ".git").write_text("gitdir: ../.git/modules/vendored\n")
        files = main / ".git" / "modules" / "vendored"
        files.mkdir(parents=True)
        (files / "config").write_text('[remote "origin"]\nurl = "https://git.org/lib/part.git"\n')
        assert find_project(module) == "git.org/lib/part"

    def test_repository_without_a_remote_is_named_by_path(self, tmp_path: Path) -> None:
        root = make_repository(tmp_path / "home" / "src" / "cli")
        (root / "cmd").mkdir()
        assert find_project(root / "cmd", home=tmp_path / "home") == "~/src/cli"
        assert find_project(root, home=tmp_path / "other") == str(root.resolve())
        assert find_project(root, home=root) == "~"

    def test_local_remote_is_ignored(self, tmp_path: Path) -> None:
        root = make_repository(tmp_path / "cli", "/srv/git/cli.git")
        assert find_project(root, home=tmp_path) == "~/cli"

    def test_other_folders_are_named_by_folder(self, tmp_path: Path) -> None:
        (tmp_path / "notes-2").mkdir()
        assert find_project(tmp_path / "notes-2") == "notes"
        assert find_project(tmp_path / "never" / "was") == "was"

    def test_invalid_git_files_are_ignored(self, tmp_path: Path) -> None:
        for number, content in enumerate((b"", b"\xff\xfe", b"gitdir", b"gitdir: /nowhere\n")):
            folder = tmp_path / f"case{number}x"
            folder.mkdir()
            (folder / ".git").write_bytes(content)
            assert find_project(folder, home=tmp_path) in (folder.name, f"~/{folder.name}")
        assert find_project("/nul\x00byte/x") == "x"


def session_in(cwd: str, *, branch: str = "main", **facts: object) -> Session:
    session = {"id": SessionId("s"), "source": "test", "cwd": cwd, "git_branch": branch}
    return Session(**session | facts)


class TestProjects:
    def test_project_in_the_log_takes_precedence(self, tmp_path: Path) -> None:
        root = str(make_repository(tmp_path / "cli", "https://github.com/acme/app"))
        projects = Projects(home=tmp_path)
        named = session_in(root, project="github.com/other/name")
        assert projects.project_of(named, dict) == "github.com/other/name"
        assert projects.project_of(session_in(root), dict) == "github.com/acme/app"
        assert projects.project_of(session_in(""), dict) == ""
        elsewhere = session_in("/gone", details={"git_repo_root": root})
        assert projects.project_of(elsewhere, dict) == "github.com/acme/app"

    def test_deleted_worktree(self, tmp_path: Path) -> None:
        root = make_repository(tmp_path / "cli", "https://github.com/acme/app")
        gone = f"{root}/.worktrees/ada/fix"
        assert Projects().project_of(session_in(gone), dict) == "github.com/acme/app"

    def test_relative_folder_is_not_looked_up_on_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_repository(tmp_path / "cli", "https://github.com/acme/app")
        monkeypatch.chdir(tmp_path)
        assert Projects().project_of(session_in("cli"), dict) == "cli"

    def test_folder_inside_a_known_project(self) -> None:
        projects = Projects()

        def stored() -> dict[str, str]:
            return {"/gone/app": "github.com/acme/app", "/home/ada": "dotfiles"}

        assert projects.project_of(session_in("/gone/app/cmd"), stored) == "github.com/acme/app"
        assert projects.project_of(session_in("/gone/application"), stored) == "application"
        assert projects.project_of(session_in("/home/ada/notes"), stored) == "notes"
        assert projects.project_of(session_in("/gone/cli"), stored) == "cli"
        assert projects.project_of(session_in("/gone/cli/cmd/tool"), stored) == "cli"
        # Without a recorded branch, the folder may contain several projects.
        assert projects.project_of(session_in("/gone/src", branch=""), stored) == "src"
        assert projects.project_of(session_in("/gone/src/web"), stored) == "web"
