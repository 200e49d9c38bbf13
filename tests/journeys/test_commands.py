"""The commands as a person uses them."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.import_speed import write_large_claude_log
from tests.program import PYTHON, Command
from tests.waiting import LONGEST_S

from journeyman.agent.tools import confinement
from journeyman.cli.context import exit_on_sigterm
from journeyman.store.session_filters import SessionFilters
from journeyman.testing import Corpus


class TestImport:
    def test_the_logs_of_this_machine_are_found_and_reported(self, user_home: Path) -> None:
        command = Command(user_home)
        shown = command("import").stdout
        assert "claude_code" in shown
        assert f"in {user_home}/.claude" in shown
        totals = command.json("import")
        assert totals["new"] == 0
        assert set(totals["sources"]) == {"claude_code", "codex", "hermes"}
        assert totals["logs_read"] == 0

    def test_every_sample_session_is_imported_with_its_calls(
        self, command: Command, corpus: Corpus
    ) -> None:
        report = command.json("import", corpus.folder)
        assert report["new"] == len(corpus.sessions)
        assert report["skipped"] == report["ignored"] == report["problems"] == []
        found = command.json("sessions", "list", "--limit", 1000)
        ours = {one["session"]["id"]: one for one in found}
        calls = sorted((one["calls"], one["answered"]) for one in ours.values())
        assert calls == sorted((one.calls, one.answered) for one in corpus.sessions)
        again = command.json("import", corpus.folder)
        assert (again["new"], again["updated"]) == (0, 0)
        assert again["unchanged"] == len(corpus.sessions)
        assert again["read_bytes"] == 0

    def test_only_the_new_part_of_a_grown_log_is_read(
        self, command: Command, corpus: Corpus
    ) -> None:
        whole = max(corpus.logs("claude_code"), key=lambda log: log.stat().st_size)
        lines = whole.read_bytes().splitlines(keepends=True)
        grown = command.home / "log.jsonl"
        grown.write_bytes(b"".join(lines[: len(lines) // 2]))
        assert command.json("import", grown)["new"] == 1
        grown.write_bytes(b"".join(lines))
        report = command.json("import", grown)
        assert report["updated"] == 1
        assert report["read_bytes"] < 0.6 * grown.stat().st_size
        (parts,) = command.json("sessions", "list")
        command("import", whole, JOURNEYMAN_HOME=str(command.home / "other"))
        (at_once,) = command.json("sessions", "list", JOURNEYMAN_HOME=str(command.home / "other"))
        assert parts["digest"] == at_once["digest"]
        assert parts["tokens"] == at_once["tokens"]

    def test_a_copy_of_a_log_adds_nothing(self, command: Command, corpus: Corpus) -> None:
        log = corpus.logs("claude_code")[0]
        copy = command.home / "copy.jsonl"
        copy.write_bytes(log.read_bytes())
        command("import", log)
        report = command.json("import", copy)
        assert (report["new"], report["updated"], report["unchanged"]) == (0, 0, 1)
        assert len(command.json("sessions", "list")) == 1

    def test_a_moved_log_is_not_a_new_session(self, command: Command, corpus: Corpus) -> None:
        log = corpus.logs("codex")[0]
        moved = command.home / "archived.jsonl"
        here = command.home / "here.jsonl"
        here.write_bytes(log.read_bytes())
        command("import", here)
        here.rename(moved)
        report = command.json("import", moved)
        assert report["new"] == 0
        assert command.json("import", moved)["unchanged"] == 1

    def test_an_empty_log_in_a_default_location_is_not_a_problem(self, user_home: Path) -> None:
        (user_home / ".claude" / "projects" / "empty.jsonl").touch()
        report = Command(user_home).json("import")
        assert report["problems"] == []
        assert "is empty" in report["ignored"][0]["reason"]

    @pytest.mark.parametrize("name", ["with space", "per%41cent", "question?mark", "ümläut#1"])
    def test_odd_names_of_homes_and_logs(self, command: Command, corpus: Corpus, name: str) -> None:
        log = command.home / f"{name}.jsonl"
        log.write_bytes(corpus.logs("chat")[0].read_bytes())
        home = command.home / name
        assert command.json("--home", home, "import", log)["new"] == len(corpus.of("chat"))
        assert command.json("--home", home, "import", log)["unchanged"] == len(corpus.of("chat"))
        assert (home / "journeyman.db").exists()

    def test_the_requested_source_is_used(self, command: Command, corpus: Corpus) -> None:
        log = corpus.logs("chat")[0]
        command("import", log)
        report = command.json("import", log, "--source", "codex")
        assert report["logs_unchanged"] == 0

    def test_without_logs_the_next_step_is_explained(self, command: Command) -> None:
        assert "journeyman import PATH" in command("import", code=1).stdout

    def test_an_unknown_source_is_wrong_usage(self, command: Command) -> None:
        done = command("import", ".", "--source", "nonsense", code=2)
        assert "claude_code" in done.stderr

    def test_only_the_owner_can_access_the_home(self, command: Command, corpus: Corpus) -> None:
        os.umask(0o022)
        command("import", corpus.logs("chat")[0])
        home = command.home / ".journeyman"
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        for file in home.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file

    def test_termination_stops_the_workers_first(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        with pytest.raises(SystemExit, match="143"), exit_on_sigterm():
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is before

    def test_the_help_lists_every_reader(self, command: Command) -> None:
        from journeyman.logs.registry import Readers

        shown = command("import", "--help").stdout
        assert all(reader.name in shown for reader in Readers(plugins=[]).all)

    def test_the_help_of_a_group_lists_the_options_of_its_default_command(
        self, command: Command
    ) -> None:
        shown = command("review", "--help").stdout
        assert all(f"\n  {name} " in shown for name in ("--model", "--json", "undo"))


class TestSessions:
    def test_the_list_is_filtered_and_limited(self, filled: Command) -> None:
        marathons = filled.json("sessions", "list", "--min-messages", 100)
        assert marathons
        assert all(one["messages"] >= 100 for one in marathons)
        newest, second = filled.json("sessions", "list", "--limit", 2)
        assert newest["session"]["started_at"] >= second["session"]["started_at"]
        shown = filled("sessions", "list", "--source", "codex", COLUMNS="160").stdout
        assert "codex" in shown
        assert "hermes" not in shown
        everything = filled.json("sessions", "list", "--limit", 1000)
        for since in ("1 day", "yesterday", "2026-11-01", "2 weeks ago"):
            chosen = filled.json("sessions", "list", "--limit", 1000, "--since", since)
            rest = filled.json("sessions", "list", "--limit", 1000, "--until", since)
            assert len(chosen) + len(rest) == len(everything), since
        assert "7d" in filled("sessions", "list", "--since", "recently", code=2).stderr

    def test_the_end_of_the_list(self, filled: Command) -> None:
        total = len(filled.json("sessions", "list", "--limit", 1000))
        assert "1 session shown" in filled("sessions", "list", "--limit", 1).stdout
        assert "shown" not in filled("sessions", "list", "--limit", total).stdout
        assert "There are: " in filled("sessions", "list", "--source", "nosuch", code=1).stderr
        assert filled.json("sessions", "list", "--source", "nosuch") == []

    def test_show_and_its_parts(self, filled: Command) -> None:
        (one,) = filled.json("sessions", "list", "--limit", 1, "--min-messages", 10)
        name = one["session"]["id"]
        assert one["session"]["title"][:20] in filled("sessions", "show", name).stdout
        whole = filled.json("sessions", "show", name)
        assert len(whole["messages"]) == one["messages"]
        assert len(whole["calls"]) == one["calls"]
        shown = filled("sessions", "show", name, "--calls").stdout
        assert whole["calls"][0]["tool"] in shown
        filled("sessions", "show", name, "--full")

    def test_the_error_for_an_unknown_id(self, filled: Command) -> None:
        done = filled("sessions", "show", "nothing-like-it", code=1)
        assert "journeyman sessions list" in done.stderr

    def test_search_exits_with_1_without_matches(self, filled: Command) -> None:
        hits = filled.json("sessions", "search", "error", "--limit", 3)
        assert len(hits) == 3
        assert all("[" in hit["snippet"] for hit in hits)
        filled("sessions", "search", "qqqqq", code=1)

    def test_an_export_can_be_imported_without_loss(self, filled: Command) -> None:
        (one,) = filled.json("sessions", "list", "--limit", 1, "--source", "hermes")
        name = one["session"]["id"]
        file = filled.home / "one.jsonl"
        filled("sessions", "export", name, "--raw", "-o", file)
        filled("sessions", "export", name, "--raw", "-o", file, code=2)
        filled("sessions", "export", name, "--raw", "-o", file, "--force")
        elsewhere = {"JOURNEYMAN_HOME": str(filled.home / "elsewhere")}
        filled("import", file, **elsewhere)
        (back,) = filled.json("sessions", "list", **elsewhere)
        assert back["digest"] == one["digest"]
        assert back["tokens"] == one["tokens"]
        chat = json.loads(filled("sessions", "export", name, "--format", "openai").stdout)
        assert len(chat["messages"]) == one["messages"]

    def test_deletion_asks_for_confirmation_and_survives_another_import(
        self, filled: Command
    ) -> None:
        (one,) = filled.json("sessions", "list", "--limit", 1, "--source", "codex")
        name = one["session"]["id"]
        filled("sessions", "delete", name, code=1)
        filled("sessions", "delete", name, code=1, typed="n\n")
        filled("sessions", "show", name)
        assert name in filled("sessions", "delete", name, typed="y\n").stdout
        filled("sessions", "show", name, code=1)
        filled("import")
        filled("sessions", "show", name, code=1)
        filled("import", "--reread")
        filled("sessions", "show", name)

    def test_a_large_export_is_recognised(self, command: Command) -> None:
        chat = [{"role": "user", "content": f"{n} " + "x" * 100_000} for n in range(5)]
        (command.home / "chat.json").write_text(json.dumps(chat))
        command("import", "chat.json")
        (one,) = command.json("sessions", "list")
        name = one["session"]["id"]
        command("sessions", "export", name, "-o", "own.jsonl")
        report = command.json("import", "own.jsonl")
        assert (report["new"], report["updated"]) == (0, 0)
        elsewhere = {"JOURNEYMAN_HOME": str(command.home / "elsewhere")}
        command("import", "own.jsonl", **elsewhere)
        (back,) = command.json("sessions", "list", **elsewhere)
        assert back["digest"] == one["digest"]
        assert back["session"]["title"] == one["session"]["title"]

    def test_every_filter_has_an_option(self, filled: Command) -> None:
        switches = {"origin", "subagents", "warm", "bots"}
        for name in sorted(SessionFilters.__annotations__.keys() - switches):
            value = {"since": "1d", "until": "1d", "min_messages": "1"}.get(name, "none")
            filled("sessions", "list", f"--{name.replace('_', '-')}", value, "--json")
        everything = filled.json("sessions", "list", "--limit", 1_000)
        cold = filled.json("sessions", "list", "--limit", 1_000, "--cold")
        assert (len(cold), filled.json("sessions", "list", "--warm")) == (len(everything), [])
        own = filled.json("sessions", "list", "--limit", 1_000, "--no-subagents")
        kinds = [(one["session"].get("lineage") or {}).get("kind") for one in everything]
        assert 0 < len(own) == len(everything) - kinds.count("subagent") < len(everything)

    def test_redaction_of_exports(self, command: Command) -> None:
        key = "ghp_" + "A1b2" * 9
        (command.home / "chat.json").write_text(
            json.dumps([{"role": "user", "content": f"Use {key} for bob@corp.example"}])
        )
        command("import", "chat.json")
        (one,) = command.json("sessions", "list")
        name = one["session"]["id"]
        for form, asked, is_whole in (
            ("journeyman", (), False),
            ("journeyman", ("--raw",), True),
            ("openai", (), False),
            ("openai", ("--raw",), True),
        ):
            text = command("sessions", "export", name, "--format", form, *asked).stdout
            assert (key in text) == ("bob@corp.example" in text) == is_whole
            assert is_whole or "Use <github_token:1> for <email:1>" in text

    def test_a_redacted_export_never_replaces_what_was_recorded(self, command: Command) -> None:
        key = "ghp_" + "A1b2" * 9
        (command.home / "chat.json").write_text(
            json.dumps([{"role": "user", "content": f"Use {key} now"}])
        )
        command("import", "chat.json")
        (one,) = command.json("sessions", "list")
        name = one["session"]["id"]
        command("sessions", "export", name, "-o", "redacted.jsonl")
        command("sessions", "export", name, "--raw", "-o", "raw.jsonl")
        report = command.json("import", "redacted.jsonl")
        assert (report["new"], report["updated"], report["unchanged"]) == (0, 0, 1)
        assert key in command("sessions", "show", name, "--raw").stdout

        # Elsewhere it is new; the faithful copy then replaces it.
        elsewhere = {"JOURNEYMAN_HOME": str(command.home / "elsewhere")}
        assert command.json("import", "redacted.jsonl", **elsewhere)["new"] == 1
        assert key not in command("sessions", "show", name, "--raw", **elsewhere).stdout
        command("import", "raw.jsonl", **elsewhere)
        (back,) = command.json("sessions", "list", **elsewhere)
        assert back["digest"] == one["digest"]

    def test_show_and_search_are_redacted_unless_raw(self, command: Command) -> None:
        key = "ghp_" + "A1b2" * 9
        arguments = json.dumps({"command": f"curl -H 'Authorization: Bearer {key}' api.example"})
        call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": arguments}}
        chat = [
            {"role": "user", "content": "Ask bob@corp.example about the zebra"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": f"denied for {key}"},
        ]
        (command.home / "chat.json").write_text(json.dumps(chat))
        command("import", "chat.json")
        (one,) = command.json("sessions", "list")
        name = one["session"]["id"]
        for arguments in (
            ("show", name),
            ("show", name, "--full"),
            ("show", name, "--calls"),
            ("show", name, "--call", "1"),
            ("show", name, "--message", "1"),
            ("show", name, "--json"),
            ("search", "zebra"),
            ("search", "curl", "--json"),
        ):
            shown = command("sessions", *arguments).stdout
            assert key not in shown, arguments
            assert "bob@corp" not in shown, arguments
            raw = command("sessions", *arguments, "--raw").stdout
            assert key in raw or "bob@corp" in raw or arguments == ("search", "zebra"), arguments

    def test_one_call_and_one_message_whole(self, filled: Command) -> None:
        chosen = filled.json("sessions", "list", "--min-messages", 10)
        one = next(one for one in chosen if one["errors"])
        name = one["session"]["id"]
        whole = filled.json("sessions", "show", name)
        number = next(
            number
            for number, verdict in enumerate(whole["verdicts"], start=1)
            if verdict["status"] == "failed"
        )
        call, verdict = whole["calls"][number - 1], whole["verdicts"][number - 1]
        shown = filled("sessions", "show", name, "--call", number).stdout
        for part in (call["tool"], verdict["rule"], verdict["evidence"], "request", "argument"):
            assert part in shown, part
        assert "flags" not in shown
        assert " ".join(call["result"].split()) in " ".join(shown.split())
        as_json = filled.json("sessions", "show", name, "--call", number)
        assert (as_json["call"], as_json["verdict"]) == (call, verdict)
        assert whole["messages"][as_json["message"] - 1]["key"] == call["asked_key"]

        message = filled.json("sessions", "show", name, "--message", 1)["message"]
        assert message == whole["messages"][0]
        assert message["text"][:50] in filled("sessions", "show", name, "--message", 1).stdout
        for arguments, code in (
            (("--call", len(whole["calls"]) + 1), 1),
            (("--message", len(whole["messages"]) + 1), 1),
            (("--call", 0), 2),
            (("--call", 1, "--message", 1), 2),
        ):
            assert filled("sessions", "show", name, *arguments, code=code).stderr

    def test_a_hit_says_what_opens_it(self, filled: Command) -> None:
        places = set()
        for word in ("error", "the"):
            shown = filled("sessions", "search", word, "--limit", 5).stdout
            for line in [line for line in shown.splitlines() if not line.startswith(" ")]:
                session, place, number = line.split()[:3]
                places.add(place)
                opened = filled("sessions", "show", session, place, number).stdout
                assert word in opened.lower(), line
        assert places == {"--message"}

    def test_the_list_leaves_most_of_the_width_to_the_title(self, filled: Command) -> None:
        rows = filled.json("sessions", "list", "--limit", 1000)
        most = max(rows, key=lambda row: row["errors"])
        verdicts = filled.json("sessions", "show", most["session"]["id"])["verdicts"]
        errors = [
            verdict
            for verdict in verdicts
            if verdict["status"] in ("failed", "invalid") and verdict.get("kind") != "no_match"
        ]
        assert most["errors"] == len(errors) > 0
        assert any(row["cost_usd"] for row in rows)
        for columns, names in (
            ("40", ""),
            ("80", "started errors"),
            ("120", "project errors cost"),
        ):
            shown = filled("sessions", "list", COLUMNS=columns).stdout
            heading, row, *_ = shown.splitlines()
            assert {*names.split()} <= set(heading.split())
            assert row.startswith(rows[0]["short_id"])
            assert rows[0]["session"]["title"][: int(columns) // 2 - 1] in row, row

    def test_short_ids_are_as_long_as_they_must_be(self, command: Command) -> None:
        ids = [f"01990a2f-{part}-7000-8000-000000000000" for part in ("1a2b", "1a2c", "ffff")]
        lines = [
            json.dumps(
                {
                    "journeyman": 1,
                    "session": {"id": id_, "source": "test", "started_at": float(n)},
                    "messages": [{"key": "k", "position": 1, "role": "user", "text": f"zebra {n}"}],
                }
            )
            for n, id_ in enumerate([*ids, "e4599950-b028-44fb-a2d5-ca8caffa2c3d", "short"])
        ]
        (command.home / "own.jsonl").write_text("\n".join(lines))
        command("import", "own.jsonl")
        expected = ["short", "e4599950", "01990a2f-f", "01990a2f-1a2c", "01990a2f-1a2b"]
        assert [row["short_id"] for row in command.json("sessions", "list")] == expected
        _, *lines = command("sessions", "list").stdout.splitlines()
        assert [line.split()[0] for line in lines] == expected
        for short_id in expected:
            command("sessions", "show", short_id)
            assert short_id in command("sessions", "search", "zebra").stdout
        command("sessions", "show", "01990a2f", code=1)

    def test_a_project_without_sessions_has_no_opening(self, filled: Command) -> None:
        done = filled("open", "fix the tests", "--project", "nowhere", code=1)
        assert "'nowhere'" in done.stderr
        assert not done.stdout

    def test_an_export_in_another_format_is_a_separate_session(self, filled: Command) -> None:
        (one,) = filled.json("sessions", "list", "--limit", 1, "--source", "claude_code")
        name = one["session"]["id"]
        filled("sessions", "export", name, "--format", "openai", "-o", "chat.jsonl")
        assert filled.json("import", "chat.jsonl")["new"] == 1
        assert filled.json("sessions", "show", name)["overview"]["messages"] == one["messages"]
        assert (
            filled.json("sessions", "show", f"openai:{name}")["overview"]["calls"] == one["calls"]
        )

    def test_a_deleted_session_stays_deleted_when_its_log_grows(self, command: Command) -> None:
        log = command.home / "chat.jsonl"
        lines = [json.dumps({"role": "user", "content": f"line {n}"}) + "\n" for n in range(3)]
        log.write_text("".join(lines[:2]))
        command("import", log)
        (one,) = command.json("sessions", "list")
        command("sessions", "delete", one["session"]["id"], "--yes")
        log.write_text("".join(lines))
        assert command.json("import", log)["new"] == 0
        assert command.json("sessions", "list") == []
        command("import", log, "--reread")
        (back,) = command.json("sessions", "list")
        assert back["messages"] == 3

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (("list", "--since", "0001-01-01"), 2),
            (("list", "--limit", "99999999999999999999"), 2),
            (("export", "SESSION", "-o", "/no/such/folder/x.jsonl"), 1),
            (("export", "SESSION", "-o", "-"), 0),
            (("delete", "SESSION"), 1),
        ],
    )
    def test_invalid_arguments_get_an_error_message(
        self, command: Command, corpus: Corpus, arguments: tuple[str, ...], code: int
    ) -> None:
        command("import", corpus.logs("codex")[0])
        session = command.json("sessions", "list")[0]["session"]["id"]
        words = [session if word == "SESSION" else word for word in arguments]
        done = command("sessions", *words, code=code)
        assert done.stderr or code == 0
        assert "should not happen" not in done.stderr

    def test_a_terminal_without_unicode(self, filled: Command) -> None:
        for arguments in (("sessions", "list"), ("doctor",), ("sessions", "search", "error")):
            filled(*arguments, PYTHONIOENCODING="ascii")

    def test_recorded_text_cannot_control_the_terminal(self, command: Command) -> None:
        evil = [{"role": "user", "content": "a \x1b[2J\x1b]0;title\x07 b \u202e c [red]d"}]
        file = command.home / "chat.json"
        file.write_text(json.dumps(evil))
        command("import", file)
        (one,) = command.json("sessions", "list")
        for arguments in (("list",), ("show", one["session"]["id"]), ("search", "title")):
            shown = command("sessions", *arguments).stdout
            assert "\x1b" not in shown
            assert "\u202e" not in shown
        assert "[red]d" in command("sessions", "show", one["session"]["id"]).stdout


class TestDoctorAndTour:
    def test_doctor_on_an_empty_machine_reports_no_problem_and_creates_nothing(
        self, command: Command
    ) -> None:
        command("doctor")
        assert list(command.home.iterdir()) == []

    def test_doctor_reports_a_working_database(self, filled: Command) -> None:
        findings = filled.json("doctor")
        assert {one["status"] for one in findings} <= {"ok", "note"}
        assert any("no faults" in one["found"] for one in findings)

    def test_doctor_reports_how_commands_are_confined(self, command: Command) -> None:
        held = {one["what"]: one for one in command.json("doctor")}["confinement"]
        assert (held["status"] == "ok") is (confinement.why_unconfined() == "")
        loose = command.json("doctor", JOURNEYMAN_AGENT_CONFINE="false")
        found = {one["what"]: one for one in loose}["confinement"]
        assert found["status"] == "note"
        assert found["found"] == "the agent's commands are not confined: agent.confine is false"

    def test_doctor_reports_a_broken_database(self, filled: Command) -> None:
        (filled.home / ".journeyman" / "journeyman.db").write_bytes(b"no database " * 1000)
        findings = filled.json("doctor", code=1)
        assert [one["what"] for one in findings if one["status"] == "problem"] == ["database"]

    def test_doctor_hides_secrets_in_addresses(self, command: Command) -> None:
        config = command.home / ".journeyman" / "config.toml"
        config.parent.mkdir(mode=0o700)
        config.write_text('[model]\nname = "m"\nbase_url = "http://bob:hunter2pw@127.0.0.1:9/v1"\n')
        text = command("doctor", "--json", code=1).stdout  # there is no server
        assert "hunter2pw" not in text
        assert "@127.0.0.1:9/v1" in text

    @pytest.mark.soak  # the embedded model performs a task twice
    def test_a_small_model_fails_cold_and_succeeds_warm(self, command: Command) -> None:
        cold, warm = command("tour").stdout.split("Warm, with")
        assert "not sorted" in cold
        assert "The file is sorted." in warm
        assert list(command.home.iterdir()) == []

    def test_the_tour_uses_the_sessions_of_this_machine_and_stores_nothing(
        self, user_home: Path
    ) -> None:
        for agent in (".claude", ".hermes"):  # one agent is enough, and faster to learn from
            shutil.rmtree(user_home / agent)
        dangling = user_home / ".claude" / "projects" / "gone.jsonl"
        dangling.parent.mkdir(parents=True)
        dangling.symlink_to(user_home / "deleted.jsonl")
        url = f"sqlite:///{user_home / 'team.db'}"
        for columns in (80, 120):
            environ = {"JOURNEYMAN_DATABASE": url, "COLUMNS": str(columns)}
            shown = Command(user_home)("tour", "--no-agent", **environ).stdout
            assert all(len(line) <= columns for line in shown.splitlines())
            assert "of your newest sessions" in shown
            assert "failed: limit" in shown
        assert not (user_home / ".journeyman").exists()
        assert not (user_home / "team.db").exists()


class TestSettings:
    def test_flags_override_variables_and_variables_override_the_file(
        self, command: Command
    ) -> None:
        home = command.home / ".journeyman"
        home.mkdir()
        urls = {name: f"sqlite:///{command.home}/{name}.db" for name in ("file", "var", "flag")}
        (home / "config.toml").write_text(f'database = "{urls["file"]}"')
        command("sessions", "list")
        assert (command.home / "file.db").exists()
        command("sessions", "list", JOURNEYMAN_DATABASE=urls["var"])
        assert (command.home / "var.db").exists()
        database = urls["flag"]
        command("--database", database, "sessions", "list", JOURNEYMAN_DATABASE=urls["var"])
        assert (command.home / "flag.db").exists()

    def test_an_unreachable_postgresql(self, command: Command) -> None:
        url = "postgresql://nobody@127.0.0.1:9/none"
        done = command("sessions", "list", code=1, JOURNEYMAN_DATABASE=url)
        assert "JOURNEYMAN_DATABASE" in done.stderr

    def test_a_team_database(self, command: Command, corpus: Corpus, postgres_url: str) -> None:
        report = command.json("--database", postgres_url, "import", corpus.folder)
        assert report["new"] == len(corpus.sessions)
        again = command.json("--database", postgres_url, "import", corpus.folder)
        assert again["unchanged"] == len(corpus.sessions)


def test_a_pipe_that_is_closed_early_is_not_an_error(filled: Command) -> None:
    done = subprocess.run(
        f"{PYTHON} -m journeyman sessions list --limit 100 --json | head -1",
        shell=True,
        env=filled.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=LONGEST_S,
    )
    assert done.stdout.startswith("[")
    assert "Traceback" not in done.stderr


def test_ctrl_c_during_an_import(command: Command, tmp_path: Path) -> None:
    log = tmp_path / "large.jsonl"
    sessions = write_large_claude_log(log, 25_000_000)
    for number in range(5):
        home = tmp_path / f"home{number}"
        running = subprocess.Popen(
            [sys.executable, "-m", "journeyman", "--home", str(home), "import", str(log)],
            env=command.environ,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        wal = home / "journeyman.db-wal"
        while running.poll() is None and not (wal.exists() and wal.stat().st_size > 100_000):
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=LONGEST_S)
        if running.returncode != 0:
            break  # on a busy machine the import may finish before the signal is sent
    # Python itself exits by the signal if it hit code compiled from text, as libraries do.
    assert running.returncode in (1, -signal.SIGINT)
    assert "run the command again" in said
    assert "Traceback" not in said
    # The signal may arrive during the commit: everything is stored or nothing.
    stored = command.json("--home", home, "sessions", "list", "--limit", 9999)
    assert len(stored) in (0, sessions)


def test_ctrl_c_at_exit_has_no_effect(command: Command) -> None:
    program = """
import atexit, os, signal, sys
from journeyman.cli import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)  # the last that runs
sys.argv = ["journeyman", "--version"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=command.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.soak  # the scripted agents repeat all their work
def test_samples_are_imported_on_request(command: Command) -> None:
    report = command.json("import", "--sample")
    assert (report["new"], report["problems"]) == (32, [])


def test_samples_and_logs_cannot_be_imported_together(command: Command) -> None:
    assert "not both" in command("import", "--sample", "x.jsonl", code=2).stderr


def test_a_misspelt_command_gets_a_suggestion(command: Command) -> None:
    hints = {
        "session list": " Did you mean 'sessions'?",
        "sesions": " Did you mean 'sessions'?",
        "profil": " Did you mean 'profile'?",
        "templates lst": " Did you mean 'list'?",
        "sessions list --limt 3": " Did you mean '--limit'?",
        "xyzzy": "",
    }
    shown = {words: command(*words.split(), code=2).stderr for words in hints}
    assert {words: stderr.strip().rpartition(".")[2] for words, stderr in shown.items()} == hints
