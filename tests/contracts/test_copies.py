"""A copy is not a call: messages that several sessions share count once, on each database."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from journeyman.learning.session_judge import SessionJudge
from journeyman.records import (
    Fragment,
    Lineage,
    LineageKind,
    Message,
    Session,
    SessionId,
    SessionOverview,
    ToolCall,
    Usage,
    Verdict,
)
from journeyman.records.host import begin_mark
from journeyman.store.store import Store

START = 1_700_000_000.0


def uuid(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, name))


def said(name: str, at: int, text: str = "", role: str = "user", **more: Any) -> Message:
    """A message of Claude Code: its key is a UUID, which forks repeat."""
    fields = {"key": uuid(name), "position": at, "text": text or name, "at": START + at, **more}
    return Message(role=role, **fields)  # type: ignore[arg-type]


def turn(name: str, at: int) -> list[Message]:
    """A request, a call with its result, and an answer."""
    call = ToolCall(id=f"toolu_{name}", name="Bash", arguments='{"command": "ls"}')
    return [
        said(f"{name} request", at),
        said(f"{name} call", at + 1, role="assistant", model="opus", tool_calls=(call,)),
        said(f"{name} result", at + 2, "a.txt", role="tool", tool_call_id=call.id),
        said(f"{name} answer", at + 3, role="assistant", model="opus"),
    ]


def used(names: Iterable[str]) -> tuple[Usage, ...]:
    return tuple(Usage(key=f"msg_{name}", model="opus", input_tokens=10) for name in names)


FIRST, SECOND, THIRD = turn("first", 0), turn("second", 10), turn("third", 20)
SESSIONS: dict[str, dict[str, Any]] = {
    "parent": {"messages": [*FIRST, *THIRD], "usage": used(["first", "third"])},
    "fork": {
        "messages": [*FIRST, *SECOND],
        "usage": used(["first", "second"]),
        "details": {"forked_at": START + 9},
    },
    "fork of fork": {
        "messages": [*FIRST, *SECOND, *turn("fourth", 30)],
        "usage": used(["first", "second", "fourth"]),
        "details": {"forked_at": START + 29},
    },
}


def write(
    store: Store,
    id_: str,
    messages: Sequence[Message],
    *,
    usage: Sequence[Usage] = (),
    replaces: bool = True,
    source: str = "claude_code",
    **facts: Any,
) -> None:
    session = Session(id=SessionId(id_), source=source, log=f"/{id_}.jsonl", **facts)
    fragment = Fragment(
        session=session, messages=tuple(messages), usage=tuple(usage), replaces=replaces
    )
    with store.writing() as writer:
        writer.add(fragment)
        writer.finish()


def write_all(store: Store, names: Iterable[str]) -> None:
    for name in names:
        write(store, name, **SESSIONS[name])


def counts(store: Store, *ids: str) -> list[tuple[int, int, int, int | None]]:
    overviews = [store.sessions.get(id_) for id_ in ids]
    return [(o.messages, o.calls, o.answered, o.tokens.input_tokens) for o in overviews]


def parents(store: Store, *ids: str) -> list[Lineage | None]:
    return [store.sessions.get(id_).session.lineage for id_ in ids]


def copied(store: Store, id_: str) -> list[bool]:
    return [message.copied for message in store.sessions.messages(id_)]


class TestForks:
    @pytest.mark.parametrize(
        "order",
        [
            ("parent", "fork", "fork of fork"),
            ("fork of fork", "fork", "parent"),
            ("fork", "parent", "fork of fork", "parent", "fork"),
        ],
        ids=["parent first", "parent last", "read again"],
    )
    def test_shared_messages_count_once(self, store: Store, order: tuple[str, ...]) -> None:
        write_all(store, order)
        assert counts(store, *SESSIONS) == [(8, 2, 2, 20), (4, 1, 1, 10), (4, 1, 1, 10)]
        assert parents(store, *SESSIONS) == [
            None,
            Lineage(parent=SessionId("parent"), kind="branch"),
            Lineage(parent=SessionId("fork"), kind="branch"),
        ]
        fork = store.sessions.get("fork").session
        assert (fork.title, fork.started_at) == ("second request", START + 10)
        assert store.sessions.get("parent").session.title == "first request"
        # The conversation is complete.
        assert copied(store, "fork") == [True] * 4 + [False] * 4
        (totals,) = store.sessions.totals()
        assert (totals.messages, totals.calls, totals.tokens.input_tokens) == (16, 4, 40)
        assert sum(row.input_tokens for row in store.usage.used()) == 40
        assert [call.id for call in store.sessions.calls("fork")] == ["toolu_second"]
        judge = SessionJudge(store, lambda _: Verdict(status="ok", rule="any"), "rules")
        assert len(judge.judged([store.sessions.get("fork")])[0].calls) == 1

    def test_named_parent_need_not_be_stored(self, store: Store) -> None:
        details = {"forked_at": START + 9, "forked_from": "gone"}
        write(store, "fork", [*FIRST, *SECOND], details=details)
        assert parents(store, "fork") == [Lineage(parent=SessionId("gone"), kind="branch")]
        assert counts(store, "fork") == [(8, 2, 2, None)]

    @pytest.mark.parametrize("order", [("parent", "fork"), ("fork", "parent")])
    def test_fork_of_a_compressed_session(self, store: Store, order: tuple[str, str]) -> None:
        summary = said("summary", 8, kind="summary", generation=1)
        kept = [said("first answer", 9, role="assistant", model="opus", generation=1)]
        sessions = {
            "parent": [*FIRST, summary, *SECOND],
            "fork": [summary, *kept, *SECOND, *THIRD],
        }
        for name in order:
            write(store, name, sessions[name])
        assert counts(store, "parent", "fork") == [(9, 2, 2, None), (4, 1, 1, None)]
        assert parents(store, "parent", "fork") == [
            None,
            Lineage(parent=SessionId("parent"), kind="branch"),
        ]

    def test_messages_count_again_without_their_original(self, store: Store) -> None:
        write_all(store, SESSIONS)
        digest = store.sessions.get("fork").digest
        store.sessions.delete("parent")
        assert counts(store, "fork", "fork of fork") == [(8, 2, 2, 20), (4, 1, 1, 10)]
        assert store.sessions.get("fork").digest != digest, "verdicts and lessons are stale"
        assert store.sessions.get("fork").session.title == "first request"
        store.sessions.delete("fork of fork")
        assert counts(store, "fork") == [(8, 2, 2, 20)]

    def test_other_sessions_are_not_forks(self, store: Store) -> None:
        # Keys that are only unique in their session, or in another source.
        for id_ in ("a", "b"):
            message = Message(key="@0", position=0, role="user", text="yes", at=START)
            write(store, id_, [message])
        write(store, "c", FIRST)
        write(store, "d", FIRST, source="other")
        assert counts(store, "a", "b", "c", "d") == [(1, 0, 0, None)] * 2 + [(4, 1, 1, None)] * 2


def plain(position: int, text: str, role: str = "user", **more: Any) -> Message:
    """A message of a recorder whose keys say nothing about copies."""
    fields: dict[str, Any] = {"key": f"row{position}", "position": position, "text": text, **more}
    return Message(role=role, **fields)  # type: ignore[arg-type]


def conversation(start: int, *texts: str) -> list[Message]:
    """Messages from their texts: `>name` is a call, `<name` its result, `#` a summary, `=` an
    answer.
    """
    made = []
    for at, text in enumerate(texts, start=start):
        name = text[1:]
        if text[0] == ">":
            calls = (ToolCall(id=name, name="terminal"),)
            made.append(plain(at, "", "assistant", tool_calls=calls))
        elif text[0] == "<":
            made.append(plain(at, f"result of {name}", "tool", tool_call_id=name))
        elif text[0] == "#":
            made.append(plain(at, name, kind="summary"))
        elif text[0] == "=":
            made.append(plain(at, name, "assistant"))
        else:
            made.append(plain(at, text))
    return made


class TestChildren:
    PARENT = ("go", ">a", "<a", ">b", "<b", "=Done.", "yes", ">c", "<c")

    def write_pair(
        self,
        store: Store,
        child: Sequence[str],
        kind: LineageKind,
        *,
        parent: Sequence[str] = PARENT,
        parent_last: bool = False,
    ) -> SessionOverview:
        lineage = Lineage(parent=SessionId("parent"), kind=kind)
        pair = [("parent", parent, None, 0), ("child", child, lineage, 100)]
        for id_, texts, stated, start in reversed(pair) if parent_last else pair:
            write(store, id_, conversation(start, *texts), source="hermes", lineage=stated)
        return store.sessions.get("child")

    @pytest.mark.parametrize("parent_last", [False, True])
    def test_compression_copies_head_and_tail(self, store: Store, *, parent_last: bool) -> None:
        child = ["go", "# summary", ">b", "<b", "=Done.", "yes", ">c", "<c", ">d", "<d", "yes"]
        overview = self.write_pair(store, child, "compression", parent_last=parent_last)
        # The person said "yes" once more.
        assert copied(store, "child") == [True, False, *[True] * 6, False, False, False]
        assert (overview.messages, overview.calls, overview.generations) == (4, 1, 1)
        assert overview.session.title == "go"

    def test_compression_copies_an_earlier_summary(self, store: Store) -> None:
        parent = ["# first", "go", ">a", "<a", ">b", "<b"]
        child = ["# first", "go", "# second", ">b", "<b", ">c", "<c"]
        overview = self.write_pair(store, child, "compression", parent=parent)
        assert copied(store, "child") == [True, True, False, True, True, False, False]
        assert overview.messages == 3

        # Two summaries may have the same words.
        child = ["# first", ">b", "<b", ">c", "<c"]
        self.write_pair(store, child, "compression", parent=parent)
        assert copied(store, "child") == [False, True, True, False, False]

    def test_branch_copies_the_beginning(self, store: Store) -> None:
        overview = self.write_pair(store, [*self.PARENT[:6], "other", ">d", "<d"], "branch")
        assert copied(store, "child") == [True] * 6 + [False] * 3
        assert (overview.calls, overview.session.title) == (1, "other")

    @pytest.mark.parametrize(
        ("child", "kind"),
        [
            (["go", ">x", "<x"], "branch"),
            (["go", "# summary", ">x", "<x", "yes"], "compression"),
            (["yes", ">a", "<a"], "compression"),
            (["go", ">a", "<a"], "subagent"),
            (["go", ">a", "<a"], "reset"),
            (["go", ">a", "<a", "=Done."], "unknown"),
        ],
        ids=["same request", "own work", "ids that restart", "subagent", "reset", "unknown"],
    )
    def test_what_is_no_copy(self, store: Store, child: list[str], kind: LineageKind) -> None:
        self.write_pair(store, child, kind)
        calls = [call.id for call in store.sessions.calls("child")]
        assert calls == [text[1:] for text in child if text[0] == ">"]

    def test_ids_that_a_model_reuses(self, store: Store) -> None:
        parent = ["go", ">1", "<1", "=ok", "more", ">1", "<1"]
        child = ["go", "# summary", "more", ">1", "<1", ">1", "<1"]
        overview = self.write_pair(store, child, "compression", parent=parent)
        assert copied(store, "child")[2:] == [True, True, True, False, False]
        assert overview.calls == 1

    def test_log_that_is_read_in_parts(self, store: Store) -> None:
        beginning = [*self.PARENT[:4]]
        self.write_pair(store, beginning, "branch")
        rest = conversation(104, *self.PARENT[4:], ">d", "<d")
        write(store, "child", rest, source="hermes", replaces=False)
        assert copied(store, "child") == [True] * 9 + [False] * 2
        assert store.sessions.get("child").calls == 1


class TestOwners:
    def test_note_before_and_after_the_import(self, store: Store) -> None:
        store.sessions.note_owner("later", "job:diary", source="codex")
        for id_ in ("later", "earlier", "own"):
            write(store, id_, [plain(1, "go")], source="codex")
        store.sessions.note_owner("earlier", "run", source="codex")
        store.sessions.note_opening("earlier", TestOpenings.OPENING, source="codex")
        write(store, "earlier", [plain(1, "go"), plain(2, "on")], source="codex")
        found = {o.session.id: (o.session.platform, o.session.tags) for o in store.sessions.list()}
        tags = ("job", "job:diary")
        assert found == {"later": ("job", tags), "earlier": ("run", ()), "own": ("", ())}
        assert store.sessions.get("earlier").session.opening == TestOpenings.OPENING
        people = store.sessions.list(bots=False)
        assert {overview.session.id for overview in people} == {"earlier", "own"}


class TestOpenings:
    OPENING = "0123456789abcdef"

    def openings(self, store: Store) -> dict[str, str]:
        return {o.session.id: o.session.opening for o in store.sessions.list()}

    def test_note_before_and_after_the_import(self, store: Store) -> None:
        store.sessions.note_opening("later", self.OPENING, source="hermes")
        for id_ in ("later", "earlier", "cold"):
            write(store, id_, [plain(1, "go")], source="hermes")
        store.sessions.note_opening("earlier", self.OPENING, source="hermes")
        store.sessions.note_opening("earlier", "f" * 16, source="hermes")
        store.sessions.note_opening("cold", self.OPENING, source="codex")
        warm = {"later": self.OPENING, "earlier": self.OPENING, "cold": ""}
        assert self.openings(store) == warm
        # Reading the log again keeps it.
        write(store, "earlier", [plain(1, "go"), plain(2, "on")], source="hermes")
        assert self.openings(store) == warm
        ids = [o.session.id for o in store.sessions.list(warm=True)]
        assert sorted(ids) == ["earlier", "later"]
        assert [o.session.id for o in store.sessions.list(warm=False)] == ["cold"]

    def test_mark_in_what_the_model_was_given(self, store: Store) -> None:
        mark = begin_mark(self.OPENING)
        write(store, "s", [plain(1, f"Context.\n{mark}\n…", role="system"), plain(2, "go")])
        # A tool that prints one does not make a session warm.
        write(store, "t", [plain(1, mark, role="tool"), plain(2, mark, role="assistant")])
        assert self.openings(store) == {"s": self.OPENING, "t": ""}
