"""Finding the project of a folder on this machine, with real repositories."""

import pytest
from tests.repositories import git, make_repository

from journeyman.logs.repositories import Projects, Repositories
from journeyman.records import Session, SessionId

APP = "https://github.com/acme/app"


@pytest.fixture
def find_project(tmp_path):
    """Find projects as a new process does."""

    def find(folder, **options):
        options = {"home": tmp_path, **options}
        return Repositories(tmp_path / "clones.json", **options).find_project(folder)

    return find


class TestFindProject:
    def test_repository_with_a_remote(self, find_project, tmp_path, monkeypatch):
        root = make_repository(tmp_path / "src" / "cli", "git@github.com:acme/app.git")
        (root / "cmd" / "deep").mkdir(parents=True)
        monkeypatch.chdir(root)
        for folder in (root, root / "cmd" / "deep", "."):
            assert find_project(folder) == "github.com/acme/app"

    def test_worktree_belongs_to_its_repository(self, find_project, tmp_path):
        for name, remote, project in (("app", APP, "github.com/acme/app"), ("own", "", "~/own")):
            main, tree = make_repository(tmp_path / name, remote), tmp_path / "wt" / name
            git(main, "worktree", "add", "-q", tree)
            assert find_project(tree) == project
            (main / ".git" / "worktrees" / name / "commondir").unlink()
            assert find_project(tree) == project

    def test_a_repository_that_only_names_a_remote(self, find_project, tmp_path):
        """Its configuration can name any; its history shows whether it is a clone."""
        first = make_repository(tmp_path / "first", APP)
        assert find_project(first) == "github.com/acme/app"
        clone = make_repository(tmp_path / "clone", APP)
        git(clone, "commit", "-q", "--allow-empty", "-m", "second")
        assert find_project(clone) == "github.com/acme/app"
        for number, address in enumerate((APP, "git@GitHub.com:Acme//APP.git", f"{APP}\u00a0")):
            other = make_repository(tmp_path / f"other{number}x", address, first="other")
            assert find_project(other) == f"~/other{number}x", address
        empty, shallow = tmp_path / "empty", tmp_path / "shallow"
        git(empty, "init", "-q")
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{clone}", shallow)
        for folder in (empty, shallow):
            git(folder, "config", "remote.origin.url", APP)
            assert find_project(folder) == f"~/{folder.name}"
            for declared in (f"~/{folder.name}", str(folder)):
                assert find_project(folder, clones=(declared,)) == "github.com/acme/app"

    def test_nothing_in_a_configuration_is_run(self, find_project, tmp_path):
        root, ran = make_repository(tmp_path / "cli", APP), tmp_path / "ran"
        (loose,) = (one for one in (root / ".git/objects").glob("*/*") if one.parent.name != "4b")
        git(root, "commit", "-q", "--allow-empty", "-m", "second")
        loose.unlink()  # a partial clone would fetch it
        for name, value in {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "evil",
            "remote.evil.promisor": "true",
            "remote.evil.url": f"ext::touch {ran}",
            "protocol.ext.allow": "always",
            "core.fsmonitor": f"touch {ran}",
        }.items():
            git(root, "config", name, value)
        assert find_project(root) == "~/cli"
        assert not ran.exists()

    def test_repository_without_a_remote_is_named_by_path(self, find_project, tmp_path):
        root = make_repository(tmp_path / "home" / "src" / "cli")
        (root / "cmd").mkdir()
        assert find_project(root / "cmd", home=tmp_path / "home") == "~/src/cli"
        assert find_project(root, home=tmp_path / "other") == str(root.resolve())
        assert find_project(root, home=root) == "~"

    def test_other_folders_are_named_by_folder(self, find_project, tmp_path):
        (tmp_path / "notes-2").mkdir()
        assert find_project(tmp_path / "notes-2") == "notes"
        assert find_project(tmp_path / "never" / "was") == "was"


def session_in(cwd, *, branch="main", **facts):
    session = {"id": SessionId("s"), "source": "test", "cwd": cwd, "git_branch": branch}
    return Session(**session | facts)


@pytest.fixture
def projects(tmp_path):
    return Projects(Repositories(tmp_path / "clones.json", home=tmp_path))


class TestProjects:
    def test_project_in_the_log_takes_precedence(self, projects, tmp_path):
        root = str(make_repository(tmp_path / "cli", APP))
        named = session_in(root, project="github.com/other/name")
        assert projects.project_of(named, dict) == "github.com/other/name"
        assert projects.project_of(session_in(root), dict) == "github.com/acme/app"
        assert projects.project_of(session_in(""), dict) == ""
        elsewhere = session_in("/gone", details={"git_repo_root": root})
        assert projects.project_of(elsewhere, dict) == "github.com/acme/app"
        gone = session_in("/gone", project="github.com/acme/app")
        assert projects.project_of(gone, dict) == "github.com/acme/app"

    def test_a_log_that_only_repeats_a_remote(self, projects, tmp_path):
        make_repository(tmp_path / "cli", APP)
        other = make_repository(tmp_path / "other", APP, first="other")
        assert projects.project_of(session_in(str(tmp_path / "cli")), dict) == "github.com/acme/app"
        named = session_in(str(other), project="github.com/acme/app")
        assert projects.project_of(named, dict) == "~/other"

    def test_deleted_worktree(self, projects, tmp_path):
        root = make_repository(tmp_path / "cli", APP)
        gone = f"{root}/.worktrees/ada/fix"
        assert projects.project_of(session_in(gone), dict) == "github.com/acme/app"

    def test_folder_inside_a_known_project(self, projects):
        def stored():
            return {"/gone/app": "github.com/acme/app", "/home/ada": "dotfiles"}

        assert projects.project_of(session_in("/gone/app/cmd"), stored) == "github.com/acme/app"
        assert projects.project_of(session_in("/gone/application"), stored) == "application"
        assert projects.project_of(session_in("/home/ada/notes"), stored) == "notes"
        assert projects.project_of(session_in("/gone/cli"), stored) == "cli"
        assert projects.project_of(session_in("/gone/cli/cmd/tool"), stored) == "cli"
        # Without a recorded branch, the folder may contain several projects.
        assert projects.project_of(session_in("/gone/src", branch=""), stored) == "src"
        assert projects.project_of(session_in("/gone/src/web"), stored) == "web"
