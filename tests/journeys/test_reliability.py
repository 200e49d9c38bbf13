"""Judging, profiling and comparing: the commands as a person uses them."""

import json
import re
import subprocess
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from tests.program import PYTHON, Command
from tests.tables import table

from journeyman import Journeyman
from journeyman.experience.warm_session import warm_session
from journeyman.reliability.groups import By
from journeyman.testing import Corpus


def record(command: Command, name: str, *results: str, tags: tuple[str, ...] = ()) -> None:
    """A session with one call for each result."""
    messages: list[dict[str, object]] = [{"role": "user", "content": f"{name}, please"}]
    for number, result in enumerate(results):
        asked = {"name": "shell", "arguments": '{"command": "make"}'}
        call = {"id": f"c{number}", "type": "function", "function": asked}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    with Journeyman(home=command.home / ".journeyman", environ={}) as journeyman:
        journeyman.record(messages, session_id=name, tags=tags)


class TestJudge:
    def test_one_verdict_for_each_line_in_order(self, command: Command) -> None:
        calls = [
            {"tool": "Bash", "arguments": {"command": "ls"}, "result_text": "Exit code 2\nls: x"},
            {"tool": "Read", "arguments": {}, "result_text": "     1→raise Error('failed')"},
            {"tool": "Edit", "arguments": {}, "result_text": "The user doesn't want to proceed"},
            {"tool": "fetch", "arguments": {}, "result_text": None},
        ]
        file = command.home / "calls.jsonl"
        file.write_text("".join(json.dumps(call) + "\n" for call in calls))
        lines = command("judge", file).stdout.splitlines()
        verdicts = [json.loads(line) for line in lines]
        assert [one["status"] for one in verdicts] == ["failed", "ok", "refused", "unknown"]
        assert all(set(one) == {"status", "kind", "by", "rule", "evidence"} for one in verdicts)
        assert [one["by"] for one in verdicts] == ["", "", "person", ""]

    def test_who_refused_is_shown_and_counted(self, command: Command) -> None:
        blocked = "Command blocked by PreToolUse hook: deploys are frozen. Command: make"
        record(command, "guarded", "fine", blocked, blocked, "exec command rejected by user")
        calls = command("sessions", "show", "guarded", "--calls").stdout
        assert calls.count("[refused by a hook]") == 2
        assert calls.count("[refused by a person]") == 1
        summary = " ".join(command("profile").stdout.split())
        assert "Counted separately: 3 refused (2 by a hook, 1 by a person)." in summary
        report = json.loads(command("profile", "--json").stdout)
        assert report["refused_by"] == {"hook": 2, "person": 1}

    def test_only_the_broken_line_is_unknown(self, command: Command) -> None:
        good = '{"tool": "q", "result_text": "fine"}'
        done = command("judge", "-", typed=f"{good}\nbroken\n{good}\n", code=1)
        statuses = [json.loads(line)["status"] for line in done.stdout.splitlines()]
        assert statuses == ["ok", "unknown", "ok"]
        blank = command("judge", "-", typed=f"\ufeff{good}\n\n{good}\n").stdout.splitlines()
        assert [json.loads(line)["status"] for line in blank] == ["ok", "unknown", "ok"]
        assert "1 line could not be read as a call: 2." in done.stderr

    def test_the_reader_may_stop_early(self, command: Command) -> None:
        line = json.dumps({"tool": "q", "result_text": "fine"})
        (command.home / "calls.jsonl").write_text(f"{line}\n" * 20_000)
        done = subprocess.run(
            f"{PYTHON} -m journeyman judge calls.jsonl | head -n 1",
            shell=True,
            cwd=command.home,
            env=command.environ,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout)["status"] == "ok"
        assert done.stderr == ""


class TestProfile:
    def test_the_profile_of_the_samples_is_correct(self, filled: Command, corpus: Corpus) -> None:
        found = filled.json("profile")
        truth = [one for one in corpus.sessions if one.source != "chat"]
        assert found["calls"] == sum(one.calls for one in truth)
        assert found["rate"]["errors"] == sum(one.failed for one in truth)
        assert found["refused"] == sum(one.refused for one in truth)
        assert found["interrupted"] == sum(one.cancelled for one in truth)
        assert found["unknown"] == sum(one.calls - one.answered for one in truth)
        statuses = ("ok", "failed", "invalid", "refused", "interrupted", "unknown")
        assert sum(found[status] for status in statuses) == found["calls"]

    def test_output(self, filled: Command) -> None:
        text = filled("profile").stdout
        for head in ("By tool", "Most frequent failures", "By session length", "Over the course"):
            assert head in text
        assert "95 % interval" in text

        shown = filled("profile", "--by", "source").stdout
        assert all(name in shown for name in ("claude_code", "codex", "hermes"))

        # A repeated profile is identical.
        assert filled("profile").stdout == filled("profile").stdout

    @table("columns", ["60", "80", "120"])
    def test_the_output_fits_the_terminal(self, filled: Command, columns: str) -> None:
        shown = filled("profile", COLUMNS=columns).stdout
        assert all(len(line) <= int(columns) for line in shown.splitlines())
        # Where a failure was first seen is never cut off.
        abouts = re.findall("first in .*", shown)
        assert abouts
        assert all(re.fullmatch(r"first in \S+, call \d+", about.strip()) for about in abouts)

    @table("by", get_args(By))
    def test_groups(self, filled: Command, by: str) -> None:
        told = filled.json("profile", "--by", by)
        assert told["by"] == by
        assert sum(group["calls"] for group in told["groups"]) == told["calls"]

    def test_selected_sessions(self, filled: Command, corpus: Corpus) -> None:
        codex = filled.json("profile", "--source", "codex")
        assert codex["sessions"] == len(corpus.of("codex"))
        one = filled.json("sessions", "list", "--limit", 1)[0]
        assert filled.json("profile", one["session"]["id"])["calls"] == one["calls"]

        # Ids and filters cannot be combined.
        some = filled.json("sessions", "list", "--limit", 1)[0]["session"]["id"]
        assert "Use one of the two" in filled("profile", some, "--source", "codex", code=1).stderr

        # An unknown session.
        assert "There is no session 'nobody'" in filled("profile", "nobody", code=1).stderr

    def test_charts(self, filled: Command) -> None:
        filled("profile", "--plot", "rates.svg")
        file = filled.home / "rates.svg"
        assert ET.parse(file).getroot().tag.endswith("svg")
        assert file.stat().st_mode & 0o777 == 0o600
        assert "--force" in filled("profile", "--plot", "rates.svg", code=2).stderr
        for by in ("source", "day"):
            filled("profile", "--by", by, "--plot", "rates.svg", "--force")
            assert f"How often calls fail, by {by}" in file.read_text()
            assert "How often calls fail, by tool" not in file.read_text()
        assert "must end in .svg" in filled("profile", "--plot", "rates.png", code=1).stderr
        assert "nowhere" in filled("profile", "--plot", "nowhere/rates.svg", code=1).stderr

    def test_platforms(self, filled: Command) -> None:
        groups = filled.json("profile", "--source", "hermes", "--by", "platform")["groups"]
        platforms = {group["name"] for group in groups}
        assert "cli" in platforms
        one = filled.json("profile", "--platform", "cli", "--source", "hermes")
        assert one["calls"] == next(each["calls"] for each in groups if each["name"] == "cli")
        said = " ".join(filled("profile", "--platform", "fax", code=1).stderr.split())
        assert "None matches the platform 'fax'. There are: " in said
        assert "cli" in said
        session = filled.json("sessions", "list", "--platform", "cli", "--limit", 1)[0]["session"]
        shown = filled("sessions", "show", session["id"]).stdout
        assert "platform cli" in " ".join(shown.split())

    def test_early_and_late_calls_by_type_with_one_command(self, filled: Command) -> None:
        shown = filled("profile", "--by", "type").stdout
        assert "Early and late calls, by the same tools" in shown
        assert "same tools" in shown
        types = filled.json("profile")["types"]
        assert all({"early", "late", "stratified"} <= each["learning"].keys() for each in types)

    def test_tools_that_do_nothing_of_their_own(self, command: Command) -> None:
        plan = {"id": "p", "type": "function", "function": {"name": "todo", "arguments": "{}"}}
        work = {"id": "w", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [plan, work]},
            {"role": "tool", "tool_call_id": "p", "content": "noted"},
            {"role": "tool", "tool_call_id": "w", "content": "Exit code 1\nbroken"},
        ]
        with Journeyman(home=command.home / ".journeyman", environ={}) as journeyman:
            journeyman.record(messages, session_id="s")
            answer = json.loads(warm_session(journeyman, {"action": "profile"}))
            whole = {"action": "profile", "include_trivial": "true"}
            everything = json.loads(warm_session(journeyman, whole))
        found = [command.json("profile", *more) for more in (("--include-trivial",), ())]
        assert [one["rate"]["total"] for one in found] == [2, 1]
        assert "1 call of housekeeping tools: todo." in " ".join(command("profile").stdout.split())
        assert (answer["rate"]["total"], everything["rate"]["total"]) == (1, 2)
        assert (answer["left_out"], answer["messages"]) == ({"todo": 1}, 4)
        assert {tool["name"]: tool["calls"] for tool in everything["tools"]} == {
            "shell": 1,
            "todo": 1,
        }

    def test_secrets_are_shown_only_on_request(self, command: Command) -> None:
        """Even a secret that only the arguments of the failed call reveal as one."""
        token, password, mail = "ghp_" + "A1b2" * 9, "xK9mQ2vL7pRt", "bob.smith@corp.example"
        arguments = json.dumps({"command": f"login --password {password}"})
        call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": arguments}}
        result = f"Exit code 1\ndenied for {mail} with {token}: no such login {password}"
        messages = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ]
        with Journeyman(home=command.home / ".journeyman", environ={}) as journeyman:
            journeyman.record(messages, session_id="s", project=f"github.com/{mail}/app")

        def shown(*more: str) -> str:
            told = command("profile", "--by", "project", *more).stdout
            document = command("profile", "--json", *more).stdout
            return told + document

        assert [secret for secret in (token, password, mail) if secret in shown()] == []
        assert [secret for secret in (token, password, mail) if secret not in shown("--raw")] == []


class TestBadInput:
    """Each gets a message, never a traceback or NaN."""

    def told(self, command: Command, *arguments: object) -> str:
        shown = command(*arguments).stdout
        document = command(*arguments, "--json").stdout
        json.loads(document, parse_constant=pytest.fail)
        assert "nan" not in shown.lower()
        return shown

    def test_no_sessions(self, command: Command) -> None:
        assert "There are no sessions" in self.told(command, "profile")
        record(command, "quiet")
        said = command("profile", "--source", "nope", code=1).stderr
        assert "None matches the recorder 'nope'. There are: mine." in said
        command("sessions", "delete", "quiet", "--yes")
        assert "nothing to draw" in command("profile", "--plot", "a.svg", code=1).stderr

    def test_a_session_without_calls(self, command: Command) -> None:
        record(command, "quiet")
        assert "no tool calls" in self.told(command, "profile", "quiet")
        assert "never compressed" in self.told(command, "compression", "quiet")

    def test_all_unknown(self, command: Command) -> None:
        record(command, "open", *["[Old tool output cleared to save context space]"] * 3)
        assert "No call can be counted" in self.told(command, "profile", "open")
        shown = self.told(command, "compare", "open", "open")
        assert "undecided" in shown

    def test_comparing_without_sessions(self, command: Command) -> None:
        record(command, "single", "fine")
        shown = self.told(command, "compare", "--warm-tag", "a", "--cold-tag", "b")
        assert "undecided" in shown
        assert "There is no warm session." in shown
        assert "undecided" in self.told(command, "compare", "single", "single")

    def test_a_missing_parent_and_a_cycle(self, command: Command) -> None:
        line = {
            "session": {
                "id": "child",
                "source": "test",
                "lineage": {"parent": "gone", "kind": "compression"},
            },
            "messages": [{"key": "k", "position": 1, "role": "user", "text": "go on"}],
            "usage": [],
        }
        circle = json.loads(json.dumps(line))
        circle["session"] |= {"id": "loop", "lineage": {"parent": "loop", "kind": "compression"}}
        for name, one in (("a.jsonl", line), ("b.jsonl", circle)):
            (command.home / name).write_text(json.dumps({"journeyman": 1} | one))
        command("import", "a.jsonl", "b.jsonl")
        assert "gone is not stored" in self.told(command, "compression", "child")
        assert "cycle" in self.told(command, "compression", "loop")


class TestCompression:
    def test_every_compressed_sample_has_a_result(self, filled: Command) -> None:
        found = filled.json("sessions", "list", "--limit", 100)
        compressed = [
            one["session"]["id"]
            for one in found
            if one["generations"] > 1
            or one["session"].get("lineage", {}).get("kind") == "compression"
        ]
        assert len(compressed) >= 3
        for session in compressed:
            report = filled.json("compression", session)
            assert report["state"] in ("preserved", "undecided")
            assert len(report["steps"]) >= 1
            assert report["steps"][0]["reading"] in " ".join(
                filled("compression", session, COLUMNS="400").stdout.split("\n")
            )

    def test_lost_proficiency_exits_with_1(self, command: Command) -> None:
        messages = [
            {"key": "u", "position": 0, "role": "user", "text": "go"},
            *(part for at in range(80) for part in _turn(at, failed=at >= 40, generation=at // 40)),
        ]
        session = {"id": "worse", "source": "test"}
        (command.home / "worse.jsonl").write_text(
            json.dumps({"journeyman": 1, "session": session, "messages": messages, "usage": []})
        )
        command("import", "worse.jsonl")
        shown = command("compression", "worse", code=1).stdout
        assert "Proficiency was lost" in shown
        assert "shell" in shown


def _turn(at: int, *, failed: bool, generation: int) -> list[dict[str, object]]:
    call = {"id": f"c{at}", "name": "shell", "arguments": "{}"}
    shared = {"generation": generation}
    result = "Error: broken" if failed and at % 2 else "fine"
    return [
        {"key": f"a{at}", "position": 2 * at + 1, "role": "assistant", "tool_calls": [call]}
        | shared,
        {"key": f"t{at}", "position": 2 * at + 2, "role": "tool", "tool_call_id": f"c{at}"}
        | {"text": result}
        | shared,
    ]


class TestCompare:
    def test_two_sessions(self, command: Command) -> None:
        record(command, "warm", *["fine"] * 40)
        record(command, "cold", *["Error: broken", "fine"] * 20)
        told = command.json("compare", "warm", "cold")
        assert told["verdict"] == "better"
        assert told["difference"]["method"].startswith("Newcombe")
        shown = command("compare", "warm", "cold").stdout
        assert "Verdict: better" in shown

    def test_two_sets_by_tag(self, command: Command) -> None:
        for number in range(10):
            record(command, f"w{number}", *["fine"] * 9, "Error: x", tags=("warm",))
            record(command, f"c{number}", *["fine"] * 9, "Error: y", tags=("cold",))
        told = command.json("compare", "--warm-tag", "warm", "--cold-tag", "cold")
        assert told["verdict"] == "undecided"
        assert (told["warm"]["sessions"], told["cold"]["calls"]) == (10, 100)
        assert told["difference"]["low"] < 0 < told["difference"]["high"]

    def test_sessions_with_an_opening_and_without(self, command: Command) -> None:
        for number in range(4):
            record(command, f"w{number}", *["fine"] * 5)
            record(command, f"c{number}", *["fine"] * 5)
        cold = command("compare").stdout
        assert "There is no warm session." in cold
        with Journeyman(home=command.home / ".journeyman", environ={}) as journeyman:
            for number in range(4):
                journeyman.sessions.note_opening(f"w{number}", f"{number:016x}", source="mine")
        told = command.json("compare")
        assert (told["warm"]["sessions"], told["cold"]["sessions"]) == (4, 4)
        warm = command.json("sessions", "list", "--warm")
        assert {one["session"]["id"] for one in warm} == {f"w{number}" for number in range(4)}
        assert command.json("profile", "--cold")["sessions"] == 4
        assert "0000000000000002" in command("sessions", "show", "w2").stdout

    @table(
        "arguments",
        [["one"], ["a", "b", "c"], ["--warm-tag", "a"], ["a", "b", "--warm-tag", "x"]],
        ids=str,
    )
    def test_wrong_usage(self, command: Command, arguments: list[str]) -> None:
        assert "journeyman compare --help" in command("compare", *arguments, code=2).stderr
