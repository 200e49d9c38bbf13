"""Edits of hosts' files: what is installed can be taken out again, and nothing else changes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.plugin import client
from journeyman.plugin.installation import hooks_file
from journeyman.plugin.installation.file_change import apply, file_record
from journeyman.plugin.installation.record import FileRecord, write_private
from journeyman.plugin.installation.targets import HooksTarget, OwnFile, Target
from journeyman.records.errors import OutsideProblem
from journeyman.settings import HostsSettings

CLIENT = (
    "/opt/py/python",
    "-I",
    "-S",
    "/opt/x/journeyman/plugin/client.py",
    "/home/a",
    "claude-code",
)
PARTS = ("opening", "gate", "import")
FILE = "/home/a/settings.json"
WANTED = hooks_file.wanted_groups("claude-code", PARTS, CLIENT, HostsSettings(), FILE)
FOREIGN = {"hooks": [{"type": "command", "command": "notify-send done"}]}


class Installed:
    """A file, and the record of what was done to it."""

    def __init__(self, folder: Path, content: bytes | None) -> None:
        self.path = folder / "config" / "settings.json"
        self._copy = folder / "home" / "copy"
        self.record: FileRecord | None = None
        if content is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(content)

    def target(self, wanted: hooks_file.Groups = WANTED) -> HooksTarget:
        return HooksTarget(
            name="claude-code", title="Claude Code", path=self.path, program=CLIENT, wanted=wanted
        )

    def own(self, content: bytes) -> OwnFile:
        return OwnFile(
            name="opencode", title="o", path=self.path, program=(), content=content, mark=b"own"
        )

    def install(self, target: Target | None = None) -> bool:
        """Install it, and return whether that was needed."""
        change = (target or self.target()).plan_installation(self.record)
        self.record = file_record(change, self._copy)
        if change.original is not None:
            write_private(self._copy, change.original)
        apply(change)
        return change.is_needed

    def remove(self, target: Target | None = None) -> None:
        apply((target or self.target()).plan_removal(self.record))

    @property
    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


names = st.text(min_size=1, max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
hook_lists = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.just(FOREIGN["hooks"][0]) | st.just({"type": "prompt"}), min_size=1)},
        optional={"matcher": st.text(max_size=4)},
    ),
    min_size=1,
    max_size=3,
)
events = st.dictionaries(
    st.sampled_from([*WANTED, "Notification"]), hook_lists, min_size=1, max_size=4
)


@st.composite
def settings_files(draw: st.DrawFn) -> dict[str, Any]:
    keys = names.filter(lambda name: name != "hooks")
    value = draw(st.dictionaries(keys, scalars | st.lists(scalars, max_size=3), max_size=4))
    return {**value, "hooks": draw(events)} if draw(st.booleans()) else value


@given(
    value=settings_files(),
    layout=st.tuples(st.sampled_from(["", "\ufeff"]), st.sampled_from([None, 2, "\t"])),
    others=st.dictionaries(names.map("other {}".format), scalars, max_size=2),
    steps=st.lists(st.sets(st.sampled_from(PARTS), min_size=1), max_size=3),
)
def test_removal_restores_the_file_or_leaves_what_others_wrote(
    tmp_path_factory: pytest.TempPathFactory,
    value: dict[str, Any],
    layout: tuple[str, int | str | None],
    others: dict[str, Any],
    steps: list[set[str]],
) -> None:
    """Parts come and go; at last others may add settings and write the file anew."""
    content = f"{layout[0]}{json.dumps(value, indent=layout[1])}\n".encode()
    file = Installed(tmp_path_factory.mktemp("file"), content)
    for parts in [*steps, {*PARTS}]:
        wanted = hooks_file.wanted_groups("claude-code", parts, CLIENT, HostsSettings(), FILE)
        file.install(file.target(wanted))
        installed = json.loads(file.path.read_bytes())
        assert {*hooks_file.own_hooks(installed)} == {*wanted}
        assert {**installed, "hooks": 0} == {**value, "hooks": 0}
        assert not file.install(file.target(wanted))
    if not others:
        file.remove()
        assert file.content == content
        return
    file.path.write_text(json.dumps({**json.loads(file.path.read_bytes()), **others}))
    file.remove()
    assert json.loads(file.content or b"") == {**value, **others}


class TestHooks:
    def test_an_update_leaves_entries_where_they_stand(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, json.dumps({"hooks": {"Stop": [FOREIGN]}}).encode())
        file.install()
        text = json.loads(file.path.read_bytes())
        text["hooks"]["Stop"].append(FOREIGN)
        file.path.write_text(json.dumps(text))
        newer = hooks_file.wanted_groups(
            "claude-code", ("import",), ("/new/python", *CLIENT[1:]), HostsSettings(), FILE
        )
        file.install(file.target(newer))
        assert json.loads(file.path.read_bytes()) == {
            "hooks": {
                "Stop": [FOREIGN, newer["Stop"], FOREIGN],
                "SessionEnd": [newer["SessionEnd"]],
            }
        }
        file.remove()
        assert json.loads(file.content or b"") == {"hooks": {"Stop": [FOREIGN, FOREIGN]}}

    def test_a_command_moved_into_another_group_is_taken_out_of_it(self) -> None:
        hooks = [*FOREIGN["hooks"], WANTED["Stop"]["hooks"][0]]
        left = hooks_file.without_hooks({"hooks": {"Stop": [{"matcher": "", "hooks": hooks}]}})
        assert left == {"hooks": {"Stop": [{"matcher": "", **FOREIGN}]}}

    def test_the_gate_asks_for_named_tools_and_waits_longer_than_a_person_may_take(self) -> None:
        settings = HostsSettings(confirm_timeout_s=120, gate_tools=("mcp__pay__*", "Web.?", "Bash"))
        group = hooks_file.wanted_groups(
            "claude-code", ("gate",), CLIENT, settings, FILE, page="http://p:1"
        )["PreToolUse"]
        assert "decide at http://p:1 or" in group["hooks"][0]["statusMessage"]
        assert group["matcher"] == r"^(?:Bash|Edit|Write|NotebookEdit|mcp__pay__.*|Web\..)$"
        assert group["hooks"][0]["timeout"] == 180
        assert " PreToolUse 150 || " in group["hooks"][0]["command"]
        assert group["hooks"][0]["onFailure"] == "block"
        codex = hooks_file.wanted_groups("codex", PARTS, CLIENT, HostsSettings(), FILE)
        assert "onFailure" not in codex["PreToolUse"]["hooks"][0]
        assert codex["SessionEnd"]["hooks"][0]["timeout"] == 3
        assert "PostToolUseFailure" not in codex

    def test_no_hook_fails_whatever_is_gone(self, tmp_path: Path) -> None:
        """Every command line of both hosts, as their shells run it: a failure would drop prompts or
        let calls pass.
        """
        folder = tmp_path / 'it\'s a "$HOME"'
        file = str(folder / "settings.json")
        package = str(folder / "journeyman/plugin/client.py")
        gone: dict[str, tuple[str, str]] = {
            "package": (sys.executable, package),
            "interpreter": (str(folder / "python"), package),
            "home": (sys.executable, client.__file__),
        }
        running = {}
        for what, (python, script) in gone.items():
            for host in ("claude-code", "codex"):
                words = (python, "-I", "-S", script, str(folder / "home"), host)
                groups = hooks_file.wanted_groups(host, PARTS, words, HostsSettings(), file)
                for event, group in groups.items():
                    command = group["hooks"][0]["command"]
                    assert hooks_file.is_own_command(command)
                    running[what, host, event] = subprocess.Popen(
                        ["/bin/sh", "-c", command],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                    )
        assert len(running) == 36
        misses = []
        for (what, host, event), hook in running.items():
            body = {"session_id": "s1", "hook_event_name": event, "tool_name": "Bash"}
            said = hook.communicate(json.dumps(body).encode())[0].decode()
            wanted = [f"`journeyman hosts remove {host}`", *([file] if what != "home" else [])]
            if event == "PreToolUse" and said:
                output = json.loads(said)["hookSpecificOutput"]
                reason = output["permissionDecisionReason"]
                is_right = output["permissionDecision"] == "deny" and all(
                    part in reason for part in wanted
                )
            else:
                is_right = said == "" and event != "PreToolUse"
            if hook.returncode or not is_right:
                misses.append(f"{what} {host} {event}: {hook.returncode} {said!r}")
        assert not misses, "\n".join(misses)

    @table(
        ("content", "clause"),
        [
            (b'{"a": 1,}', "it is not plain JSON"),
            (b'{"a": 1 // note\n}', "it is not plain JSON"),
            (b"[]", "it does not contain a JSON object"),
            (b'{"hooks": []}', '"hooks" is not an object'),
            (b'{"hooks": {"Stop": {}}}', "no list for Stop"),
            (b"\xff\xfe{\x00}\x00", "it is not plain JSON in UTF-8"),
            (b'{"a": "\\ud800"}', "is not Unicode"),
            (b"[" * 100_000, "it is not plain JSON"),
        ],
    )
    def test_a_file_that_the_host_cannot_read_is_left_alone(
        self, tmp_path: Path, content: bytes, clause: str
    ) -> None:
        file = Installed(tmp_path, content)
        with pytest.raises(OutsideProblem, match="Nothing was changed") as raised:
            file.install()
        assert clause in str(raised.value)
        assert file.content == content


class TestFiles:
    def test_a_created_file_goes_unless_something_else_is_in_it(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        file.install()
        file.remove()
        assert file.content is None
        file.install()
        rewritten = json.loads(file.path.read_text())
        file.path.write_text(json.dumps(rewritten))
        file.remove()
        assert file.content is None
        file.install()
        file.path.write_text(json.dumps({**rewritten, "model": "opus"}))
        file.remove()
        assert file.content == b'{\n  "model": "opus"\n}\n'

    def test_a_symbolic_link_stays_one(self, tmp_path: Path) -> None:
        dotfiles = tmp_path / "dotfiles"
        dotfiles.mkdir()
        (dotfiles / "settings.json").write_text('{"a": 1}\n')
        (dotfiles / "settings.json").chmod(0o640)
        file = Installed(tmp_path, None)
        file.path.parent.mkdir()
        file.path.symlink_to(dotfiles / "settings.json")
        file.install()
        assert b"hooks" in (dotfiles / "settings.json").read_bytes()
        assert (dotfiles / "settings.json").stat().st_mode & 0o777 == 0o640
        file.remove()
        assert file.path.is_symlink()
        assert (dotfiles / "settings.json").read_text() == '{"a": 1}\n'

    def test_a_file_that_changes_after_the_plan_is_left_alone(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b"{}")
        change = file.target().plan_installation(None)
        file.path.write_bytes(b'{"a": 1}')
        with pytest.raises(OutsideProblem, match="in the meantime"):
            apply(change)
        assert file.content == b'{"a": 1}'

    def test_an_interrupted_installation_can_be_removed(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b'{"a":   1}')
        file.record = file_record(file.target().plan_installation(None), tmp_path / "copy")
        assert not file.target().plan_removal(file.record).is_needed

    def test_without_the_copy_the_entries_are_taken_out(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b'{"a":   1}')
        file.install()
        (tmp_path / "home/copy").unlink()
        file.remove()
        assert json.loads(file.content or b"") == {"a": 1}

    def test_a_file_of_its_own_is_written_and_goes_again(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        for version in (b"own 1", b"own 2"):
            file.install(file.own(version))
            assert file.content == version
        file.path.write_bytes(b"own 2, edited")
        file.remove(file.own(b"own 2"))
        assert file.content is None
        file.path.write_bytes(b"// mine")
        with pytest.raises(OutsideProblem, match="Journeyman did not write it"):
            file.install(file.own(b"own 2"))
        file.remove(file.own(b"own 2"))
        assert file.content == b"// mine"
