"""The hooks of Claude Code and Codex: what each event prints."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.host_service import (
    FOUND,
    GONE,
    MOVED,
    OTHER_TASK,
    REMEDY,
    START,
    TASK,
    TOLD,
    Desk,
    Experience,
    conversation,
    opened,
    refuse,
)

from journeyman.plugin.gate import GateAnswer
from journeyman.plugin.hook_events import HookInput, permission
from journeyman.plugin.installation.record import Record, write_record
from journeyman.plugin.opening_parts import explain_session
from journeyman.records.errors import WrongInput

LOOK = {"tool_name": "Bash", "tool_input": {"command": f"cat {MOVED}"}}
FAILED = f"Exit code 1\ncat: {MOVED}: No such file or directory"
LINT = {"tool_name": "Bash", "tool_input": {"command": "notelint -q notes.txt"}}
NOT_FOUND = "Exit code 127\nbash: line 1: notelint: command not found"
TEXT_HOSTS = ("claude-code", "codex")


class TestContext:
    @pytest.mark.parametrize("host", TEXT_HOSTS)
    def test_a_session_of_each_client(self, desk: Desk, host: str) -> None:
        project = desk.context("SessionStart", host=host, source="startup", transcript_path=None)
        assert START in project
        assert REMEDY in project
        task = desk.context("UserPromptSubmit", host=host, prompt=TASK, turn_id="t", model="m")
        assert TOLD[TASK] in task
        kinds = [(one[2], one[3]) for one in desk.events]
        assert kinds == [("opening", "given"), ("opening", "given")]
        events = desk.journeyman.host_sessions.events()
        assert all(one.tokens > 0 and one.ms > 0 for one in events)

    def test_what_is_no_request_gets_nothing(self, desk: Desk) -> None:
        desk.context("SessionStart", source="startup")
        prompts = (
            "",
            "  ",
            "/compact",
            f"/journeyman:why {TASK}",
            "yes",
            f"<task-notification>\n<id>3</id> {TASK}",
        )
        for prompt in prompts:
            assert desk.context("UserPromptSubmit", prompt=prompt) == "", prompt
        assert desk.context("UserPromptSubmit", prompt=f"/srv/notes is wrong. {TASK}")

    def test_subagents_get_openings_only_on_request(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        looks = {**LOOK, "agent_id": "a1"}
        failed = {**LINT, "error": NOT_FOUND, "agent_id": "a1"}
        with opened(experience, tmp_path) as desk:
            assert desk.hook("SessionStart", source="startup", agent_id="a1") is None
            assert desk.hook("PreToolUse", **looks) is None
            assert desk.hook("PostToolUseFailure", **failed) is None
            # The gate holds for them too.
            delete = {"tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}
            assert desk.hook("PreToolUse", agent_id="a1", **delete)
        with opened(experience, tmp_path, settings="[hosts]\nsubagents = true\n") as desk:
            assert desk.hook("PreToolUse", **looks)
            assert desk.hook("PostToolUseFailure", **failed)


class TestForks:
    def test_a_fork_of_codex_inherits_from_its_parent(self, desk: Desk, tmp_path: Path) -> None:
        project = desk.context("SessionStart", "parent", "codex", source="startup")
        desk.context("UserPromptSubmit", "parent", "codex", prompt=TASK)
        log = tmp_path / "rollout.jsonl"
        meta = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
        log.write_text(json.dumps(meta) + "\n")
        started = {"source": "resume", "transcript_path": str(log)}
        assert desk.context("SessionStart", "child", "codex", **started) == ""
        # It has seen what its parent saw.
        assert desk.context("UserPromptSubmit", "child", "codex", prompt=TASK) == ""
        assert desk.context("UserPromptSubmit", "child", "codex", prompt=OTHER_TASK)
        record = desk.journeyman.host_sessions.find("codex", "child")
        assert record is not None
        assert record.opening in project


class TestCalls:
    """What is known against exactly a call, before it runs."""

    def test_it_is_told_once_in_a_session(self, desk: Desk) -> None:
        desk.context("SessionStart", source="startup")
        told = desk.context("PreToolUse", **LOOK)
        assert FOUND in told
        assert "[Journeyman" not in told
        (explained,) = explain_session(desk.journeyman, "s1")
        assert explained.texts[-1] == told
        assert desk.hook("PreToolUse", **LOOK) is None
        # It was told already: the failure needs no second time.
        assert desk.context("PostToolUseFailure", **LOOK, error=FAILED) == ""
        assert desk.context("PreToolUse", "other", **LOOK) == told

    def test_what_the_start_said_is_told_again_at_its_call(self, desk: Desk) -> None:
        assert "notelint" in desk.context("SessionStart", source="startup")
        assert "notelint" in desk.context("PreToolUse", **LINT)
        assert desk.hook("PreToolUse", **LINT) is None

    def test_lint_rules_wait_for_the_first_change_where_the_host_can(self, desk: Desk) -> None:
        report = ("ruff check .", "Exit code 1\nnotes.py:1:8: F401 `os` imported but unused")
        for number in (1, 2):
            work, name = conversation("Lint the notes", (report,)), f"lint-{number}"
            desk.journeyman.record(work, source="claude_code", session_id=name, cwd=desk.project)
        desk.journeyman.learn()
        assert "F401" in desk.context("SessionStart", "s2", "codex", source="startup")
        assert "F401" not in desk.context("SessionStart", source="startup")
        file = f"{desk.project}/notes.py"
        edit = {
            "tool_name": "Edit",
            "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
        }
        assert "F401" in desk.context("PreToolUse", **edit)
        assert desk.hook("PreToolUse", **edit) is None
        write_record(desk.journeyman.settings.home, Record(host="claude-code", parts=("opening",)))
        assert "F401" in desk.context("SessionStart", "s3", source="startup")

    def test_the_calls_that_nothing_is_known_against(self, desk: Desk) -> None:
        desk.context("SessionStart", source="startup")
        calls = [
            {"tool_name": "Bash", "tool_input": {"command": f"cat {FOUND}"}},
            {"tool_name": "Bash", "tool_input": {"command": f"cat other/{MOVED}"}},
            {"tool_name": "Bash", "tool_input": {"command": f"echo 'cat {MOVED} is wrong'"}},
            {"tool_name": "Task", "tool_input": {"prompt": f"cat {MOVED}"}},
            {"tool_name": "", "tool_input": {}},
            {**LOOK, "cwd": desk.other},
        ]
        for call in calls:
            assert desk.hook("PreToolUse", **call) is None, call

    def test_tools_for_files_count_too(self, desk: Desk) -> None:
        read = {"tool_name": "Read", "tool_input": {"file_path": f"{desk.project}/{MOVED}"}}
        assert FOUND in desk.context("PreToolUse", **read)

    def test_what_the_person_wants_is_told_before_the_call(
        self, desk: Desk, tmp_path: Path
    ) -> None:
        words = "never stash, commit your work instead"
        refuse(desk.journeyman, tmp_path / "r.jsonl", desk.project, "git stash", words)
        stash = {"tool_name": "Bash", "tool_input": {"command": "git stash"}}
        assert desk.hook("PreToolUse", **stash) is None  # a draft
        project = desk.journeyman.find_project(desk.project)
        (draft,) = desk.journeyman.facts.list(project, drafts=True)
        desk.journeyman.facts.decide(project, draft.id, "pinned")
        # It is said before the call runs: context would arrive with its result.
        for host in TEXT_HOSTS:
            blocked = desk.hook("PreToolUse", host=host, **stash)["hookSpecificOutput"]
            assert blocked["permissionDecision"] == "deny"
            assert "never stash" in blocked["permissionDecisionReason"]
            assert desk.hook("PreToolUse", host=host, **stash) is None
        pull = {"tool_name": "Bash", "tool_input": {"command": "git pull"}}
        assert desk.hook("PreToolUse", "other", **pull) is None

    @pytest.mark.parametrize("host", TEXT_HOSTS)
    def test_a_denial_says_it_in_its_reason(self, desk: Desk, host: str) -> None:
        risky = {"tool_name": "Bash", "tool_input": {"command": f"cat {MOVED}; rm -rf /"}}
        denied = desk.hook("PreToolUse", host=host, **risky)["hookSpecificOutput"]
        assert denied["permissionDecision"] == "deny"
        assert denied["permissionDecisionReason"].startswith("Blocked by Journeyman: the rule")
        assert FOUND in denied["permissionDecisionReason"]
        assert denied.keys() == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
        again = desk.hook("PreToolUse", host=host, **risky)["hookSpecificOutput"]
        assert FOUND not in again["permissionDecisionReason"]

    def test_codex_gets_nothing_with_a_call_that_passes(self, desk: Desk) -> None:
        # It takes any answer but a denial for a failure of the hook.
        assert desk.hook("PreToolUse", host="codex", **LOOK) is None

    def test_a_host_without_openings_gets_nothing(self, desk: Desk) -> None:
        write_record(desk.journeyman.settings.home, Record(host="claude-code", parts=("gate",)))
        assert desk.hook("PreToolUse", **LOOK) is None

    def test_a_locked_database_does_not_block_the_call(
        self, experience: Experience, tmp_path: Path
    ) -> None:
        with (
            opened(experience, tmp_path) as desk,
            closing(sqlite3.connect(tmp_path / "home" / "journeyman.db")) as other,
        ):
            other.execute("BEGIN IMMEDIATE")
            assert desk.hook("PreToolUse", **LOOK) is None
            other.execute("ROLLBACK")
            assert FOUND in desk.context("PreToolUse", **LOOK)


class TestHints:
    def test_a_hint_comes_once_in_a_session(self, desk: Desk) -> None:
        failed = {**LINT, "error": NOT_FOUND}
        hint = desk.context("PostToolUseFailure", **failed)
        assert REMEDY in hint
        assert desk.context("PostToolUseFailure", **failed) == ""
        assert desk.context("PostToolUseFailure", "other", **failed) == hint
        assert desk.events == [("claude-code", name, "hint", "given") for name in ("s1", "other")]

    def test_codex_reports_failures_as_texts(self, desk: Desk) -> None:
        ran = {**LOOK, "host": "codex"}
        assert desk.context("PostToolUse", **ran, tool_response="It rained.") == ""
        assert desk.context("PostToolUse", **ran, tool_response={"output": FAILED}) == ""
        assert FOUND in desk.context("PostToolUse", **ran, tool_response=FAILED)

    def test_other_failures_have_no_hint(self, desk: Desk) -> None:
        gone = {"tool_name": "Bash", "tool_input": {"command": f"cat {GONE[TASK]}"}}
        cases: list[dict[str, Any]] = [
            {**LINT, "error": f"{NOT_FOUND}\nUse {REMEDY} instead."},  # it says so itself
            {**gone, "error": FAILED},  # nothing is known to work instead
            {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "Exit code 2\nstop"},
            {"tool_name": "Read", "tool_input": {"file_path": "x"}, "error": "File not found"},
            {"tool_name": "", "tool_input": None, "error": ""},
            {**LINT, "error": NOT_FOUND, "cwd": "/elsewhere"},
        ]
        for case in cases:
            assert desk.context("PostToolUseFailure", **case) == "", case


class TestGate:
    def call(self, desk: Desk, command: str, host: str = "claude-code", **more: Any) -> Any:
        arguments = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "t1"}
        answer = desk.hook("PreToolUse", host=host, **arguments, **more)
        return answer and answer["hookSpecificOutput"]

    @pytest.mark.parametrize("host", TEXT_HOSTS)
    def test_what_no_rule_names_prints_nothing(self, desk: Desk, host: str) -> None:
        assert self.call(desk, "ls", host) is None

    @pytest.mark.parametrize("host", TEXT_HOSTS)
    def test_a_denial_has_its_reason(self, desk: Desk, host: str) -> None:
        output = self.call(desk, "rm -rf /", host)
        assert output.pop("permissionDecisionReason").startswith("Blocked by Journeyman: the rule")
        assert output == {"hookEventName": "PreToolUse", "permissionDecision": "deny"}

    def test_input_that_is_no_object_is_held(self, desk: Desk) -> None:
        # Without a service, what needs a person is denied.
        for given in ("rm -rf /", ["rm"], 3, None, True):
            output = desk.hook("PreToolUse", tool_name="Bash", tool_input=given)
            decided = output["hookSpecificOutput"]["permissionDecision"]
            assert decided == "deny", given
        with pytest.raises(WrongInput):
            desk.hook("PreToolUse", tool_name=3)

    def test_what_each_client_is_told(self) -> None:
        edited = {"command": "ls"}
        table: list[tuple[GateAnswer, dict[str, Any] | None, dict[str, Any] | None]] = [
            (GateAnswer(decision="allow"), None, None),
            (
                GateAnswer(decision="allow", asked=True),
                {
                    "permissionDecision": "allow",
                    "permissionDecisionReason": "A person approved it in Journeyman.",
                },
                None,
            ),
            (
                GateAnswer(decision="allow", asked=True, arguments=edited),
                {"permissionDecision": "allow", "updatedInput": edited},
                {"permissionDecision": "allow", "updatedInput": edited},
            ),
            (
                GateAnswer(decision="ask", reason="r"),
                {"permissionDecision": "ask", "permissionDecisionReason": "r"},
                {"permissionDecision": "deny", "permissionDecisionReason": "r"},
            ),
            (
                GateAnswer(decision="wait", reason="r"),
                {"permissionDecision": "defer", "permissionDecisionReason": "r"},
                # To Codex, "defer" would mean yes.
                {"permissionDecision": "deny", "permissionDecisionReason": "r"},
            ),
        ]
        for answer, claude, codex in table:
            for host, wanted in (("claude-code", claude), ("codex", codex)):
                printed = permission(host, answer)
                if wanted is None:
                    assert printed is None
                else:
                    assert printed == {
                        "hookSpecificOutput": {"hookEventName": "PreToolUse", **wanted}
                    }

    def test_who_defers_and_who_has_a_person(self, desk: Desk) -> None:
        table = {"sdk-cli": (True, False), "cli": (False, True), "claude-vscode": (False, True)}
        table |= dict.fromkeys(("sdk-py", "sdk-ts", "remote", ""), (False, False))
        body = {"session_id": "s", "hook_event_name": "PreToolUse"}
        for entrypoint, wanted in table.items():
            event = msgspec.convert({**body, "journeyman_entrypoint": entrypoint}, HookInput)
            assert (event.is_headless, event.is_attended) == wanted, entrypoint
        asked = self.call(desk, "git push --force", journeyman_entrypoint="cli")
        assert asked["permissionDecision"] == "ask"
        assert asked["permissionDecisionReason"].startswith("Journeyman: It ")
        write = {"tool_name": "Write", "tool_input": {"file_path": "/etc/x", "content": ""}}
        printed = desk.hook("PreToolUse", journeyman_entrypoint="cli", **write)
        assert "(rule write.outside)" in printed["systemMessage"]
        # Codex has no such prompt, and without a service the call is denied.
        held = self.call(desk, "git push --force", "codex", journeyman_entrypoint="cli")
        assert held["permissionDecision"] == "deny"


class TestImports:
    def test_ends_of_turns_are_reported(self, experience: Experience, tmp_path: Path) -> None:
        reported = tmp_path / "home/imports.jsonl"
        with opened(experience, tmp_path) as desk:
            for number, (event, host) in enumerate(
                [("Stop", "claude-code"), ("SessionEnd", "claude-code"), ("Stop", "codex")]
            ):
                path = str(tmp_path / f"{number}.jsonl")
                assert desk.hook(event, host=host, transcript_path=path) is None
                assert len(reported.read_text().split()) == number + 1
            assert desk.ask("import", "opencode", session="s", path="/logs/opencode.db") == {}
            assert len(reported.read_text().split()) == 4
            assert desk.events == []
