"""Token usage and cost of sessions, as a person requests them."""

import pytest
from tests.program import Command
from tests.tables import table

from journeyman import Journeyman
from journeyman.records import Usage

SOURCES = {"claude_code", "codex", "hermes"}


class TestUsage:
    def test_numbers(self, filled: Command) -> None:
        # The tokens are those of the sessions.
        sessions = filled.json("sessions", "list", "--limit", 1000)
        report = filled.json("usage")
        for column in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            recorded = sum(one["tokens"][column] or 0 for one in sessions)
            assert report["total"][column] == recorded > 0
            assert sum(row[column] or 0 for row in report["rows"]) == recorded
        assert report["sessions"] == len(sessions)

        # Every grouping adds up to the same total.
        first, *others = (
            filled.json("usage", "--by", by) for by in ("model", "source", "project", "day", "task")
        )
        assert [one["by"] for one in others] == ["source", "project", "day", "task"]
        for one in others:
            for name, value in first["total"].items():
                assert one["total"][name] == pytest.approx(value), name
            costs = [row["cost_usd"] or 0 for row in one["rows"]]
            assert sum(costs) == pytest.approx(first["total"]["cost_usd"])

        # Rows of each grouping.
        def keys(by: str, **environ: str) -> set[str]:
            return {row["key"] for row in filled.json("usage", "--by", by, **environ)["rows"]}

        assert keys("source") == SOURCES
        assert {"", "compression"} <= keys("task")
        assert keys("day") != keys("day", TZ="Pacific/Pago_Pago")
        assert filled.json("usage", TZ="Asia/Tokyo")["zone"] == "JST"

    @table("by", ["model", "day"])
    def test_the_table_fits_the_terminal_and_no_number_is_truncated(
        self, filled: Command, by: str
    ) -> None:
        report = filled.json("usage", "--by", by)
        for columns in (40, 80, 120):
            shown = filled("usage", "--by", by, COLUMNS=f"{columns}").stdout
            assert all(len(line) <= columns for line in shown.splitlines())
            assert "…" not in shown
            assert ("write" in shown) == (columns >= 80)
            for row in report["rows"]:
                assert f" {row['api_calls']:,} " in shown

    def test_output(self, filled: Command) -> None:
        # Side tasks are listed by name, the rest as main.
        shown = filled("usage", "--by", "task").stdout
        assert "\nmain " in shown
        assert "\ncompression " in shown

        # Sessions are listed by the short id that opens them, unknown groups by the same words as
        # in a profile.
        shown = filled("usage", "--by", "session", COLUMNS="80").stdout
        rows = filled.json("usage", "--by", "session")["rows"]
        listed = filled.json("sessions", "list", "--limit", 1000)
        short_ids = {one["session"]["id"]: one["short_id"] for one in listed}
        for row in rows:
            assert f"\n{short_ids[row['key']]} " in shown
        assert "\nunknown platform " in filled("usage", "--by", "platform").stdout

        # Estimated and unknown costs are marked.
        total = filled.json("usage")["total"]
        assert total["unknown_cost"] > 0
        assert total["estimated_share"] == 1.0
        shown = filled("usage").stdout
        assert f"≥ ${total['cost_usd']:.2f}" in shown
        assert f"the cost of {total['unknown_cost']} of {total['api_calls']} calls" in shown
        assert "~ estimated from the prices" in shown

        # Filtered sessions.
        report = filled.json("usage", "--by", "source", "--source", "codex")
        assert [row["key"] for row in report["rows"]] == ["codex"]
        assert "sessions list" in filled("usage", "--source", "nobody", code=1).stderr
        assert filled.json("usage", "--source", "nobody")["rows"] == []

        # An unknown grouping is wrong usage.
        assert "'day'" in filled("usage", "--by", "colour", code=2).stderr

    def test_nothing_recorded(self, command: Command) -> None:
        # In an empty store, the next step is explained.
        assert "journeyman import" in command("usage").stdout
        assert command.json("usage")["sessions"] == 0

        # Sessions without recorded usage.
        chat = command.home / "chat.jsonl"
        chat.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
        command("import", chat)
        assert "1 session without usage" in command("usage").stdout


def test_usage_recorded_by_a_program(command: Command) -> None:
    home = command.home / ".journeyman"
    with Journeyman(home=home, environ={"HOME": str(command.home)}) as journeyman:
        session = journeyman.record([{"role": "user", "content": "hello"}]).session.id
        once = Usage(key="1", model="mine", input_tokens=9_000, output_tokens=9, cost_usd=0.0004)
        for _ in range(2):
            journeyman.accounting.add(session, once)
        total = Usage(key="so far", model="side", task="titles", input_tokens=700, cost_usd=0.0)
        journeyman.accounting.add(session, total)
        journeyman.accounting.add(session, total)
    shown = command("usage", "--by", "task", COLUMNS="120").stdout
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line}
    assert lines["main"] == ["1", "1", "9k", "·", "·", "9", "$0.0004"]
    assert lines["titles"] == ["1", "1", "700", "·", "·", "·", "$0.0000"]
    assert lines["all"] == ["1", "2", "9.7k", "·", "·", "9", "$0.0004"]
    assert "The tokens of 1 of 2 calls were not all recorded." in shown
