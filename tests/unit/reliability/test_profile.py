"""Profiles: figures computed from verdicts."""

import msgspec
from tests.tables import table

from journeyman.records import (
    JudgedCall,
    JudgedSession,
    SessionId,
    Verdict,
    VerdictKind,
    VerdictStatus,
)
from journeyman.reliability.groups import By, Group, grouped
from journeyman.reliability.profile import profile
from journeyman.reliability.rates import wilson


def call(
    tool: str = "bash",
    status: VerdictStatus = "ok",
    evidence: str = "",
    *,
    kind: VerdictKind = "",
    model: str = "",
    rule: str = "test",
) -> JudgedCall:
    verdict = Verdict(status=status, rule=rule, kind=kind, evidence=evidence)
    return JudgedCall(call_id="c", tool=tool, verdict=verdict, model=model)


def session(
    name: str,
    *calls: JudgedCall,
    messages: int = 10,
    source: str = "hermes",
    model: str = "m",
) -> JudgedSession:
    return JudgedSession(
        id=SessionId(name),
        source=source,
        model=model,
        messages=messages,
        tags=(),
        calls=tuple(
            msgspec.structs.replace(one, index=at, call_id=f"c{at}") for at, one in enumerate(calls)
        ),
    )


def summarised(groups: tuple[Group, ...]) -> dict[str, tuple[int, int, int, int]]:
    return {one.name: (one.sessions, one.calls, one.rate.errors, one.rate.total) for one in groups}


MIXED_SESSION = session(
    "s1",
    call("bash"),
    call("bash", "failed", "no such file", kind="not_found"),
    call("bash", "failed", "exit 1", kind="no_match"),
    call("Read"),
    call("Read", "invalid", "missing path", kind="invalid_arguments"),
    call("Read", "refused"),
    call("Edit", "interrupted"),
    call("Edit", "unknown"),
)


class TestCounts:
    def test_counted_calls(self) -> None:
        # Every call is counted exactly once.
        found = profile([MIXED_SESSION])
        counts = (found.ok, found.failed, found.invalid)
        apart = (found.refused, found.interrupted, found.unknown)
        assert counts == (2, 2, 1)
        assert apart == (1, 1, 1)
        assert sum(counts) + sum(apart) == found.calls == 8

        # A search without a match is not an error.
        found = profile([MIXED_SESSION])
        assert found.no_match == 1
        assert found.rate == wilson(2, 5)

        # Sessions with and without calls.
        found = profile([MIXED_SESSION, session("s2"), session("s3", call())])
        assert found.sessions == 3
        assert found.calls == 9
        assert found.rate == wilson(2, 6)

        # A session passed twice counts once.
        assert profile([MIXED_SESSION] * 2) == profile([MIXED_SESSION])
        assert grouped([MIXED_SESSION] * 2, "tool") == grouped([MIXED_SESSION], "tool")


class TestTools:
    def test_figures_per_tool(self) -> None:
        found = profile([MIXED_SESSION, session("s2", call("bash"))])
        assert [
            (one.name, one.sessions, one.calls, one.rate, one.apart, one.unknown)
            for one in found.tools
        ] == [
            ("bash", 2, 4, wilson(1, 4), 0, 0),
            ("Read", 1, 3, wilson(1, 2), 1, 0),
            ("Edit", 1, 2, wilson(0, 0), 1, 1),
        ]

    def test_order_and_names_of_tools(self) -> None:
        # Equally used tools are sorted by name.
        found = profile([session("s", call("b"), call("c"), call("a"), call("c"))])
        assert [tool.name for tool in found.tools] == ["c", "a", "b"]

        # A nameless tool gets a name.
        found = profile([session("s", call("", "failed", "no"))])
        assert found.tools[0].name == "unknown tool"
        assert found.failures[0].tools == ("unknown tool",)


class TestFailures:
    def test_failures_that_differ_in_a_name_form_one_group(self) -> None:
        found = profile(
            [
                session(
                    "s1", call("Read", "failed", "No file /a/b.py", kind="not_found", rule="r1")
                ),
                session(
                    "s2",
                    call("bash"),
                    call("Edit", "failed", "No file ./c.txt", kind="not_found"),
                    call("Read", "invalid", "No file ~/d", kind="invalid_arguments"),
                ),
            ]
        )
        (group,) = found.failures
        assert group.fingerprint == "No file <path>"
        assert (group.count, group.sessions) == (3, 2)
        assert (group.status, group.kind) == ("failed", "not_found")
        assert group.tools == ("Read", "Edit")
        assert (group.example.session, group.example.call_index) == ("s1", 0)
        assert (group.example.tool, group.example.rule) == ("Read", "r1")
        assert group.example.evidence == "No file /a/b.py"
        assert found.further_failures == 0

    def test_the_example_is_the_earliest_failure_not_the_first_listed(self) -> None:
        failed = call("bash", "failed", "no such file")
        at = msgspec.structs.replace
        listed = [
            at(session("unknown", failed), started_at=None),
            at(session("newest", failed), started_at=300.0),
            at(session("oldest", call(), failed), started_at=100.0),
            at(session("resumed", at(failed, at=250.0)), started_at=50.0),
        ]
        (group,) = profile(listed).failures
        assert (group.example.session, group.example.call_index) == ("oldest", 1)

    def test_order_and_limits(self) -> None:
        # The ten most common are listed, the rest counted.
        words = list("abcdefghijkl")
        failed = [
            call(status="failed", evidence=f"it was {word}")
            for rank, word in enumerate(words)
            for _ in range(len(words) - rank)
        ]
        found = profile([session("s", *failed)])
        assert [group.fingerprint for group in found.failures] == [
            f"it was {word}" for word in words[:10]
        ]
        assert found.further_failures == 2

        # Equally common ones are sorted by name.
        two = [call(status="failed", evidence=word) for word in ("b", "a")]
        assert [group.fingerprint for group in profile([session("s", *two)]).failures] == ["a", "b"]

    def test_only_errors_are_failures(self) -> None:
        calls = [
            call(status="refused", evidence="no"),
            call(status="interrupted", evidence="stop"),
            call(status="unknown", evidence="?"),
            call(status="failed", evidence="exit 1", kind="no_match"),
            call(status="ok", evidence="exit 0"),
        ]
        assert profile([session("s", *calls)]).failures == ()

        # Failures without a message are grouped by rule.
        calls = [call(status="failed", rule=rule) for rule in ("flag", "flag", "exit")]
        found = profile([session("s", *calls)])
        assert [(group.fingerprint, group.count) for group in found.failures] == [
            ("no message recorded (flag)", 2),
            ("no message recorded (exit)", 1),
        ]


class TestGroups:
    sessions = (
        session("s1", call("a", model="x"), call("b", "failed"), messages=150, source="codex"),
        session("s2", call("a"), call("a", "refused"), call("a", "unknown"), model="", source=""),
        session("s3", messages=20),
    )

    @table(
        ("by", "groups"),
        [
            ("tool", {"a": (2, 4, 0, 2), "b": (1, 1, 1, 1)}),
            ("model", {"unknown model": (1, 3, 0, 1), "m": (1, 1, 1, 1), "x": (1, 1, 0, 1)}),
            (
                "source",
                {"unknown source": (1, 3, 0, 1), "codex": (1, 2, 1, 2), "hermes": (1, 0, 0, 0)},
            ),
            ("length", {"short": (1, 3, 0, 1), "mid": (1, 0, 0, 0), "marathon": (1, 2, 1, 2)}),
            ("type", {"mixed": (2, 5, 1, 3), "none": (1, 0, 0, 0)}),
        ],
    )
    def test_figures_per_group(self, by: By, groups: dict[str, tuple[int, int, int, int]]) -> None:
        found = summarised(grouped(self.sessions, by))
        assert found == groups
        assert list(found) == list(groups)

    def test_all_length_bands_are_listed_in_order(self) -> None:
        assert [one.name for one in grouped([], "length")] == ["short", "mid", "marathon"]
        lengths = profile(self.sessions).lengths
        assert lengths == grouped(self.sessions, "length")


class TestInsufficientData:
    @table(
        ("sessions", "note"),
        [
            ([], "There are no sessions to profile."),
            (
                [session("s1"), session("s2")],
                "There are no tool calls in these sessions, so there is nothing to measure.",
            ),
            (
                [session("s", *[call(status="unknown", evidence="?")] * 12)],
                "No call can be counted: all were refused, interrupted or have an unknown result.",
            ),
        ],
        ids=["no sessions", "no calls", "all unknown"],
    )
    def test_note_explains_missing_data(self, sessions: list[JudgedSession], note: str) -> None:
        found = profile(sessions)
        assert found.note == note
        assert found.rate == wilson(0, 0)
        assert found.failures == ()
        assert len(found.lengths) == 3
        assert b"NaN" not in msgspec.json.encode(found)
