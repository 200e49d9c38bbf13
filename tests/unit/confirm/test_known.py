"""Credentials that were looked up a moment ago."""

from tests.confirm_core import Clock

from journeyman.confirm.known import Known
from journeyman.records.confirmation import Credential

ANN = Credential(id="1", kind="approver", name="ann", created_at=0.0)


def test_a_moment_is_a_second() -> None:
    clock, asked = Clock(), list[str]()

    def find(digest: str) -> Credential | None:
        asked.append(digest)
        return ANN if digest == "a" else None

    known = Known(find, clock)
    assert known.recent("a") is None
    assert known.look_up("a") is ANN
    clock.forward(0.99)
    assert known.recent("a") is ANN
    clock.forward(0.01)
    assert known.recent("a") is None
    assert known.look_up("b") is None
    assert known.recent("b") is None, "nobody is not remembered"
    known.look_up("a")
    clock.forward(-5.0)
    assert known.recent("a") is None, "a clock that was set back"
    known.look_up("a")
    known.forget()
    assert known.recent("a") is None
    assert asked == ["a", "b", "a", "a"]


def test_what_was_forgotten_while_it_was_looked_up_is_not_remembered() -> None:
    def find(_digest: str) -> Credential:
        known.forget()  # revoked in this very moment
        return ANN

    known = Known(find, Clock())
    assert known.look_up("a") is ANN
    assert known.recent("a") is None


def test_one_whose_time_is_over_is_nobody() -> None:
    clock = Clock(100.0)
    session = Credential(id="2", kind="session", name="ann", created_at=0.0, expires_at=100.5)
    known = Known(lambda _digest: session, clock)
    assert known.look_up("s") is session
    clock.forward(0.5)
    assert known.recent("s") is None
    assert known.look_up("s") is None
