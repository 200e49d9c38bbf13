"""Memory and skill tools: their answers, the writes they record, and rollback on failure."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.tables import table

from journeyman.agent.knowledge.knowledge import Knowledge
from journeyman.agent.review.journal import journal_entry
from journeyman.agent.review.rules import WriteForbidden
from journeyman.agent.tools.knowledge_tools import knowledge_tools
from journeyman.agent.tools.tool import Invocation, Result, Tool
from journeyman.outcomes.judge import judge
from journeyman.records import Call, Provenance, Write
from journeyman.records.errors import StoreUnavailable

SKILL = "---\nname: deploy\ndescription: How to deploy\n---\nRun it.\n"


class Desk:
    """The tools for one folder, with the writes they recorded and the files they showed."""

    def __init__(self, folder: Path) -> None:
        self.knowledge = Knowledge(folder, limits={"memory": 100, "user": 100})
        self.kept: list[tuple[Write, Invocation]] = []
        self.viewed: list[str] = []
        self.forbidden = ""
        self.broken = False
        self.tools: dict[str, Tool] = {
            tool.name: tool
            for tool in knowledge_tools(
                self.knowledge, keep=self._keep, check=self._check, viewed=self.viewed.append
            )
        }

    def _keep(self, write: Write, invocation: Invocation) -> None:
        if self.broken:
            raise StoreUnavailable("The database is away.")
        self.kept.append((write, invocation))

    def _check(self, write: Write, invocation: Invocation) -> None:
        if self.forbidden:
            raise WriteForbidden(f"{self.forbidden} ({write.action})")

    def __call__(self, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer; the judge must agree with its status."""
        tool = self.tools[tool_name]
        jsonschema.validate(arguments, tool.parameters)
        result: Result = tool.run(Invocation(call_id="call-1", arguments=arguments))
        content: dict[str, Any] = json.loads(result.text)
        status = "ok" if content["success"] else "failed"
        if content.get("status") == "blocked":
            status = "refused"
        call = Call(id="call-1", tool=tool_name, result=result.text, recorded=result.recorded)
        assert judge(call).status == status
        plain = Call(id="call-1", tool=tool_name, result=result.text)
        assert judge(plain).status == status
        return content


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_names_and_read_only_flags(desk: Desk) -> None:
    assert {name: tool.reads_only for name, tool in desk.tools.items()} == {
        "memory": False,
        "skills_list": True,
        "skill_view": True,
        "skill_manage": False,
    }
    for tool in desk.tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.parameters)


class TestMemory:
    def test_added_entry_is_stored_and_recorded(self, desk: Desk) -> None:
        assert desk("memory", action="add", target="user", content="Likes tea") == {
            "success": True,
            "done": True,
            "target": "user",
            "usage": "9% — 9/100 chars",
            "entry_count": 1,
            "message": "Entry added.",
        }
        assert desk.knowledge.memory.entries("user") == ("Likes tea",)
        [(write, invocation)] = desk.kept
        assert write.summary == "user: added “Likes tea”"
        assert invocation.call_id == "call-1"

    def test_entries_are_replaced_and_removed(self, desk: Desk) -> None:
        desk("memory", action="add", target="memory", content="Likes tea")
        answer = desk(
            "memory", action="replace", target="memory", old_text="tea", content="Likes milk"
        )
        assert answer["message"] == "Entry replaced."
        assert desk.knowledge.memory.entries("memory") == ("Likes milk",)
        answer = desk("memory", action="remove", target="memory", old_text="milk")
        assert (answer["message"], answer["entry_count"]) == ("Entry removed.", 0)
        assert [write.action for write, _ in desk.kept] == ["add", "replace", "remove"]

    @table(
        ("arguments", "reason"),
        [
            ({"action": "add"}, "is empty"),
            ({"action": "remove"}, "`old_text` is empty"),
            ({"action": "replace", "content": "x"}, "`old_text` is empty"),
        ],
        ids=["add", "remove", "replace"],
    )
    def test_missing_arguments_are_named(
        self, desk: Desk, arguments: dict[str, str], reason: str
    ) -> None:
        assert reason in desk("memory", target="user", **arguments)["error"]
        assert desk.kept == []


class TestSkills:
    def test_lifecycle_of_a_skill(self, desk: Desk, tmp_path: Path) -> None:
        answer = desk("skill_manage", action="create", name="deploy", content=SKILL)
        assert answer["message"] == "Skill 'deploy' created."
        assert answer["path"] == "skills/deploy/SKILL.md"
        assert answer["_change"] == {"action": "create", "summary": "skill: created deploy"}
        references = tmp_path / "skills" / "deploy" / "references"
        references.mkdir()
        (references / "a.md").write_text("aa")
        patch = {"old_string": "Run", "new_string": "Walk"}
        assert desk("skill_manage", name="deploy", action="patch", **patch)["success"]
        assert desk("skills_list")["skills"] == [
            {"name": "deploy", "description": "How to deploy", "category": ""}
        ]
        assert desk("skill_view", name="deploy") == {
            "success": True,
            "name": "deploy",
            "description": "How to deploy",
            "path": "skills/deploy/SKILL.md",
            "content": SKILL.replace("Run", "Walk"),
            "linked_files": ["references/a.md"],
        }
        answer = desk("skill_view", name="deploy", file_path="references/a.md")
        assert (answer["file"], answer["content"]) == ("references/a.md", "aa")
        assert desk.viewed == ["skills/deploy/SKILL.md", "skills/deploy/references/a.md"]
        desk("skill_manage", action="edit", name="deploy", content=SKILL)
        assert [write.action for write, _ in desk.kept] == ["create", "patch", "edit"]

    @table(
        ("action", "reason"),
        [
            ("create", "create needs content"),
            ("edit", "edit needs content"),
            ("patch", "patch needs old_string and new_string"),
        ],
    )
    def test_missing_arguments_are_named(self, desk: Desk, action: str, reason: str) -> None:
        assert reason in desk("skill_manage", action=action, name="deploy")["error"]


class TestChecksAndJournal:
    def test_forbidden_write_is_refused(self, desk: Desk, tmp_path: Path) -> None:
        desk.forbidden = "Say what shows it"
        answer = desk("memory", action="add", target="user", content="tea")
        assert answer["error"] == "BLOCKED: Say what shows it (add)"
        assert (answer["current_entries"], answer["usage"]) == ([], "0% — 0/100 chars")
        answer = desk("skill_manage", action="create", name="deploy", content=SKILL)
        assert answer["error"] == "BLOCKED: Say what shows it (create)"
        assert desk.kept == []
        assert desk.knowledge.system_text() == ""

    def test_unrecorded_write_is_undone(self, desk: Desk) -> None:
        desk("memory", action="add", target="user", content="tea")
        desk("skill_manage", action="create", name="deploy", content=SKILL)
        before = desk.knowledge.system_text()
        desk.broken = True
        answer = desk("memory", action="add", target="user", content="milk")
        assert answer["error"] == "The database is away."
        assert answer["current_entries"] == ["tea"]
        for arguments in (
            {"action": "edit", "content": SKILL + "More."},
            {"action": "patch", "old_string": "Run", "new_string": "Walk"},
        ):
            assert not desk("skill_manage", name="deploy", **arguments)["success"]
        assert desk.knowledge.system_text() == before
        assert desk.knowledge.skills.view("deploy") == SKILL

    def test_journal_entry_has_the_provenance_of_the_write(self, tmp_path: Path) -> None:
        origin = Provenance(
            origin="background_review",
            context="review 1",
            session="s",
            parent="p",
            platform="cli",
            model="m",
        )
        call = Invocation(call_id="c", arguments={"evidence": "said so"}, origin=origin)
        write = Write(kind="user", action="add", path="memories/USER.md")
        entry = journal_entry(write, call, Knowledge(tmp_path), 5.0)
        assert (entry.write, entry.at, entry.evidence, entry.review) == (
            write,
            5.0,
            "said so",
            None,
        )
        assert entry.provenance == Provenance(
            origin="background_review",
            context="review 1",
            session="s",
            parent="p",
            platform="cli",
            tool_call="c",
            model="m",
            folder=str(tmp_path.resolve()),
        )
