"""Redacted records: no text in them reveals a secret, and nothing else changes."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from journeyman.records import JudgedCall, JudgedSession, SessionId, Verdict
from journeyman.redaction.redactor import redacted_evidence, redacted_record

KEY = "ghp_" + "A1b2" * 9


class Part(Struct, frozen=True):
    name: str
    kind: Literal["alice", "other"] = "alice"
    rate: float | None = None


class Report(Struct, frozen=True):
    title: str
    parts: tuple[Part, ...] = ()
    notes: list[str] = []
    details: dict[str, Any] = {}
    said: str | None = None


def session(**other: Any) -> JudgedSession:
    fields = {"source": "s", "model": "m", "messages": 1, "tags": (), "calls": ()}
    return JudgedSession(id=SessionId("s1"), **{**fields, **other})


def test_every_text_of_a_record_is_redacted():
    report = Report(
        title="alice has it",
        parts=(Part(f"key {KEY}", rate=0.5), Part("write to bob@corp.example")),
        notes=["from bob@corp.example"],
        details={"password": "hunter2hunter2", "size": 3},
        said="in /home/alice/app",
    )
    assert redacted_record(report) == Report(
        title="<user:1> has it",  # only a later text tells that it is a user's name
        parts=(Part("key <github_token:1>", rate=0.5), Part("write to <email:1>")),
        notes=["from <email:1>"],
        details={"password": "<password:1>", "size": 3},
        said="in /home/<user:1>/app",
    )


def test_a_record_without_secrets_is_unchanged():
    report = Report(title="t", parts=(Part("p"),), notes=["n"], details={"a": [1, None]})
    assert redacted_record(report) == report
    judged = [session()]
    assert redacted_record(judged) == judged


def test_sessions_in_a_report_are_redacted():
    verdict = Verdict(status="failed", rule="r", evidence=f"bad key {KEY}")
    call = JudgedCall(call_id="c", tool=KEY, verdict=verdict, model="bob@corp.example", index=4)
    given = session(project="/home/alice/app", tags=("alice",), calls=(call,), model="m-1")
    (shown,) = redacted_record([given])
    assert (shown.project, shown.tags) == ("/home/<user:1>/app", ("<user:1>",))
    assert shown.calls[0] == msgspec.structs.replace(
        call,
        tool="<github_token:1>",
        model="<email:1>",
        verdict=msgspec.structs.replace(verdict, evidence="bad key <github_token:1>"),
    )
    assert (shown.id, shown.model, shown.calls[0].index) == ("s1", "m-1", 4)


def test_evidence_is_redacted_by_the_lines_around_it():
    result = "user,password\nbob,xK4vQ9tLm2w\n"
    assert redacted_evidence("user,password bob,xK4vQ9tLm2w", result).endswith("bob,<password:1>")
    assert redacted_evidence("no such file: a.py", "no such file: a.py") == "no such file: a.py"


def test_many_secrets_are_replaced_where_only_another_text_reveals_them() -> None:
    for count in (150, 1_010):
        secrets = [f"Horse{number}Battery" for number in range(count)]
        texts = [
            text
            for secret in secrets
            for text in (f'{{"password": "{secret}"}}', f"server says {secret} is wrong")
        ]
        shown = "\n".join(redacted_record(texts))
        assert not [secret for secret in secrets if secret in shown], count
