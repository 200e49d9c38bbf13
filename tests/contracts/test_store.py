"""The contract of a store, on SQLite and on a real PostgreSQL."""

import threading
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from tests.tables import table

from journeyman.records import (
    Fragment,
    Lineage,
    LogState,
    Message,
    ResultFlags,
    Session,
    SessionId,
    ToolCall,
    Usage,
)
from journeyman.records.errors import (
    AmbiguousSession,
    StoreUnavailable,
    UnknownSession,
)
from journeyman.store.store import Store


def a_session(name: str = "s1", **facts: object) -> Session:
    return Session(**{"id": SessionId(name), "source": "test", "log": "/logs/a", **facts})


def a_conversation() -> tuple[Message, ...]:
    return (
        Message(key="u", position=10, role="user", text="Fix the parser in src/main.py", at=100.0),
        Message(
            key="a",
            position=20,
            role="assistant",
            text="I look at it.",
            reasoning="it is probably the tokenizer",
            tool_calls=(
                ToolCall(id="c1", name="bash", arguments='{"command": "cat src/main.py"}'),
                ToolCall(id="c2", name="bash", arguments="{not json"),
            ),
            at=101.0,
            model="small-1",
            finish_reason="tool_calls",
        ),
        Message(
            key="t",
            position=30,
            role="tool",
            text="def main(): ...",
            tool_call_id="c1",
            recorded=ResultFlags(is_error=False, exit_code=0, details={"duration_s": 0.5}),
            at=102.0,
        ),
    )


def write(
    store: Store,
    session: Session,
    messages: Iterable[Message] = (),
    usage: Iterable[Usage] = (),
    *,
    replaces: bool = False,
    undone: tuple[tuple[int, int], ...] = (),
) -> str:
    fragment = Fragment(
        session=session,
        messages=tuple(messages),
        usage=tuple(usage),
        replaces=replaces,
        undone=undone,
    )
    with store.writing() as writing:
        writing.add(fragment)
        (change,) = writing.finish().values()
    return change


class TestWriting:
    def test_reading_returns_exactly_what_was_written(self, store: Store) -> None:
        session = a_session(
            title="T",
            cwd="/w",
            project="github.com/acme/app",
            git_branch="main",
            agent="Test 1",
            started_at=99.0,
            ended_at=500.0,
            end_reason="done",
            outcome=0.5,
            outcome_origin="reward",
            lineage=Lineage(parent=SessionId("p"), kind="branch"),
            tags=("one", "two"),
            details={"task": 3, "deep": {"er": [1, None]}},
        )
        usage = Usage(key="a", model="small-1", at=101.0, input_tokens=7, output_tokens=2)
        write(store, session, a_conversation(), [usage])
        exported = store.sessions.export("s1")
        assert exported.session.model == "small-1"
        assert exported.session == Session(
            **{f: getattr(session, f) for f in session.__struct_fields__ if f != "model"},
            model="small-1",
        )
        assert tuple(exported.messages) == a_conversation()
        assert exported.usage == [usage]

    def test_counts_come_from_the_messages(self, store: Store) -> None:
        write(store, a_session(), a_conversation(), [Usage(key="x", output_tokens=5)])
        found = store.sessions.get("s1")
        assert (found.messages, found.calls, found.answered, found.generations) == (3, 2, 1, 1)
        assert found.session.started_at == 100.0
        assert found.session.ended_at == 102.0
        assert found.session.title == "Fix the parser in src/main.py"
        assert found.tokens.total == 5
        assert found.tokens.input_tokens is None

    def test_writing_the_same_again_changes_nothing(self, store: Store) -> None:
        assert write(store, a_session(), a_conversation()) == "new"
        before = store.sessions.get("s1")
        assert write(store, a_session(), a_conversation()) == "unchanged"
        assert store.sessions.get("s1") == before

    def test_a_more_complete_message_replaces_the_earlier_one(self, store: Store) -> None:
        user, answer, result = a_conversation()
        shorter = Message(key="a", position=20, role="assistant", text="I look", at=101.0)
        write(store, a_session(), (user, shorter))
        assert write(store, a_session(), (answer, result)) == "updated"
        assert tuple(store.sessions.messages("s1")) == (user, answer, result)
        assert [hit.key for hit in store.sessions.search("look at it")] == ["a"]

    def test_a_part_added_later_keeps_known_values(self, store: Store) -> None:
        user, *rest = a_conversation()
        write(store, a_session(cwd="/w", title="Known"), [user])
        assert write(store, a_session(), rest) == "updated"
        found = store.sessions.get("s1")
        assert found.messages == 3
        assert (found.session.cwd, found.session.title) == ("/w", "Known")

    def test_the_digest_is_the_same_however_the_session_arrived(self, store: Store) -> None:
        write(store, a_session("whole"), a_conversation())
        for message in a_conversation():
            write(store, a_session("parts"), [message])
        assert store.sessions.get("whole").digest == store.sessions.get("parts").digest

    def test_replacing_removes_messages_missing_from_the_log(self, store: Store) -> None:
        write(store, a_session(), a_conversation(), [Usage(key="old", output_tokens=1)])
        user = a_conversation()[0]
        assert write(store, a_session(), [user], replaces=True) == "updated"
        assert [message.key for message in store.sessions.messages("s1")] == ["u"]
        assert store.sessions.usage("s1") == []

    def test_replacing_from_another_log_only_adds(self, store: Store, tmp_path: Path) -> None:
        own = tmp_path / "log"
        own.touch()
        write(store, a_session(log=str(own)), a_conversation())
        user = a_conversation()[0]
        assert write(store, a_session(log="/logs/b"), [user], replaces=True) == "unchanged"
        assert store.sessions.get("s1").messages == 3

    def test_replacing_clears_known_values(self, store: Store) -> None:
        write(store, a_session(title="Old", outcome=1.0, tags=("old",)), a_conversation())
        write(store, a_session(cwd="/new"), a_conversation()[:1], replaces=True)
        session = store.sessions.get("s1").session
        assert (session.title, session.outcome, session.tags, session.cwd) == (
            "Fix the parser in src/main.py",
            None,
            (),
            "/new",
        )

    def test_recorded_text_replaces_a_redacted_copy_for_good(self, store: Store) -> None:
        def said(text: str) -> tuple[Message, ...]:
            return (Message(key="u", position=1, role="user", text=text),)

        redacted = a_session(log="/to-send.jsonl", cwd="<path:1>", details={"redacted": True})
        recorded = a_session(log="/log.jsonl")
        leftover = Message(key="<id:1>", position=2, role="assistant", text="<path:1>")
        write(store, redacted, (*said("Use <password:1>"), leftover), replaces=True)
        assert write(store, recorded, said("Use hunter2"), replaces=True) == "updated"
        assert write(store, redacted, said("Use <password:1>"), replaces=True) == "unchanged"
        stored = store.sessions.get("s1").session
        assert [message.text for message in store.sessions.messages("s1")] == ["Use hunter2"]
        assert (stored.details, stored.cwd, stored.log) == ({}, "", "/log.jsonl")

    def test_a_moved_log_is_stored_with_its_new_name(self, store: Store, tmp_path: Path) -> None:
        here = tmp_path / "log"
        here.touch()
        write(store, a_session(log=str(here)), a_conversation())
        write(store, a_session(log="/logs/copy"), a_conversation())
        assert store.sessions.get("s1").session.log == str(here)
        here.unlink()
        write(store, a_session(log="/logs/moved"), a_conversation())
        assert store.sessions.get("s1").session.log == "/logs/moved"

    def test_two_recorders_with_one_id_stay_separate(self, store: Store) -> None:
        write(store, a_session(), a_conversation())
        assert write(store, a_session(source="other"), a_conversation()[:1]) == "new"
        assert write(store, a_session(source="other"), a_conversation()[:1]) == "unchanged"
        assert store.sessions.get("s1").messages == 3
        assert store.sessions.get("other:s1").messages == 1

    def test_invalid_values(self, store: Store) -> None:
        session = a_session("nul\x00id", source="s\x00", model="m\x00", cwd="\ud83d", log="l\x00")
        usage = [Usage(key="k\x00", model="m\x00", input_tokens=10**30, output_tokens=1)]
        usage += [Usage(key=str(cost), cost_usd=cost) for cost in ("free", float("nan"), -1.0)]
        message = Message(key="k", position=1, role="assistant", model="m\x00")
        assert write(store, session, [message], usage) == "new"
        assert write(store, session, [message], usage) == "unchanged"
        (found,) = store.sessions.list()
        assert (found.tokens.input_tokens, found.tokens.output_tokens) == (None, 1)
        assert found.tokens.cost_usd is None

    def test_undone_messages_are_removed(self, store: Store) -> None:
        write(store, a_session(), a_conversation(), undone=((20, 30),))
        assert [message.key for message in store.sessions.messages("s1")] == ["u", "t"]

    def test_a_failed_transaction_stores_nothing(self, store: Store) -> None:
        def fail() -> None:
            with store.writing() as writing:
                writing.add(Fragment(session=a_session(), messages=a_conversation() * 300))
                writing.finish()
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert store.sessions.list() == []
        assert store.sessions.search("parser") == []

    def test_text_with_invalid_characters_is_repaired(self, store: Store) -> None:
        odd = Message(key="k", position=1, role="user", text="nul \x00 and half \ud83d of one")
        write(store, a_session(), [odd])
        (found,) = store.sessions.messages("s1")
        assert found.text.startswith("nul \ufffd and half ")
        assert write(store, a_session(), [odd]) == "unchanged"


class TestConcurrentWriting:
    def test_two_writers_lose_and_duplicate_nothing(self, store: Store, database_url: str) -> None:
        """Both write the same new sessions in opposite order."""
        names = [f"s{n}" for n in range(8)]
        failures: list[Exception] = []

        def write_all(order: list[str], part: slice) -> None:
            try:
                with Store(database_url, busy_timeout_s=30) as own:
                    for _ in range(3):
                        with own.writing() as writing:
                            for name in order:
                                messages = a_conversation()[part]
                                writing.add(Fragment(session=a_session(name), messages=messages))
                            writing.finish()
            except Exception as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        threads = [
            threading.Thread(target=write_all, args=(names, slice(0, 2))),
            threading.Thread(target=write_all, args=(names[::-1], slice(1, 3))),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        found = store.sessions.list()
        assert len(found) == len(names)
        assert {one.messages for one in found} == {3}


class TestReading:
    def test_listing_is_newest_first_and_undated_last(self, store: Store) -> None:
        for name, at in (("old", 1.0), ("none", None), ("new", 3.0), ("mid", 2.0)):
            write(store, a_session(name, started_at=at))
        assert [one.session.id for one in store.sessions.list()] == ["new", "mid", "old", "none"]

    def test_listing_is_filtered(self, store: Store) -> None:
        write(store, a_session("a", source="x", tags=("red", "ripe"), started_at=10.0))
        write(store, a_session("b", source="y", model="m", started_at=20.0), a_conversation()[:1])
        delegate = Lineage(parent=SessionId("a"), kind="subagent")
        write(store, a_session("c", source="y", lineage=delegate, started_at=30.0))

        def ids(**asked: object) -> list[str]:
            return [one.session.id for one in store.sessions.list(**asked)]

        assert ids(source="y") == ["c", "b"]
        assert ids(tag="ripe") == ["a"]
        assert ids(tag="rip") == []
        assert ids(tag="Ripe") == []
        assert ids(tag='%"') == []
        assert ids(model="m") == ["b"]
        assert ids(since=20.0) == ["c", "b"]
        assert ids(until=20.0) == ["a"]
        assert ids(min_messages=1) == ["b"]
        assert ids(subagents=False) == ["b", "a"]

    def test_a_session_is_found_by_a_unique_prefix(self, store: Store) -> None:
        for name in ("abc1", "abd2", "a%x", "whole", "whole-2"):
            write(store, a_session(name))
        assert store.sessions.get("abd").session.id == "abd2"
        assert store.sessions.get("a%").session.id == "a%x"
        with pytest.raises(UnknownSession):
            store.sessions.get("ABD")
        assert store.sessions.get("whole").session.id == "whole"
        with pytest.raises(AmbiguousSession, match="abc1, abd2"):
            store.sessions.get("ab")
        for unknown in ("zzz", ""):
            with pytest.raises(UnknownSession, match="sessions list"):
                store.sessions.get(unknown)

    def test_calls_are_joined_with_their_results(self, store: Store) -> None:
        write(store, a_session(), a_conversation())
        first, second = store.sessions.calls("s1")
        assert (first.tool, first.result) == ("bash", "def main(): ...")
        assert first.recorded is not None
        assert first.recorded.exit_code == 0
        assert (second.arguments, second.result) == ("{not json", None)

    def test_totals_by_source_count_subagents_separately(self, store: Store) -> None:
        delegate = Lineage(parent=SessionId("a"), kind="subagent")
        usage = [Usage(key="1", input_tokens=5, output_tokens=1, cost_usd=0.5)]
        write(store, a_session("a", source="x"), a_conversation(), usage)
        write(store, a_session("b", source="x", lineage=delegate), a_conversation(), usage)
        write(store, a_session("c", source="y"))
        x, y = store.sessions.totals()
        assert (x.source, x.sessions, x.subagents, x.messages, x.calls, x.answered) == (
            "x",
            1,
            1,
            6,
            4,
            2,
        )
        assert (x.tokens.total, x.tokens.cost_usd) == (12, 1.0)
        assert (y.sessions, y.messages, y.tokens.total) == (1, 0, None)

    def test_ancestors_end_at_a_missing_parent_or_a_cycle(self, store: Store) -> None:
        def lineage(parent: str) -> Lineage:
            return Lineage(parent=SessionId(parent), kind="compression")

        write(store, a_session("child", lineage=lineage("middle")))
        write(store, a_session("middle", lineage=lineage("missing")))
        write(store, a_session("left", lineage=lineage("right")))
        write(store, a_session("right", lineage=lineage("left")))
        write(store, a_session("self", lineage=lineage("self")))
        assert [one.id for one in store.sessions.ancestors("child")] == ["middle"]
        assert [one.id for one in store.sessions.ancestors("left")] == ["right"]
        assert store.sessions.ancestors("self") == []
        assert [one.id for one in store.sessions.children("middle")] == ["child"]


class TestSearch:
    @pytest.fixture(autouse=True)
    def messages(self, store: Store) -> None:
        texts = {
            "path": "cat /etc/hosts_file.txt and main.py",
            "phrase": "permission denied by the server",
            "apart": "denied: the permission is missing",
            "unicode": "Größe und naïve 東京 Straße",
            "quote": 'he said "stop" OR NOT (maybe) * ^ :',
        }
        write(
            store,
            a_session(),
            [
                Message(key=key, position=n, role="user", text=text, at=float(n))
                for n, (key, text) in enumerate(texts.items())
            ],
        )
        result = "head " + "x " * 600 + "tail"
        write(store, a_session("r"), [Message(key="r", position=1, role="tool", text=result)])

    @table(
        ("query", "found"),
        [
            ("permission denied", {"phrase", "apart"}),
            ('"permission denied"', {"phrase"}),
            ("PERMISSION missing", {"apart"}),
            ("hosts", {"path"}),
            ("main.py", {"path"}),
            ("hosts_file.txt", {"path"}),
            ("größe", {"unicode"}),
            ("grosse", set()),
            ("stop OR NOT", {"quote"}),
            ("perm", set()),
            ('"', set()),
            ("* ^ :", set()),
            ("", set()),
            ("head", {"r"}),
            ("tail", set()),
            ('no"such" "', set()),
        ],
    )
    def test_all_words_and_phrases_must_occur(
        self, store: Store, query: str, found: set[str]
    ) -> None:
        assert {hit.key for hit in store.sessions.search(query)} == found

    def test_a_beginning_of_a_word(self, store: Store) -> None:
        found = {
            query: {hit.key for hit in store.sessions.search(query)}
            for query in ("perm*", "permission*", '"permission den*"', "PERM* miss*", "erm*", "*")
        }
        assert found == {
            "perm*": {"phrase", "apart"},
            "permission*": {"phrase", "apart"},
            '"permission den*"': {"phrase"},
            "PERM* miss*": {"apart"},
            "erm*": set(),
            "*": set(),
        }
        (hit,) = store.sessions.search("serv*")
        assert hit.snippet == "permission denied by the [server]"

    def test_no_query_is_a_syntax_error(self, store: Store) -> None:
        for query in (
            "a AND",
            "NEAR(a b",
            "text:x",
            "'",
            '"open',
            "a & | !b",
            ":*",
            "a*b*",
            "-",
            "\0",
        ):
            assert store.sessions.search(query) == [], query
        for query in ("x" * 5_000, "\u20ac" * 3_000, "\u00b2", "q\u00b2*", "\u2177 \u07c0"):
            assert store.sessions.search(query) == [], query[:9]
        assert store.sessions.search("denied " * 100)
        assert store.sessions.search("denied " * 101) == []

    def test_hits_are_ranked(self, store: Store) -> None:
        texts = {
            "once": "the zebra stood there, and nobody of the whole company had anything to add",
            "often": "zebra zebra zebra",
            "newer": "the zebra stood there, and nobody of the whole company had anything to add",
        }
        conversation = [
            Message(key=key, position=n, role="user", text=text, at=float(n))
            for n, (key, text) in enumerate(texts.items())
        ]
        copy = Message(key="copy", position=9, role="user", text="zebra zebra", copied=True)
        write(store, a_session("z"), [*conversation, copy])
        assert [hit.key for hit in store.sessions.search("zebra")] == ["often", "newer", "once"]
        assert [hit.key for hit in store.sessions.search("zebra", limit=1)] == ["often"]

        # Filters narrow the search.
        assert store.sessions.search("zebra", source="other") == []
        assert len(store.sessions.search("denied", source="test", limit=1)) == 1

    def test_calls_and_where_a_match_is(self, store: Store) -> None:
        arguments = (
            '{"command": "cd app\\nmake gr\\u00f6\\u00dfer", "options": {"retries": [4711]}}'
        )
        calls = (
            ToolCall(id="c1", name="Bash", arguments=arguments),
            ToolCall(id="c2", name="Broken", arguments='{"path": "walrus.txt'),
        )
        conversation = [
            Message(key="q", position=1, role="user", text="please"),
            Message(key="a", position=2, role="assistant", text="I walk", tool_calls=calls),
            Message(key="r", position=3, role="tool", text="no rule", tool_call_id="c1"),
        ]
        write(store, a_session("c"), conversation)

        def places(query: str) -> list[tuple[object, ...]]:
            return [(hit.message, hit.tool, hit.snippet) for hit in store.sessions.search(query)]

        assert places("make größer") == [(2, "Bash", "Bash cd app [make] [größer] 4711")]
        assert places('"app make"') == [(2, "Bash", "Bash cd [app make] größer 4711")]
        assert places("wal*") == [(2, "", "I [walk]")]
        assert places("walrus") == [(2, "Broken", 'Broken {"path": "[walrus].txt')]
        assert places("rule") == [(3, "", "no [rule]")]
        # The names of arguments are in every call, and a phrase is in one place.
        assert places("command") == []
        assert places('"walk Bash"') == []

        # What is written again is found by its new words only.
        changed = msgspec.structs.replace(calls[0], arguments='{"command": "giraffe"}')
        conversation[1] = msgspec.structs.replace(conversation[1], tool_calls=(changed,))
        write(store, a_session("c"), conversation)
        assert places("größer") == []
        assert [place[0] for place in places("giraffe")] == [2]


class TestDeleting:
    def test_all_data_of_a_session_is_deleted_with_it(
        self, store: Store, database_url: str
    ) -> None:
        write(store, a_session("a"), a_conversation(), [Usage(key="1")])
        write(store, a_session("b"), a_conversation(), [Usage(key="1")])
        assert store.sessions.delete("a").messages == 3
        assert [one.session.id for one in store.sessions.list()] == ["b"]
        assert {hit.session for hit in store.sessions.search("parser")} == {"b"}
        engine = sa.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            for name in ("messages", "usage"):
                rows = connection.execute(
                    sa.text(f"SELECT count(DISTINCT session_row) FROM {name}")
                )
                assert rows.scalar() == 1
        engine.dispose()

    def test_a_deleted_session_stays_deleted_unless_restored(self, store: Store) -> None:
        write(store, a_session("a"), a_conversation())
        store.sessions.delete("a")
        with store.writing() as writing:
            writing.add(Fragment(session=a_session("a"), messages=a_conversation()))
            writing.add(Fragment(session=a_session("a"), messages=a_conversation()))
            assert writing.finish() == {}
        assert store.sessions.list() == []
        with store.writing(restores=True) as writing:
            writing.add(Fragment(session=a_session("a"), messages=a_conversation()))
            writing.finish()
        assert write(store, a_session("a"), a_conversation()) == "unchanged"

    def test_its_text_is_erased_from_the_file(self, tmp_path: Path) -> None:
        with Store(f"sqlite:///{tmp_path / 'j.db'}") as store:
            for n in range(5):
                text = f"ordinary words and zebrasecret{n} " * 50
                message = Message(key="k", position=1, role="user", text=text)
                write(store, a_session(f"s{n}"), [message])
            for n in range(4):
                store.sessions.delete(f"s{n}")
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"zebrasecret4" in content
        assert not [n for n in range(4) if f"zebrasecret{n}".encode() in content]


class TestLogs:
    def test_the_state_of_a_log_is_stored_with_its_sessions(self, store: Store) -> None:
        state = LogState(reader="r", size=9, mtime_ns=8, offset=7, memory={"a": [1, "b"]})
        assert store.log_state("/logs/a") is None

        def fail() -> None:
            with store.writing() as writing:
                writing.remember("/logs/a", state)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert store.log_state("/logs/a") is None
        with store.writing() as writing:
            writing.remember("/logs/a", LogState(reader="r", size=1, mtime_ns=1))
            writing.remember("/logs/a", state)
        assert store.log_state("/logs/a") == state
        assert store.log_stamps() == {"/logs/a": ("r", 9, 8)}


class TestOpening:
    def test_opening_to_read_creates_nothing(self, database_url: str) -> None:
        for _ in range(2):
            with Store(database_url, only_looking=True) as store:
                assert not store.is_ready
        with Store(database_url) as store:
            assert store.is_ready

    def test_two_programs_may_open_a_new_database_at_once(self, database_url: str) -> None:
        failures = []

        def open_it() -> None:
            try:
                Store(database_url, busy_timeout_s=20).close()
            except StoreUnavailable as error:
                failures.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

    def test_a_database_of_a_newer_version_is_refused_unchanged(
        self, store: Store, database_url: str
    ) -> None:
        engine = sa.create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE schema_version SET number = 9999"))
        engine.dispose()
        with pytest.raises(StoreUnavailable, match="made by another version"):
            Store(database_url)
