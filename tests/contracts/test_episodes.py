"""The contract of stored episodes, on SQLite and on a real PostgreSQL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from journeyman.records import (
    CommandUse,
    Episode,
    FileUse,
    Fragment,
    Message,
    MinedSession,
    Observations,
    SearchKeys,
    Session,
    SessionId,
    Step,
    Trap,
)
from journeyman.store.episodes import EpisodeKey
from journeyman.store.store import Store

RULES = "r1"
PROJECT = "github.com/acme/app"


def write(store: Store, *names: str, text: str = "hello", **facts: Any) -> None:
    known = {"source": "test", "log": "/logs/a", "project": PROJECT, **facts}
    with store.writing() as writing:
        for name in names:
            session = Session(id=SessionId(name), **known)
            message = Message(key="u", position=1, role="user", text=text)
            writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def an_episode(number: int = 1, session: str = "a", **facts: Any) -> Episode:
    given = {
        "request": f"request {number} of {session}",
        "ending": "well",
        "at": 1.5,
        "source": "test",
        "project": PROJECT,
        "steps": (Step(tool="bash", arguments='{"n": 1}', result=f"{session} saw it"),),
        "observed": Observations(
            commands=(CommandUse("git status", "git status --short", 2, 1, 4.0, "web"),),
            files=(FileUse("src/a.py", 1, 2),),
            traps=(Trap("path", "shell", "src/b.py", "src/a.py"),),
        ),
        **facts,
    }
    return Episode(session=SessionId(session), number=number, **given)


def mined(store: Store, name: str, *episodes: Episode, **facts: Any) -> MinedSession:
    """The session in its current state, with its episodes."""
    found = store.sessions.get(name)
    given = {"digest": found.digest, "outcome": found.session.outcome, **facts}
    return MinedSession(session=found.session.id, episodes=episodes, **given)


def keys_of(*found: MinedSession) -> dict[EpisodeKey, SearchKeys]:
    """Keys that identify their episode."""
    return {(one.session, one.number): _keys(one) for each in found for one in each.episodes}


def _keys(episode: Episode) -> SearchKeys:
    said = f"{episode.session} {episode.number} \x00".encode()
    return SearchKeys(
        words=said, call_words=said + b"\xff", vector=b"v" + said, call_vector=b"c" + said
    )


def save(store: Store, *found: MinedSession, rules: str = RULES) -> None:
    store.learned.save(rules, found, keys_of(*found))


def kept(store: Store) -> list[Episode]:
    """All episodes, checked against their rows."""
    rows = store.episodes.rows()
    found = list(store.episodes.by_row([one.row for one in rows]).values())
    for row, one in zip(rows, found, strict=True):
        assert row[1:6] == (one.session, one.source, one.project, one.at, one.ending)
        assert SearchKeys(**{name: getattr(row, name) for name in _KEY_NAMES}) == _keys(one)
        assert row.observed == one.observed
    return found


_KEY_NAMES = [one.name for one in msgspec.structs.fields(SearchKeys)]


@pytest.fixture
def grew(store: Store) -> Callable[[], bool]:
    """Whether the revision grew since the last call."""
    seen = [store.episodes.revision()]

    def ask() -> bool:
        seen.append(store.episodes.revision())
        assert seen[-1] >= seen[-2]
        return seen[-1] > seen[-2]

    return ask


class TestStoring:
    def test_reading_returns_exactly_what_was_saved(self, store: Store, database_url: str) -> None:
        write(store, "a")
        odd = "Größer als 東京 🦓 \t\n\\ \" ' %s :x \x7f\x1b[0m"
        nul = f"{odd}\x00"
        full = an_episode(
            request=odd,
            ending="rejected",
            at=1e9 + 0.125,
            steps=(
                Step(tool="bäsh\x00", arguments='{"a": "\x00"}', result="nein"),
                Step(tool="bash", arguments='{"\\u0000": "\\ud83d"}', result=nul),
            ),
            observed=Observations(
                commands=(CommandUse(nul, odd, 3, 2, 0.0, nul), CommandUse("ls", "ls -l")),
                files=(FileUse(nul, 1, 0), FileUse("b", 0, 2**31)),
                traps=(Trap("path", nul, odd, nul), Trap("option", "shell", "x --y")),
            ),
        )
        save(store, mined(store, "a", full))
        with Store(database_url) as again:
            assert kept(again) == [full]

    def test_text_with_invalid_characters_is_repaired(self, store: Store) -> None:
        """As in messages."""
        write(store, "a")
        odd = an_episode(
            request="nul \x00 half \ud83d",
            steps=(Step(tool="half \ud83d", result="of \udcff"),),
            observed=Observations(
                commands=(CommandUse("a \ud83d", "ä \udcff", 1, 0, 0.0, "\ud83d"),),
                files=(FileUse("\udcff.py", 1),),
                traps=(Trap("path", "t\ud83d", "e\udcff", "c\ud83d"),),
            ),
        )
        save(store, mined(store, "a", odd))
        assert kept(store) == [
            an_episode(
                request="nul \ufffd half ?",
                steps=(Step(tool="half ?", result="of ?"),),
                observed=Observations(
                    commands=(CommandUse("a ?", "ä ?", 1, 0, 0.0, "?"),),
                    files=(FileUse("?.py", 1),),
                    traps=(Trap("path", "t?", "e?", "c?"),),
                ),
            )
        ]

    def test_an_episode_without_keys_fails_the_whole_save(
        self, store: Store, grew: Callable[[], bool]
    ) -> None:
        write(store, "a", "b")
        save(store, mined(store, "a", an_episode()))
        assert grew()
        found = [mined(store, "a", an_episode(2)), mined(store, "b", an_episode(1, "b"))]
        with pytest.raises(KeyError):
            store.learned.save(RULES, found, keys_of(found[0]))
        assert kept(store) == [an_episode()]
        assert store.learned.missing(RULES) == ["b"]
        assert not grew()


class TestSavingAgain:
    def test_repeating_changes_nothing(self, store: Store) -> None:
        write(store, "a", "b")
        found = (
            mined(store, "a", an_episode(2), an_episode(1, at=None)),
            mined(store, "b", an_episode(1, "b", ending="failed")),
        )
        save(store, *found)
        before = kept(store)
        for some in (found, found[:1], found[1:]):
            save(store, *some)
        save(store, *found, rules="r2")
        assert kept(store) == before

    def test_episodes_stay_until_the_changed_session_is_mined_again(self, store: Store) -> None:
        write(store, "a")
        save(store, mined(store, "a", an_episode()))
        write(store, "a", text="something else")
        assert store.learned.missing(RULES) == ["a"]
        assert kept(store) == [an_episode()]
        save(store, mined(store, "a", an_episode(2)))
        assert kept(store) == [an_episode(2)]

    def test_sessions_changed_or_deleted_meanwhile_are_skipped(
        self, store: Store, grew: Callable[[], bool]
    ) -> None:
        write(store, "goes", "changes", "stays")
        found = [mined(store, name, an_episode(1, name)) for name in ("goes", "changes", "stays")]
        store.sessions.delete("goes")
        write(store, "changes", text="something else")
        save(store, *found)
        assert kept(store) == [an_episode(1, "stays")]
        assert grew()
        save(store, *found[:2])
        assert not grew()


class TestDeleting:
    def test_episodes_are_deleted_with_their_session(
        self, store: Store, grew: Callable[[], bool]
    ) -> None:
        write(store, "a", "b", "empty")
        save(
            store,
            mined(store, "a", an_episode(1), an_episode(2)),
            mined(store, "b", an_episode(1, "b")),
            mined(store, "empty"),
        )
        store.sessions.delete("empty")
        assert len(kept(store)) == 3
        store.sessions.delete("a")
        assert kept(store) == [an_episode(1, "b")]
        assert grew()
        assert store.learned.missing(RULES) == []

    def test_no_table_keeps_any_of_its_text(self, store: Store) -> None:
        write(store, "a", "b")
        word = "zebra"
        theirs = an_episode(
            request=word,
            steps=(Step(tool=word, arguments=word, result=word),),
            observed=Observations(
                commands=(CommandUse(word, word, 1, 0, 0.0, word),),
                files=(FileUse(word, 1),),
                traps=(Trap("path", word, word, word),),
            ),
        )
        save(store, mined(store, "a", theirs), mined(store, "b", an_episode(1, "b")))
        assert word in everything(store)
        store.sessions.delete("a")
        assert word not in everything(store)

    def test_its_text_is_erased_from_the_file(self, tmp_path: Path) -> None:
        """Including episodes that were replaced or removed before the session was deleted."""

        def keep_deleted_content(
            driver: sa.engine.interfaces.DBAPIConnection, _entry: object
        ) -> None:
            # Like SQLite builds outside some Linux distributions, which do not overwrite deleted
            # content.
            driver.cursor().execute("PRAGMA secure_delete=OFF")

        with Store(f"sqlite:///{tmp_path / 'j.db'}") as store:
            sa.event.listen(store._engine, "connect", keep_deleted_content)
            store._engine.dispose()
            write(store, *(f"s{n}" for n in range(5)))
            for rules, times in (("r1", 2000), ("r2", 1)):
                for n in range(5):
                    words = f"zebra{n}{rules} " * times
                    step = Step(tool="bash", result=words)
                    here = an_episode(1, f"s{n}", request=words, steps=(step,))
                    save(store, mined(store, f"s{n}", here), rules=rules)
            for n in range(4):
                store.sessions.delete(f"s{n}")
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"zebra4r2" in content
        assert not [n for n in range(4) if f"zebra{n}".encode() in content]


def everything(store: Store) -> str:
    """The contents of all tables, as one text."""
    found = []
    with store._engine.connect() as connection:
        for name in sa.inspect(connection).get_table_names():
            for row in connection.execute(sa.text(f"SELECT * FROM {name}")):
                found += [
                    one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)
                    for one in row
                ]
    return "\n".join(found)


class TestReading:
    def test_episodes_are_returned_in_the_order_of_storing(self, store: Store) -> None:
        """Not by session, number or time; a changed session comes last."""
        write(store, "a", "b")
        b = [an_episode(2, "b", at=9.0), an_episode(1, "b", at=None)]
        save(store, mined(store, "b", *b))
        save(store, mined(store, "a", an_episode(at=0.0)))
        assert kept(store) == [*b, an_episode(at=0.0)]
        save(store, mined(store, "b", *b[::-1]))
        assert kept(store) == [an_episode(at=0.0), *b[::-1]]

    def test_source_and_project_are_the_sessions_current_ones(self, store: Store) -> None:
        write(store, "a")
        write(store, "b", source="other", project="")
        save(
            store,
            mined(store, "a", an_episode(source="", project="elsewhere")),
            mined(store, "b", an_episode(1, "b")),
        )

        def places() -> list[tuple[str, str, str]]:
            kept(store)
            return [(one.session, one.source, one.project) for one in store.episodes.rows()]

        assert places() == [("a", "test", PROJECT), ("b", "other", "")]
        write(store, "b", source="other", project="github.com/acme/found")
        assert places() == [("a", "test", PROJECT), ("b", "other", "github.com/acme/found")]

    def test_rows_are_returned_in_the_requested_order_without_missing_ones(
        self, store: Store
    ) -> None:
        write(store, "a", "b", "c")
        found = {name: (an_episode(1, name), an_episode(2, name)) for name in "abc"}
        save(store, *(mined(store, name, *episodes) for name, episodes in found.items()))
        rows = [one.row for one in store.episodes.rows()]
        backwards = [one for name in "cba" for one in found[name][::-1]]
        assert list(store.episodes.by_row(rows[::-1]).values()) == backwards
        store.sessions.delete("b")
        assert list(store.episodes.by_row(rows[::-1]).values()) == [
            one for one in backwards if one.session != "b"
        ]
        assert list(store.episodes.by_row([]).values()) == []
