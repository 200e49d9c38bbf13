"""Undo restores what a session changed in its workspace, and nothing else."""

import hashlib
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agents import tool
from tests.databases import database
from tests.program import Command
from tests.tables import table

from journeyman import Journeyman
from journeyman.agent.snapshots import TurnSnapshots
from journeyman.agent.tools.tool import Invocation, Result, worked
from journeyman.records import Call, Session, SessionId
from journeyman.records.errors import OutsideProblem, WrongInput
from journeyman.testing import ScriptedModel, calls, says
from journeyman.undo.history import LARGEST_FILE, WorkTreeHistory
from journeyman.undo.undo import CLOCK_SLACK_S, Undo, writing_times
from journeyman.undo.undo import undo as undo_session

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
def history(workspace: Path, tmp_path: Path) -> WorkTreeHistory:
    return new_history(tmp_path / "home" / "undo", workspace)


def new_history(folder: Path, workspace: Path, **options: Any) -> WorkTreeHistory:
    defaults = {"most_bytes": 2**30, "days": 14, "clock": time.time}
    return WorkTreeHistory(folder, workspace, **defaults | options)


@contextmanager
def new_case(folder: Path, name: str) -> Iterator[tuple[Path, WorkTreeHistory]]:
    """A workspace and its history for one case of a table."""
    folder /= hashlib.sha256(name.encode()).hexdigest()[:8]
    folder.mkdir()
    place = workspace.__wrapped__(folder)  # type: ignore[attr-defined]
    yield place, new_history(folder / "undo", place)


RUNNING = Call(id="c", tool="terminal", asked_at=0.0)
"""A call that began long ago and has not ended."""


def ended_call(folder: Path) -> Call:
    """A call that just ended; what changes from now on changed after it."""
    now, probe = time.time(), folder / "probe"
    while not probe.exists() or probe.stat().st_ctime <= now:
        probe.touch()  # the clock of files ticks slowly
    return Call(id="c", tool="terminal", asked_at=0.0, answered_at=now - CLOCK_SLACK_S)


def undo(history: WorkTreeHistory, *calls: Call, dry_run: bool = False) -> Undo:
    return undo_session(history, SESSION, calls or [RUNNING], dry_run=dry_run)


def turn(
    history: WorkTreeHistory, change: Callable[[], object], *, is_killed: bool = False
) -> None:
    """Run a turn of the session that makes a change."""
    turns = TurnSnapshots(history, pytest.fail)
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
    with new_case(tmp_path, command) as (place, history):
        before = tree(place)
        turn(history, shell(place, command))
        after = tree(place)
        assert after != before
        seen = undo(history, dry_run=True)
        assert not seen.done
        assert tree(place) == after
        done = undo(history)
        assert done.changes == seen.changes
        assert done.done
        assert not any(one.failed for one in done.changes)
        assert tree(place) == before
        assert not undo(history).changes


def test_unusual_file_names_are_restored(history: WorkTreeHistory, workspace: Path) -> None:
    names = [b"\xff\xfe", b'quo"te', b"back\\slash", b"  blank ", b"-rf", b"git~1", b"line\nend"]
    for name in names:
        Path(os.fsdecode(os.fsencode(workspace) + b"/" + name)).write_bytes(name)
    before = tree(workspace)
    turn(history, lambda: [path.unlink() for path in workspace.iterdir() if path.is_file()])
    undo(history)
    assert tree(workspace) == before


class TestChangesByOthers:
    @table(
        ("run", "others", "left", "restored"),
        [
            ("echo 2 > src/main.py", ("", "echo mine > run.sh; touch mine"), "", "src/main.py"),
            ("echo 2 > src/main.py", ("", "echo mine >> src/main.py"), "since src/main.py", ""),
            ("echo 2 > src/main.py", ("echo mine >> run.sh", ""), "during run.sh", "src/main.py"),
            ("echo 2 > src/main.py", ("echo mine >> src/main.py", ""), "during src/main.py", ""),
            ("", ("touch mine", ""), "during mine", ""),
            ("mkdir made; echo 1 > made/x", ("", "touch made/mine"), "", "made/x"),
            ("rm run.sh", ("", "echo mine > run.sh"), "since run.sh", ""),
            ("touch made", ("", "rm made"), "", ""),
        ],
    )
    def test_what_something_else_changed_is_named_and_stays(
        self, tmp_path: Path, run: str, others: tuple[str, str], left: str, restored: str
    ) -> None:
        with new_case(tmp_path, f"{run}{others}") as (place, history):
            before, name = tree(place), history.begin("s1")
            shell(place, run)()
            call = ended_call(tmp_path)
            shell(place, others[0])()
            history.end(name, "s1", writing_times([call]))
            shell(place, others[1])()
            typed = tree(place)
            done = undo(history)
            told = [f"during {path}" for path in done.changed_during]
            told += [f"since {path}" for path in done.changed_since]
            assert " ".join(told) == left
            assert [one.path for one in done.changes] == restored.split()
            expected = typed | {path: before[path] for path in restored.split() if path in before}
            expected = {path: one for path, one in expected.items() if path != "made/x"}
            assert tree(place) == expected
            if told:  # what to do: look at what the run changed
                shown = subprocess.check_output(
                    [*shlex.split(done.diff), *left.split()[1:]], cwd=place
                )
                assert b"+2" in shown or b"mine" in shown or b"deleted" in shown

    def test_a_session_that_only_read_changed_nothing(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        run = history.begin()
        shell(workspace, "echo 2 > run.sh; rm src/main.py")()
        history.end(run, "s1", writing_times([Call(id="c", tool="read_file", asked_at=0.0)]))
        done = undo(history)
        assert (done.changes, done.changed_during) == ((), ("run.sh", "src/main.py"))

    def test_lines_typed_between_two_turns_are_kept(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        main = workspace / "src" / "main.py"
        turn(history, shell(workspace, "echo 2 > src/main.py"))
        main.write_text("mine")
        turn(history, shell(workspace, "echo 3 >> src/main.py"))
        assert undo(history).changed_since == ("src/main.py",)
        assert main.read_text() == "mine3\n"

    def test_lines_typed_between_two_calls_are_kept(
        self, history: WorkTreeHistory, workspace: Path, tmp_path: Path
    ) -> None:
        """Also if the second call changes the file again."""
        main = workspace / "src" / "main.py"
        turns = TurnSnapshots(history, pytest.fail)
        turns.begin(SESSION)
        for number in (2, 3):
            change = shell(workspace, f"echo {number} >> src/main.py; touch made{number}")
            guarded = turns.guarded(tool("write", lambda _, run=change: worked(done=bool(run()))))
            guarded.run(Invocation(call_id="c", arguments={}))
            ended_call(tmp_path)
            with main.open("a") as file:
                file.write("mine\n")
        assert turns.end()
        done = undo(history)
        assert [one.path for one in done.changes] == ["made2", "made3"]
        assert done.changed_during == ("src/main.py",)
        assert main.read_text() == "print(1)\n2\nmine\n3\nmine\n"

    def test_killed_run_owns_what_changed_until_the_first_undo(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        turn(history, shell(workspace, "echo 2 > src/main.py"), is_killed=True)
        (workspace / "run.sh").write_text("mine")
        seen = undo(history, dry_run=True)
        assert {one.path for one in seen.changes} == {"src/main.py", "run.sh"}
        (workspace / "run.sh").write_text("mine again")
        assert undo(history).changed_since == ("run.sh",)

    def test_session_that_is_known_only_after_the_run(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        before, run = tree(workspace), history.begin()
        shell(workspace, "rm -r src; touch new")()
        with pytest.raises(WrongInput, match="There is no snapshot"):
            undo(history)
        history.end(run, "s1")
        undo(history)
        assert tree(workspace) == before


class TestRepository:
    @table(
        ("run", "after", "told"),
        [
            (
                "echo 2 > f; git commit -qam agent",
                "",
                "refs/heads/main moved from # to #|  # agent|  to take this back too: git reset #",
            ),
            (
                "echo 2 > f; git commit -qam agent",
                "echo mine > g; git add g; git commit -qm person",
                "refs/heads/main moved from # to #|  # agent",
            ),
            ("echo 2 > f; git commit -qam agent", "git reset -q --hard HEAD~1", ""),
            (
                "git switch -qc other; echo 2 > f; git commit -qam agent",
                "",
                "HEAD moved from refs/heads/main to refs/heads/other"
                "|refs/heads/other moved from nothing to #",
            ),
            ("git branch -D old -q; echo 2 > f", "", "refs/heads/old moved from # to nothing"),
            ("echo 2 > f; git add f", "", "what is staged for the next commit was changed"),
            ("echo 2 > f; git stash -q", "", "refs/stash moved from nothing to #"),
            ("rm -rf .git; echo 2 > f", "", "the repository was deleted"),
            ("git init -q sub; echo 2 > f", "", "sub/: the repository was created"),
        ],
    )
    def test_repository_is_named_and_never_changed(
        self, tmp_path: Path, run: str, after: str, told: str
    ) -> None:
        with new_case(tmp_path, f"{run}|{after}") as (place, history):
            git(place, "init", "-q", "-b", "main")
            for name in ("user.name", "user.email"):
                git(place, "config", name, "a@example.com")
            (place / "f").write_text("1\n")
            git(place, "add", "f")
            git(place, "commit", "-qm", "one")
            git(place, "branch", "old")
            turn(history, shell(place, run))
            shell(place, after)()
            repository = tree(place / ".git")
            done = undo(history)
            lines = [re.sub(r"\b[0-9a-f]{7,40}\b", "#", line) for line in done.repository]
            assert "|".join(lines) == told
            assert tree(place / ".git") == repository
            assert (place / "f").read_text() == "1\n"

    def test_contents_of_submodules_worktrees_and_nested_repositories(
        self, history: WorkTreeHistory, workspace: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        for folder in (other, workspace, workspace / "nested", workspace / "unborn"):
            folder.mkdir(exist_ok=True)
            git(folder, "init", "-q")
            (folder / "file").write_text("text")
            if folder.name != "unborn":
                git(folder, "add", "file")
                git(folder, "commit", "-qm", "one")
        allow = ("-c", "protocol.file.allow=always")
        git(workspace, *allow, "submodule", "add", "-q", str(other), "sub")
        git(workspace, "worktree", "add", "-q", str(workspace / "tree"))
        before = tree(workspace)
        turn(history, shell(workspace, "rm nested/file sub/file tree/file; echo 1 > unborn/file"))
        done = undo(history)
        assert (len(done.changes), done.repository) == (4, ())
        assert tree(workspace) == before

    def test_attributes_and_configuration_of_the_project_have_no_effect(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        git(workspace, "init", "-q")
        touched = workspace.parent / "touched"
        git(workspace, "config", "filter.x.clean", f"touch {touched}")
        git(workspace, "config", "core.fsmonitor", f"touch {touched}")
        every = "* text=auto filter=x ident eol=crlf working-tree-encoding=UTF-16\n"
        (workspace / ".gitattributes").write_text(every)
        (workspace / "crlf").write_bytes(b"a\r\n$Id$\n")
        before = tree(workspace)
        turn(history, shell(workspace, "rm crlf; echo 1 > run.sh"))
        undo(history)
        assert tree(workspace) == before
        assert not touched.exists()


class TestLimits:
    def test_generated_and_ignored_folders_are_left_alone_and_ignored_files_are_not(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        git(workspace, "init", "-q")
        for name in ("node_modules", "built"):
            (workspace / name).mkdir()
            (workspace / name / "a").write_text("x")
        (workspace / ".gitignore").write_text(".env\nbuilt/\n")
        turn(history, shell(workspace, "rm */a .env; touch built/b; echo src >> .gitignore"))
        assert [one.path for one in undo(history).changes] == [".env", ".gitignore"]
        assert [one.name for one in (workspace / "built").iterdir()] == ["b"]
        turn(history, shell(workspace, "echo 'src/' >> .gitignore; rm src/main.py"))
        assert "src/main.py" in [one.path for one in undo(history).changes]

    def test_content_of_a_very_large_file_is_not_stored(
        self, history: WorkTreeHistory, workspace: Path
    ) -> None:
        with (workspace / "large").open("wb") as file:
            file.truncate(LARGEST_FILE + 1)
        turn(history, shell(workspace, "rm large; echo 2 > src/main.py"))
        done = undo(history)
        assert [(one.path, bool(one.failed)) for one in done.changes] == [
            ("large", True),
            ("src/main.py", False),
        ]

    def test_workspace_over_the_size_limit_is_refused(
        self, workspace: Path, tmp_path: Path
    ) -> None:
        (workspace / "data").write_bytes(b"x" * 3_000_000)
        small = new_history(tmp_path / "undo", workspace, most_bytes=2**20)
        with pytest.raises(OutsideProblem, match="3 MB; the limits"):
            small.begin()

    def test_growth_beyond_the_limit_is_undone(self, workspace: Path, tmp_path: Path) -> None:
        small = new_history(tmp_path / "undo", workspace, most_bytes=2**20)
        before = tree(workspace)
        turn(small, shell(workspace, "head -c 5000000 /dev/urandom > new; cp new src/main.py"))
        undo(small)
        assert tree(workspace) == before

    def test_old_states_are_removed(self, workspace: Path, tmp_path: Path) -> None:
        start, day = time.time(), 86_400
        stored = {}
        other = tmp_path / "other"
        other.mkdir()
        new_history(tmp_path / "undo", other, clock=lambda: start - day).begin()
        for days in (0, 4):
            history = new_history(
                tmp_path / "undo", workspace, days=3, clock=lambda days=days: start + days * day
            )
            (workspace / "run.sh").write_text(f"{days}")
            history.end(history.begin(), f"s{days}")
            stored[days] = history.runs("s0") + history.runs("s4")
        assert (len(stored[0]), len(stored[4])) == (1, 1)
        assert [*(tmp_path / "undo").iterdir()] == [history.git_dir]
        known = git(history.git_dir, "cat-file", "--batch-all-objects", "--batch-check")
        assert hashlib.sha1(b"blob 1\x000", usedforsecurity=False).hexdigest() not in known
        assert hashlib.sha1(b"blob 1\x004", usedforsecurity=False).hexdigest() in known


def test_link_placed_after_the_session_is_not_followed(
    history: WorkTreeHistory, workspace: Path
) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    turn(history, shell(workspace, "echo 2 > src/main.py"))
    shutil.rmtree(workspace / "src")
    (workspace / "src").symlink_to(outside)
    done = undo(history)
    assert "src/main.py" in done.changed_since
    assert list(outside.iterdir()) == []


def test_states_are_private_to_the_owner(history: WorkTreeHistory) -> None:
    history.begin()
    assert stat.S_IMODE(history.git_dir.stat().st_mode) == 0o700


def test_lock_that_a_killed_process_left_does_not_matter(
    history: WorkTreeHistory, workspace: Path
) -> None:
    before = tree(workspace)
    turn(history, shell(workspace, "rm -r src"))
    (history.git_dir / "index.lock").touch()
    undo(history)
    assert tree(workspace) == before


_LOOP = """
import sys
from pathlib import Path
from journeyman.undo.undo import undo
from journeyman.undo.history import WorkTreeHistory
from journeyman.records import Call, Session
history = WorkTreeHistory(
    Path(sys.argv[1]), Path(sys.argv[2]), most_bytes=2**30, days=14, clock=lambda: 1e9
)
calls = [Call(id="c", tool="terminal", asked_at=0.0)]
undo(history, Session(id="s1", source="journeyman"), calls)
"""


def test_undo_completes_one_that_was_killed(history: WorkTreeHistory, workspace: Path) -> None:
    for number in range(60):
        (workspace / "src" / f"{number}.py").write_text("x" * number * 100)
    before = tree(workspace)
    for moment in range(6):
        turn(history, shell(workspace, "rm -r src/* run.sh; mkdir new run.sh; mv link src/0.py"))
        arguments = [sys.executable, "-c", _LOOP, str(history.git_dir.parent), str(workspace)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
            while len([*(workspace / "src").iterdir()]) < 10 * moment and process.poll() is None:
                pass
            process.send_signal(signal.SIGKILL)
        undo(history)
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

    def test_work_continues_without_git(
        self, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "bin").mkdir()
        for name in ("sh", "bash", "rm"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        notices: list[str] = []
        self.run(tmp_path / "home", workspace, "rm -r src", tell=notices.append)
        assert not (workspace / "src").exists()
        assert notices == ["Undo is not available: git is not installed. Install git."]

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
