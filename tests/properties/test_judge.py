"""The judge returns a verdict for any recorded call."""

import json
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from journeyman.outcomes.judge import judge
from journeyman.outcomes.rules import EVIDENCE_LIMIT
from journeyman.records import Call, ResultFlags, Verdict, VerdictKind, VerdictStatus

_pieces = st.sampled_from(
    [
        "Error: ",
        "Exit code 1\n",
        "<returncode>1</returncode>\n",
        "<output>",
        "<tool_use_error>",
        '{"error": null, ',
        '"exit_code": 1}',
        '{"success": false}',
        "Traceback (most recent call last):\n",
        "ValueError: x\n",
        "The user doesn't want to proceed",
        "[The command completed with exit code 2.]",
        "FAILED (errors=1)",
        " || echo FAIL",
        "grep -q x y",
        "\x1b[31m",
        "\n",
    ]
)
texts = st.lists(st.one_of(_pieces, st.text(max_size=40)), max_size=12).map("".join)
objects = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=10)
    | st.sampled_from(["--5", "-1", "404", "error", "cancelled", "no such file"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "status", "exit_code", "results", "content", "type", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
).flatmap(lambda value: st.sampled_from([json.dumps(value), str(value)]))
flags = st.none() | st.builds(
    ResultFlags,
    is_error=st.none() | st.booleans(),
    exit_code=st.none() | st.integers(-1, 255),
    status=st.none() | st.sampled_from(["ok", "error", "denied", "killed", "odd"]),
    interrupted=st.none() | st.booleans(),
)
calls = st.builds(
    Call,
    id=st.just("c"),
    tool=st.sampled_from(["bash", "Read", "some_tool", ""]),
    arguments=st.one_of(texts, texts.map(lambda text: json.dumps({"command": text}))),
    result=st.none() | texts | objects,
    recorded=flags,
)


@given(calls)
def test_every_call_gets_a_verdict_with_evidence(call: Call) -> None:
    verdict = judge(call)
    assert isinstance(verdict, Verdict)
    assert verdict.status in get_args(VerdictStatus)
    assert verdict.kind in get_args(VerdictKind)
    assert verdict.rule
    assert len(verdict.evidence) <= EVIDENCE_LIMIT
    assert "\n" not in verdict.evidence
    assert judge(call) == verdict


@given(calls)
def test_call_without_result_or_flag_is_unknown(call: Call) -> None:
    if call.result is None and call.recorded is None:
        assert judge(call).status == "unknown"


@given(texts)
def test_recorded_error_is_never_overruled(text: str) -> None:
    verdict = judge(Call(id="c", tool="t", result=text, recorded=ResultFlags(is_error=True)))
    assert verdict.status not in ("ok", "unknown")
