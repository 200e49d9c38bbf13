"""Undo restores what a session changed in its workspace, and nothing else."""

import hashlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents import tool
from tests.databases import database
from tests.program import Command
from tests.tables import table

from journeyman import Journeyman
from journeyman.agent.tools.tool import Invocation, Result, worked
from journeyman.agent.undo import LARGEST_FILE, Snapshots, TurnSnapshots, undo
from journeyman.records import Session, SessionId
from journeyman.records.errors import OutsideProblem
from journeyman.testing import ScriptedModel, calls, says

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="git is not installed")
SESSION = Session(id=SessionId("s1"), source="journeyman")


def git(folder: Path, *words: str) -> str:
    assert GIT is not None
    named = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0")
    done = subprocess.run(
        [GIT, *named, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def tree(folder: Path) -> dict[str, tuple[str, int, str]]:
    """Everything visible in a folder except timestamps."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = str(path.readlink())
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
        found[name] = (oct(status.st_mode), status.st_uid, content)
    return found


def without_objects(found: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in found.items() if ".git/objects" not in name}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("print(1)\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / ".env").write_text("KEY=1\n")
    (folder / ".env").chmod(0o600)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("src/main.py")
    return folder


@pytest.fixture
def snapshots(workspace: Path, tmp_path: Path) -> Snapshots:
    return new_snapshots(tmp_path / "home" / "undo", workspace)


def new_snapshots(folder: Path, workspace: Path, **options: Any) -> Snapshots:
    defaults = {"most_bytes": 2**30, "days": 14, "clock": time.time}
    return Snapshots(folder, workspace, **defaults | options)


def turn(snapshots: Snapshots, change: Callable[[], object], *, is_killed: bool = False) -> None:
    """Run a turn of the session that makes a change."""
    turns = TurnSnapshots(snapshots, pytest.fail)
    turns.begin(SESSION)

    def run(_invocation: Invocation) -> Result:
        change()
        return worked()

    turns.guarded(tool("write", run)).run(Invocation(call_id="c", arguments={}))
    if not is_killed:
        turns.end()


def shell(workspace: Path, command: str) -> Callable[[], object]:
    return lambda: subprocess.run(["/bin/sh", "-c", command], cwd=workspace, check=True)


COMMANDS = {
    "changed": "echo 2 > src/main.py",
    "deleted": "rm -rf src run.sh link empty",
    "everything deleted": "rm -rf ./* .env",
    "created": "mkdir -p new/deep && echo 1 > new/deep/file && echo 1 > other",
    "mode": "chmod 644 run.sh && chmod 777 .env",
    "link changed": "rm link && ln -s /etc/passwd link",
    "file to folder": "rm run.sh && mkdir run.sh && echo 1 > run.sh/x",
    "folder to link": "mv src elsewhere && ln -s elsewhere src && echo 2 > src/main.py",
    "link to file": "rm link && echo text > link",
    "same size, same times": "touch -r src/main.py t && echo 'print(7)' > src/main.py "
    "&& touch -r t src/main.py && rm t",
    "moved": "mv src/main.py src/moved.py",
    "unreadable": "chmod 000 src/main.py",
    "newline in a name": "touch 'a\nb' && rm -r src",
    "emptied": ": > src/main.py",
    "ignored and enlarged": "echo '*' > .gitignore && head -c 20000000 /dev/zero > src/main.py",
}


@table("command", COMMANDS.values(), ids=COMMANDS)
def test_undo_restores_the_workspace_exactly(tmp_path: Path, command: str) -> None:
    folder = tmp_path / hashlib.sha256(command.encode()).hexdigest()[:8]
    folder.mkdir()
    place = workspace.__wrapped__(folder)  # type: ignore[attr-defined]
    snapshots = new_snapshots(folder / "undo", place)
    before = tree(place)
    turn(snapshots, shell(place, command))
    after = tree(place)
    assert after != before
    seen = undo(snapshots, SESSION, dry_run=True)
    assert not seen.done
    assert tree(place) == after
    done = undo(snapshots, SESSION)
    assert done.changes == seen.changes
    assert done.done
    assert not any(one.failed for one in done.changes)
    assert tree(place) == before
    assert not undo(snapshots, SESSION).changes


def test_unusual_file_names_are_restored(snapshots: Snapshots, workspace: Path) -> None:
    names = [b"\xff\xfe", b'quo"te', b"back\\slash", b"  blank ", b"-rf", b".GIT", b"line\nend"]
    for name in names:
        Path(os.fsdecode(os.fsencode(workspace) + b"/" + name)).write_bytes(name)
    before = tree(workspace)
    turn(snapshots, lambda: [path.unlink() for path in workspace.iterdir() if path.is_file()])
    undo(snapshots, SESSION)
    assert tree(workspace) == before


class TestChangesByOthers:
    def test_files_the_session_did_not_touch_are_kept(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        turn(snapshots, shell(workspace, "echo 2 > src/main.py"))
        (workspace / "run.sh").write_text("mine")
        (workspace / "mine.txt").write_text("mine")
        done = undo(snapshots, SESSION)
        assert [one.path for one in done.changes] == ["src/main.py"]
        assert not done.changed_since
        assert (workspace / "run.sh").read_text() == "mine"
        assert (workspace / "mine.txt").exists()

    def test_files_changed_by_both_are_kept_and_listed(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        turn(snapshots, shell(workspace, "echo 2 > src/main.py; echo 2 > run.sh; mkdir made"))
        (workspace / "src" / "main.py").write_text("mine")
        (workspace / "made" / "mine").write_text("mine")
        done = undo(snapshots, SESSION)
        assert done.changed_since == ("src/main.py",)
        assert (workspace / "src" / "main.py").read_text() == "mine"
        assert (workspace / "run.sh").read_text() == "#!/bin/sh\n"
        assert (workspace / "made" / "mine").exists()

    def test_lines_typed_between_two_turns_are_kept(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        main = workspace / "src" / "main.py"
        turn(snapshots, shell(workspace, "echo 2 > src/main.py"))
        main.write_text("mine")
        turn(snapshots, shell(workspace, "echo 3 >> src/main.py"))
        assert undo(snapshots, SESSION).changed_since == ("src/main.py",)
        assert main.read_text() == "mine3\n"

    def test_killed_turn_owns_all_later_changes(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        turn(snapshots, shell(workspace, "echo 2 > src/main.py"), is_killed=True)
        (workspace / "run.sh").write_text("mine")
        done = undo(snapshots, SESSION)
        assert {one.path for one in done.changes} == {"src/main.py", "run.sh"}


class TestGit:
    def test_repository_state_is_restored(self, snapshots: Snapshots, workspace: Path) -> None:
        """Commits, branches, hooks and configuration are restored; objects are never removed."""
        git(workspace, "init", "-q", "-b", "main")
        git(workspace, "add", ".")
        git(workspace, "commit", "-qm", "one")
        before, head = without_objects(tree(workspace)), git(workspace, "rev-parse", "HEAD")

        def work() -> None:
            (workspace / "src" / "main.py").write_text("print(2)\n")
            git(workspace, "commit", "-qam", "two")
            git(workspace, "branch", "other")
            git(workspace, "config", "core.editor", "x")
            (workspace / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
            git(workspace, "tag", "v1")

        turn(snapshots, work)
        later = git(workspace, "rev-parse", "HEAD")
        undo(snapshots, SESSION)
        assert without_objects(tree(workspace)) == before
        assert git(workspace, "rev-parse", "HEAD") == head
        assert git(workspace, "status", "--porcelain") == ""
        assert git(workspace, "cat-file", "-t", later) == "commit"
        git(workspace, "fsck", "--strict")

    @table(
        "command",
        ["rm -rf .git", "git gc -q --prune=now", "rm -rf .git/objects/*", "git reset -q HEAD~1"],
    )
    def test_lost_history_is_restored(self, tmp_path: Path, command: str) -> None:
        folder = tmp_path / hashlib.sha256(command.encode()).hexdigest()[:8]
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        for name in ("a", "b"):
            (folder / name).write_text(name)
            git(folder, "add", ".")
            git(folder, "commit", "-qm", name)
        before = tree(folder)
        snapshots = new_snapshots(tmp_path / "undo", folder)
        turn(snapshots, shell(folder, command))
        undo(snapshots, SESSION)
        assert before.items() <= tree(folder).items()
        assert git(folder, "log", "--format=%s") == "b\na"
        git(folder, "fsck", "--strict")

    def test_submodules_worktrees_and_nested_repositories(
        self, snapshots: Snapshots, workspace: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        for folder in (other, workspace, workspace / "nested"):
            folder.mkdir(exist_ok=True)
            git(folder, "init", "-q")
            (folder / "file").write_text("text")
            git(folder, "add", "file")
            git(folder, "commit", "-qm", "one")
        allow = ("-c", "protocol.file.allow=always")
        git(workspace, *allow, "submodule", "add", "-q", str(other), "sub")
        git(workspace, "worktree", "add", "-q", str(workspace / "tree"))
        before = tree(workspace)
        turn(snapshots, shell(workspace, "rm -rf nested sub tree .git/modules; echo 1 > file"))
        undo(snapshots, SESSION)
        assert tree(workspace) == before

    def test_git_configuration_of_the_project_has_no_effect(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        git(workspace, "init", "-q")
        touched = workspace.parent / "touched"
        git(workspace, "config", "filter.x.clean", f"touch {touched}")
        git(workspace, "config", "core.fsmonitor", f"touch {touched}")
        (workspace / ".gitattributes").write_text("* text=auto filter=x ident eol=crlf\n")
        (workspace / "crlf").write_bytes(b"a\r\n$Id$\n")
        before = tree(workspace)
        turn(snapshots, shell(workspace, "rm crlf; echo 1 > run.sh"))
        undo(snapshots, SESSION)
        assert tree(workspace) == before
        assert not touched.exists()


class TestLimits:
    def test_generated_folders_are_neither_restored_nor_removed(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        (workspace / "node_modules").mkdir()
        (workspace / "node_modules" / "a").write_text("x")
        (workspace / ".gitignore").write_text(".env\n")
        turn(snapshots, shell(workspace, "rm node_modules/a .env; touch node_modules/b"))
        assert [one.path for one in undo(snapshots, SESSION).changes] == [".env"]
        assert [one.name for one in (workspace / "node_modules").iterdir()] == ["b"]

    def test_content_of_a_very_large_file_is_not_stored(
        self, snapshots: Snapshots, workspace: Path
    ) -> None:
        with (workspace / "large").open("wb") as file:
            file.truncate(LARGEST_FILE + 1)
        turn(snapshots, shell(workspace, "rm large; echo 2 > src/main.py"))
        done = undo(snapshots, SESSION)
        assert [(one.path, bool(one.failed)) for one in done.changes] == [
            ("large", True),
            ("src/main.py", False),
        ]

    def test_workspace_over_the_size_limit_is_refused(
        self, workspace: Path, tmp_path: Path
    ) -> None:
        (workspace / "data").write_bytes(b"x" * 3_000_000)
        small = new_snapshots(tmp_path / "undo", workspace, most_bytes=2**20)
        with pytest.raises(OutsideProblem, match="3 MB; the limits"):
            small.take("x-1")

    def test_growth_beyond_the_limit_is_undone(self, workspace: Path, tmp_path: Path) -> None:
        small = new_snapshots(tmp_path / "undo", workspace, most_bytes=2**20)
        before = tree(workspace)
        grow = "for n in 1 2 3 4; do head -c 1000000 /dev/urandom > $n; done; cp 1 src/main.py"
        turn(small, shell(workspace, grow))
        undo(small, SESSION)
        assert tree(workspace) == before

    def test_old_snapshots_are_removed(self, workspace: Path, tmp_path: Path) -> None:
        now = time.time()
        snapshots = new_snapshots(tmp_path / "undo", workspace, days=3, clock=lambda: now)
        snapshots.take("x-1")
        old = (workspace / "run.sh").read_bytes()
        (workspace / "run.sh").write_bytes(b"new")
        later = new_snapshots(tmp_path / "undo", workspace, days=3, clock=lambda: now + 4 * 86_400)
        later.take("x-2")
        later.tidy()
        assert later.names("x-") == ["x-2"]
        contents = [path.read_bytes() for path in later.contents.iterdir()]
        assert b"new" in contents
        assert old not in contents


def test_link_placed_after_the_session_is_not_followed(
    snapshots: Snapshots, workspace: Path
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    turn(snapshots, shell(workspace, "echo 2 > src/main.py"))
    shutil.rmtree(workspace / "src")
    (workspace / "src").symlink_to(outside)
    done = undo(snapshots, SESSION)
    assert "src/main.py" in done.changed_since
    assert list(outside.iterdir()) == []


def test_snapshots_are_private_to_the_owner(snapshots: Snapshots) -> None:
    snapshots.take("x-1")
    folder = snapshots.contents.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


_LOOP = """
import sys
from pathlib import Path
from journeyman.agent.undo import Snapshots, undo
from journeyman.records import Session
snapshots = Snapshots(
    Path(sys.argv[1]), Path(sys.argv[2]), most_bytes=2**30, days=14, clock=lambda: 1e9
)
print("go", flush=True)
undo(snapshots, Session(id="s1", source="journeyman"))
"""


def test_kill_at_any_moment_loses_nothing(snapshots: Snapshots, workspace: Path) -> None:
    for number in range(60):
        (workspace / "src" / f"{number}.py").write_text("x" * number * 100)
    before = tree(workspace)
    chance = random.Random(7)
    for _ in range(6):
        turn(snapshots, shell(workspace, "rm -r src; echo 2 > run.sh; mkdir new; echo 1 > new/x"))
        folder = snapshots.contents.parent.parent
        arguments = [sys.executable, "-c", _LOOP, str(folder), str(workspace)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(chance.random() * 0.02)
            process.send_signal(signal.SIGKILL)
        undo(snapshots, SESSION)
        assert tree(workspace) == before


class TestAgent:
    @staticmethod
    def run(home: Path, workspace: Path, *commands: str, **options: Any) -> str:
        database(home)
        with Journeyman(home=home) as jm:
            lines = [calls(("terminal", {"command": one})) for one in commands]
            model = ScriptedModel([*lines, says("Done.")])
            options.setdefault("ask", lambda _question: True)
            with jm.agent(model=model, workspace=workspace, **options) as agent:
                return agent.run_conversation("Tidy up.").session

    def test_read_only_turn_takes_no_snapshot(self, tmp_path: Path, workspace: Path) -> None:
        home = tmp_path / "home"
        database(home)
        with Journeyman(home=home) as jm:
            model = ScriptedModel([calls(("read_file", {"path": "run.sh"})), says("Read.")])
            with jm.agent(model=model, workspace=workspace) as agent:
                agent.run_conversation("Look.")
        assert not (home / "undo").exists()

    def test_work_continues_if_undo_is_unavailable(
        self, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JOURNEYMAN_AGENT_UNDO_MB", "1")
        (workspace / "data").write_bytes(b"x" * 2_000_000)
        notices: list[str] = []
        self.run(tmp_path / "home", workspace, "rm -r src", "ls", tell=notices.append)
        assert not (workspace / "src").exists()
        assert len(notices) == 1
        assert notices[0].startswith("Undo is not available: ")

    def test_undo_command(self, tmp_path: Path, workspace: Path) -> None:
        home, before = tmp_path / "home", tree(workspace)
        session = self.run(home, workspace, "rm -r src", "echo 1 > new")
        after = tree(workspace)
        command = Command(tmp_path)
        words = ("--home", str(home), "undo", session)
        shown = command(*words, "--dry-run").stdout
        assert "restore     src/main.py" in shown
        assert "delete      new" in shown
        assert "2 to restore, 1 to delete" in shown
        assert "standard input is not a terminal" in command(*words, code=2).stderr
        assert tree(workspace) == after
        assert command(*words, "--yes").stdout.rstrip().endswith("Done.")
        assert tree(workspace) == before
        assert "Nothing to change" in command(*words, "--yes").stdout
