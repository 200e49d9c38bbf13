"""Edits of hosts' files: what is installed can be taken out again, and nothing else changes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from journeyman.hosts import client
from journeyman.hosts.installation import hooks_file, json_text, yaml_list
from journeyman.hosts.installation.editors import HooksEditor, PluginsEditor, WholeFile
from journeyman.hosts.installation.file_change import (
    Editor,
    FileChange,
    apply,
    file_record,
    plan_installation,
    plan_removal,
)
from journeyman.hosts.installation.record import FileRecord, write_private
from journeyman.records.errors import OutsideProblem
from journeyman.settings import HostsSettings

CLIENT = (
    "/opt/py/python",
    "-I",
    "-S",
    "/opt/x/journeyman/hosts/client.py",
    "/home/a",
    "claude-code",
)
PARTS = ("opening", "gate", "import")
FILE = "/home/a/settings.json"
WANTED = hooks_file.wanted_groups("claude-code", PARTS, CLIENT, HostsSettings(), FILE)
OWN_HOOK = WANTED["Stop"]["hooks"][0]
FOREIGN = {"hooks": [{"type": "command", "command": "notify-send done"}]}


def hooks_editor(path: Path, wanted: hooks_file.Groups = WANTED) -> HooksEditor:
    return HooksEditor(path, "Claude Code", wanted, takes_bom=True)


class Installed:
    """A file, and the record of what was done to it."""

    def __init__(self, folder: Path, content: bytes | None, *, name: str = "settings.json") -> None:
        self.path = folder / "config" / name
        self._copy = folder / "home" / "copy"
        self.record: FileRecord | None = None
        if content is not None:
            self.path.parent.mkdir(parents=True)
            self.path.write_bytes(content)

    def install(self, editor: Editor) -> FileChange:
        change = plan_installation(self.path, editor, self.record)
        self.record = file_record(change, self._copy)
        if change.original is not None:
            write_private(self._copy, change.original)
        apply(change)
        return change

    def remove(self, editor: Editor) -> None:
        apply(plan_removal(self.path, editor, self.record))

    @property
    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


names = st.text(min_size=1, max_size=8)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
hook_lists = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.just(FOREIGN["hooks"][0]) | st.just({"type": "prompt"}), max_size=2)},
        optional={"matcher": st.text(max_size=4)},
    ),
    max_size=3,
)
events = st.dictionaries(st.sampled_from([*WANTED, "Notification"]), hook_lists, max_size=4)
settings_values = st.dictionaries(names.filter(lambda name: name != "hooks"), values, max_size=4)


@st.composite
def settings_files(draw: st.DrawFn) -> dict[str, Any]:
    value = draw(settings_values)
    if draw(st.booleans()):
        value = {**value, "hooks": draw(events)}
    keys = draw(st.permutations([*value]))
    return {key: value[key] for key in keys}


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    gaps = (
        [(",", ":"), (", ", ": "), (" , ", " : ")] if indent is None else [(",", ": "), (",", ":")]
    )
    return {
        "indent": indent,
        "separators": draw(st.sampled_from(gaps)),
        "ensure_ascii": draw(st.booleans()),
    }


@st.composite
def written_files(draw: st.DrawFn) -> bytes:
    text = json.dumps(draw(settings_files()), **draw(layouts()))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    mark = draw(st.sampled_from(["", "\ufeff"]))
    space = st.sampled_from(["", "\n", "\r\n", " ", "\n\n\t"])
    return f"{mark}{draw(space)}{text}{draw(space)}".encode("utf-8", "surrogatepass")


def is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(content=written_files().filter(is_text), again=st.booleans())
def test_removal_restores_any_settings_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, again: bool
) -> None:
    file = Installed(tmp_path_factory.mktemp("file"), content)
    editor = hooks_editor(file.path)
    file.install(editor)
    installed = file.content
    assert installed is not None
    found = json.loads(installed.decode("utf-8-sig"))
    before = json.loads(content.decode("utf-8-sig"))
    own = {hook.event for hook in hooks_file.own_hooks(json.dumps(found))}
    assert own == {*WANTED}
    assert {**found, "hooks": 0} == {**before, "hooks": 0}
    if again:
        assert not file.install(editor).is_needed
    # Taken out entry by entry, as if the copy were lost, the text is the same, too.
    assert file.record is not None
    assert editor.without_entries(installed, file.record.present) == content
    file.remove(editor)
    assert file.content == content


@given(
    value=settings_files(),
    key=names.filter(lambda name: name != "hooks"),
    added=values,
    layout=st.tuples(st.sampled_from([2, 4]), st.integers(0, 3)),
)
def test_what_others_changed_since_stays(
    tmp_path_factory: pytest.TempPathFactory,
    value: dict[str, Any],
    key: str,
    added: Any,
    layout: tuple[int, int],
) -> None:
    """Someone adds a setting and a hook of their own, and writes the file anew, as Claude Code
    does: `JSON.stringify(value, null, 2)`.
    """
    indent, place = layout

    def changed(settings: dict[str, Any]) -> dict[str, Any]:
        groups = settings.get("hooks", {}).get("Stop", [])
        more = [*groups[:place], FOREIGN, *groups[place:]]
        hooks = {**settings.get("hooks", {}), "Stop": more}
        return {**settings, "hooks": hooks, key: added}

    def written(settings: dict[str, Any]) -> bytes:
        text = json.dumps(settings, indent=indent, ensure_ascii=False)
        return f"{text}\n".encode("utf-8", "surrogatepass")

    before = written(value)
    if not is_text(before):
        return
    file = Installed(tmp_path_factory.mktemp("file"), before)
    editor = hooks_editor(file.path)
    file.install(editor)
    file.path.write_bytes(written(changed(json.loads(file.path.read_bytes()))))
    expected = json.loads(written(changed(value)))
    # The group stands where it was put among all groups, of which some were Journeyman's.
    expected["hooks"]["Stop"] = [
        group
        for group in json.loads(file.path.read_bytes())["hooks"]["Stop"]
        if not any(hooks_file.is_own_command(hook.get("command")) for hook in group["hooks"])
    ]
    file.remove(editor)
    assert file.content is not None
    left = json.loads(file.content)
    assert left == expected
    assert file.content == written(left)


@given(
    value=settings_files(),
    steps=st.lists(
        st.sets(st.sampled_from(PARTS), min_size=1) | st.tuples(names, scalars), max_size=5
    ),
)
def test_any_order_of_updates_and_changes_of_others(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], steps: list[Any]
) -> None:
    """Parts come and go, and in between others add settings and write the file anew."""
    content = json.dumps(value, indent=2).encode("utf-8", "surrogatepass")
    file = Installed(tmp_path_factory.mktemp("file"), content)
    expected = json.loads(content)
    editor = hooks_editor(file.path)
    for step in steps:
        if isinstance(step, tuple):
            key, added = f"other {step[0]}", step[1]
            expected[key] = added
            settings = {**json.loads(file.path.read_bytes()), key: added}
            file.path.write_text(json.dumps(settings, indent=2))
        else:
            wanted = hooks_file.wanted_groups("claude-code", step, CLIENT, HostsSettings(), FILE)
            editor = hooks_editor(file.path, wanted)
            file.install(editor)
            own = [hook.event for hook in hooks_file.own_hooks(file.path.read_text())]
            assert sorted(own) == sorted(wanted)
    file.remove(editor)
    assert file.content == json.dumps(expected, indent=2).encode()


class TestHooks:
    @table(
        ("before", "after"),
        [
            ("{}", '{\n  "hooks": {\n    "Stop": [\n      #\n    ]\n  }\n}'),
            ("", '{\n  "hooks": {\n    "Stop": [\n      #\n    ]\n  }\n}\n'),
            ('{"a":1}', '{"a":1,"hooks":{"Stop":[#]}}'),
            ('{"a": 1}', '{"a": 1, "hooks": {"Stop": [#]}}'),
            ('{\n\t"hooks": {}\n}', '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t#\n\t\t]\n\t}\n}'),
            (
                '{\r\n  "hooks": {"Stop": [{"hooks": []}]}\r\n}',
                '{\r\n  "hooks": {"Stop": [{"hooks": []}, #]}\r\n}',
            ),
        ],
    )
    def test_entries_are_laid_out_like_their_neighbours(self, before: str, after: str) -> None:
        editor = hooks_editor(Path("settings.json"), {"Stop": {"a": "b"}})
        written = editor.with_entries(before.encode(), ()).decode()
        inner = after.partition("#")[0].rpartition("\n")[2]
        is_compact = '"a":1' in after
        own = '{"a":"b"}' if is_compact else '{"a": "b"}'
        if inner.isspace():
            indent = "\t" if "\t" in inner else "  "
            own = f'{{\n{inner}{indent}"a": "b"\n{inner}}}'
        assert written == after.replace("#", own)

    def test_an_update_leaves_entries_where_they_stand(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, json.dumps({"hooks": {"Stop": [FOREIGN]}}, indent=2).encode())
        before = file.content
        file.install(hooks_editor(file.path))
        text = json.loads(file.path.read_bytes())
        text["hooks"]["Stop"].append(FOREIGN)
        file.path.write_text(json.dumps(text, indent=2))
        newer = hooks_file.wanted_groups(
            "claude-code", ("import",), ("/new/python", *CLIENT[1:]), HostsSettings(), FILE
        )
        file.install(hooks_editor(file.path, newer))
        assert json.loads(file.path.read_bytes()) == {
            "hooks": {
                "Stop": [FOREIGN, newer["Stop"], FOREIGN],
                "SessionEnd": [newer["SessionEnd"]],
            }
        }
        file.remove(hooks_editor(file.path, newer))
        expected = json.loads(before or b"")
        expected["hooks"]["Stop"].append(FOREIGN)
        assert file.content == json.dumps(expected, indent=2).encode()

    def test_a_command_moved_into_another_group_is_taken_out_of_it(self) -> None:
        hooks = [*FOREIGN["hooks"], OWN_HOOK]
        text = json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": hooks}]}})
        left = json.loads(hooks_file.without_groups(text))
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
        package = str(folder / "journeyman/hosts/client.py")
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
            (b'{"a": 1,}', "it is not JSON"),
            (b'{"a": 1 // note\n}', "it has a comment in line 1"),
            (b"/* mine */ {}", "it has a comment in line 1"),
            (b"[]", "it does not contain a JSON object"),
            (b'{"a": NaN}', "NaN"),
            (b'{"hooks": []}', '"hooks" is not an object'),
            (b'{"hooks": {"Stop": {}}}', "no list for Stop"),
            (b"\xff\xfe{\x00}\x00", "it is not UTF-8"),
            (b"[" * 100_000, "it is n"),
        ],
    )
    def test_a_file_that_the_host_cannot_read_is_left_alone(
        self, tmp_path: Path, content: bytes, clause: str
    ) -> None:
        path = tmp_path / "settings.json"
        path.write_bytes(content)
        with pytest.raises(OutsideProblem, match="Nothing was changed") as raised:
            plan_installation(path, hooks_editor(path), None)
        assert clause in str(raised.value)

    def test_codex_does_not_read_a_byte_order_mark(self, tmp_path: Path) -> None:
        editor = HooksEditor(tmp_path / "hooks.json", "Codex", WANTED, takes_bom=False)
        with pytest.raises(OutsideProblem, match="byte order mark"):
            editor.with_entries(b"\xef\xbb\xbf{}", ())

    def test_the_last_of_two_equal_keys_counts(self) -> None:
        text = '{"a": [1], "a": [2]}'
        assert json_text.append(text, ("a",), None, 3) == '{"a": [1], "a": [2, 3]}'


class TestFiles:
    def test_a_file_and_its_folders_that_were_created_go_again(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        file.install(hooks_editor(file.path))
        assert file.content is not None
        assert file.content.endswith(b"}\n")
        file.remove(hooks_editor(file.path))
        assert not file.path.parent.exists()

    def test_a_created_file_stays_when_something_else_is_in_it(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        file.install(hooks_editor(file.path))
        text = json_text.append(file.path.read_text(), (), "model", "opus")
        file.path.write_text(text)
        file.remove(hooks_editor(file.path))
        assert file.content == b'{\n  "model": "opus"\n}\n'

    def test_a_created_file_goes_when_the_host_only_rewrote_it(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        file.install(hooks_editor(file.path))
        file.path.write_text(json.dumps(json.loads(file.path.read_text())))
        file.remove(hooks_editor(file.path))
        assert file.content is None

    def test_a_symbolic_link_stays_one(self, tmp_path: Path) -> None:
        dotfiles = tmp_path / "dotfiles"
        dotfiles.mkdir()
        (dotfiles / "settings.json").write_text('{"a": 1}\n')
        (dotfiles / "settings.json").chmod(0o640)
        file = Installed(tmp_path, None)
        file.path.parent.mkdir()
        file.path.symlink_to(dotfiles / "settings.json")
        file.install(hooks_editor(file.path))
        assert file.path.is_symlink()
        assert b"hooks" in (dotfiles / "settings.json").read_bytes()
        assert (dotfiles / "settings.json").stat().st_mode & 0o777 == 0o640
        file.remove(hooks_editor(file.path))
        assert file.path.is_symlink()
        assert (dotfiles / "settings.json").read_text() == '{"a": 1}\n'

    def test_a_link_to_a_file_that_does_not_exist_yet(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, None)
        file.path.parent.mkdir()
        file.path.symlink_to(tmp_path / "dotfiles/settings.json")
        file.install(hooks_editor(file.path))
        assert (tmp_path / "dotfiles/settings.json").exists()
        file.remove(hooks_editor(file.path))
        assert file.path.is_symlink()
        assert not (tmp_path / "dotfiles").exists()

    def test_a_file_that_changes_after_the_plan_is_left_alone(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b"{}")
        change = plan_installation(file.path, hooks_editor(file.path), None)
        file.path.write_bytes(b'{"a": 1}')
        with pytest.raises(OutsideProblem, match="in the meantime"):
            apply(change)
        assert file.content == b'{"a": 1}'

    def test_an_interrupted_installation_can_be_removed(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b'{"a":   1}')
        editor = hooks_editor(file.path)
        record = file_record(plan_installation(file.path, editor, None), tmp_path / "copy")
        change = plan_removal(file.path, editor, record)
        assert not change.is_needed

    def test_without_the_copy_the_entries_are_taken_out(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b'{"a":   1}')
        file.install(hooks_editor(file.path))
        (tmp_path / "home/copy").unlink()
        file.remove(hooks_editor(file.path))
        assert file.content == b'{"a":   1}'

    def test_a_file_of_the_same_name_comes_back(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b"// mine", name="journeyman.js")
        for version in (b"own 1", b"own 2"):
            file.install(WholeFile(version, b"own"))
            assert file.content == version
        file.path.write_bytes(b"own 2, edited")
        file.remove(WholeFile(b"own 2", b"own"))
        assert file.content == b"// mine"

    def test_a_file_of_its_own_goes_also_without_a_record(self, tmp_path: Path) -> None:
        file = Installed(tmp_path, b"own 1", name="journeyman.js")
        assert plan_removal(file.path, WholeFile(b"own 2", b"own"), None).after is None
        assert not plan_removal(file.path, WholeFile(b"own 2", b"other"), None).is_needed

    def test_the_diff_shows_what_changes(self, tmp_path: Path) -> None:
        path = tmp_path / "settings.json"
        change = FileChange(path=path, before=None, after=b"a\r\nb")
        assert change.diff.splitlines()[:2] == ["--- /dev/null", f"+++ {path}"]
        assert change.diff.endswith("+a␍\n+b\n\\ No newline at end of file\n")


YAML_SHAPES = {
    "nothing": "",
    "comments": "# only\n\n# comments\n",
    "no plugins": "model:\n  default: x  # mine\n",
    "no line end": "model:\n  default: x",
    "windows": "model:\r\n  default: x\r\n",
    "empty flow": "plugins:\n  enabled: []  # none\n  disabled: []\n",
    "flow": 'plugins:\n  enabled: [a, "b"]\nmodel: {}\n',
    "flow with spaces": "plugins:\n  enabled: [ a ]\n",
    "block": "plugins:\n  enabled:\n    - a  # first\n    # then\n    - b\n  disabled: []\n",
    "block at the margin": "plugins:\n  enabled:\n  - a\n  - b\n",
    "block without line end": "plugins:\n  enabled:\n  - a",
    "other keys": "plugins:\n    # off\n    disabled: []\n    entries:\n      a:\n        x: 1\n",
    "null list": "plugins:\n  enabled:\n  disabled: []\n",
    "null": "plugins:\nmodel: x\n",
    "quoted key": "\"plugins\":\n  'enabled': [a]\n",
    "document mark": "---\n# c\nmodel: x\nplugins:\n  enabled:\n    - a\n",
    "text block": "a: |\n  plugins:\n    enabled: []\nplugins:\n  enabled: []\n",
    "text block at the end": "model: x\na: |+\n  text\n\n",
    "nested": "x:\n  plugins:\n    enabled: [no]\ny: 1\n",
    "mapping on one line": "plugins: {disabled: [x], enabled: [a, b]}  # mine\nmodel: x\n",
    "empty list in a mapping": "plugins: {enabled: [], disabled: []}\n",
    "byte order mark": "\ufeffplugins:\n  enabled: []\n",
}


def enabled(text: str) -> list[str]:
    plugins = (yaml.safe_load(text) or {}).get("plugins") or {}
    names: list[str] = plugins.get("enabled") or []
    return names


class TestPlugins:
    @table("name", YAML_SHAPES)
    def test_one_plugin_more_and_as_before_again(self, name: str) -> None:
        text = YAML_SHAPES[name]
        edited = yaml_list.with_plugin(text, "journeyman", yaml.safe_load)
        assert yaml_list.enabled_plugins(edited) == (*enabled(text), "journeyman")
        assert enabled(edited) == [*enabled(text), "journeyman"]
        assert yaml_list.with_plugin(edited, "journeyman", yaml.safe_load) == edited
        assert "\r\n" not in text or "\n" not in edited.replace("\r\n", "")
        assert {line for line in text.splitlines() if "#" in line and "[" not in line} <= {
            *edited.splitlines()
        }
        left = yaml_list.without_plugin(edited, "journeyman", yaml_list.present_keys(text))
        assert enabled(left) == enabled(text)
        # A list that was null is empty, and a line end at the end stays.
        assert left.removesuffix("\n") == text.removesuffix("\n").replace(
            "enabled:\n  disabled", "enabled: []\n  disabled"
        )

    @table(
        ("text", "clause"),
        [
            ("{model: x}\n", "line 1 does not begin with a plain key"),
            ("plugins: {disabled: [a]}\n", "is not a list of names"),
            ("plugins: {}\n", "is not a list of names"),
            ("plugins: none\n", "is not a mapping"),
            ("plugins:\n  enabled: all\n", "is not a list of names"),
            ("plugins:\n  enabled: [a,\n    b]\n", "is not a list of names"),
            ("plugins:\n  enabled:\n    - name: a\n", "line 3"),
            ("plugins:\n  enabled: &x [a]\nother: *x\n", ""),
            ("a: 1\n---\nb: 2\n", "more than one document"),
            ("plugins:\n  enabled: []\nplugins:\n  enabled: []\n", "twice"),
            ("- a\n- b\n", "plain key"),
            ("plugins:\n\tenabled: []\n", "indented"),
        ],
    )
    def test_a_shape_that_cannot_be_edited_safely_is_refused(self, text: str, clause: str) -> None:
        with pytest.raises(yaml_list.NotEditable) as raised:
            yaml_list.with_plugin(text, "journeyman")
        assert clause in str(raised.value)

    @table("content", [b"a: [1\n", b"- a\n", b"a: 1\nb\n", b"\xff", b"text\n"])
    def test_what_is_not_a_mapping_is_refused(self, tmp_path: Path, content: bytes) -> None:
        def parse(text: str) -> Any:
            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(str(error)) from error

        editor = PluginsEditor(tmp_path / "config.yaml", parse)
        with pytest.raises(OutsideProblem, match="hermes plugins enable journeyman"):
            editor.with_entries(content, ())

    @given(
        enabled=st.lists(st.sampled_from(["a", "b-c", "x/y"]), unique=True, max_size=3),
        is_flow=st.booleans(),
        added=st.sampled_from(["z: 1\n", "# note\n", "z:\n  - 1\n"]),
        at_top=st.booleans(),
    )
    def test_what_others_changed_since_stays(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        enabled: list[str],
        is_flow: bool,
        added: str,
        at_top: bool,
    ) -> None:
        plugins = {"plugins": {"enabled": enabled, "disabled": []}}
        text = "# mine\n" + yaml.safe_dump(plugins, default_flow_style=None if is_flow else False)
        file = Installed(tmp_path_factory.mktemp("file"), text.encode(), name="config.yaml")
        editor = PluginsEditor(file.path, yaml.safe_load)
        file.install(editor)
        edited = file.path.read_text()
        file.path.write_text(added + edited if at_top else edited + added)
        file.remove(editor)
        assert file.content == (added + text if at_top else text + added).encode()
