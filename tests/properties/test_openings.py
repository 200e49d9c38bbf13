"""An opening of any patterns is valid for every host and recognised afterwards."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.validators import anthropic_faults, openai_faults, responses_faults, text_faults

from journeyman.experience.opening import Choice, Opening, why_not_shown
from journeyman.learning.opening_text import (
    is_own_call_id,
    opening_length,
    without_opening_text,
)
from journeyman.logs.chat import read_message
from journeyman.records import Message, Pattern, Step

# Favour lone surrogates and control characters; occasionally draw a huge text.
letters = st.characters() | st.sampled_from('\ud800\udfff\x00\x1b\r\n\u2028 {}[]"\\<>=')
_pieces = st.sampled_from(
    [
        "[Journeyman 0123456789abcdef:]\n",
        "[end of 0123456789abcdef]\n",
        "Journeyman shows 3 examples from earlier sessions",
        "Done with get_user.",
    ]
)
_huge = st.sampled_from("x\ud800\n").map(lambda letter: letter * 5_000)
texts = st.one_of(
    st.text(letters, max_size=30),
    st.tuples(st.text(letters, max_size=9), _pieces | _huge).map("".join),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
json_objects = objects.flatmap(
    lambda value: st.booleans().map(lambda escaped: json.dumps(value, ensure_ascii=escaped))
)
# Occasionally draw arguments and names that cannot be shown.
arguments = st.integers(0, 19).flatmap(lambda number: json_objects if number else texts)
names = st.integers(0, 19).flatmap(
    lambda number: (
        st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True) if number else st.just("a.b")
    )
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    steps = st.builds(Step, tool=names, arguments=arguments, result=texts)
    return Pattern(intent=draw(texts), steps=tuple(draw(st.lists(steps, max_size=4))))


openings = st.builds(
    Opening,
    task=texts,
    preamble=st.just("") | texts,
    choices=st.lists(st.builds(Choice, pattern=patterns(), reason=texts), max_size=6).map(
        lambda choices: tuple(one for one in choices if not why_not_shown(one.pattern))
    ),
    addendum=st.just("") | texts,
)
FAULTS = {"openai": openai_faults, "responses": responses_faults, "anthropic": anthropic_faults}
TASK = {"role": "user", "content": "Now this."}


@given(openings)
@settings(suppress_health_check=list(HealthCheck))
def test_every_form_is_valid_and_recognised(opening: Opening) -> None:
    assert len(opening.patterns) == len(opening.reasons)
    opening.system.encode()
    check_text(opening)
    for form, faults in FAULTS.items():
        assert faults(opening.messages(form)) == []
        check_injection(opening, form, [TASK])
        if form != "anthropic":
            check_injection(opening, form, [{"role": "system", "content": "Be kind."}, TASK])


def check_text(opening: Opening) -> None:
    """Check that the text form is valid and can be removed."""
    text = opening.messages("text")
    if not (opening.addendum or opening.preamble):  # these may contain any lines
        assert text_faults(text) == []
    text.encode()
    assert without_opening_text(f"before\n{text}\nafter" if text else "before\n\nafter") == (
        "before\n\nafter"
    )


def check_injection(opening: Opening, form: str, request: list[dict[str, str]]) -> None:
    """Check that injection is valid, idempotent and recognised when read."""
    once = opening.inject(request, form)
    assert once[-1] == request[-1]
    assert opening.inject(once, form) == once
    assert FAULTS[form](once) == []
    if form == "responses":
        return
    messages: list[Message] = []
    for index, raw in enumerate(once):
        messages += read_message(raw, f"m{index}", index * 10)
    ours = [call.id for message in messages for call in message.tool_calls]
    assert all(is_own_call_id(one) for one in ours)
    assert opening_length(messages) == (len(messages) - 1 if ours else 0)
