"""The contract of forgetting, on SQLite and on a real PostgreSQL."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.tables import table

from journeyman.records import (
    Check,
    CommandUse,
    Episode,
    FileUse,
    Finding,
    Fragment,
    Message,
    MinedSession,
    Observations,
    Pattern,
    Remark,
    SearchKeys,
    Session,
    SessionId,
    Step,
    Template,
    Trap,
)
from journeyman.records.errors import Unstorable
from journeyman.records.forgetting import EVERY_REQUEST, Forgotten, ForgottenSession
from journeyman.store.store import Store

RULES = "r1"
CANARY = "Zanzibar-Heron-71"
KEYS = SearchKeys(words=b"w", call_words=b"c", vector=b"v", call_vector=b"d")
MADE_TEST = Observations(commands=(CommandUse("make test", "make test", 1),))


def write(store: Store, *names: str) -> None:
    with store.writing() as writing:
        for name in names:
            session = Session(id=SessionId(name), source="test", log="/logs/a", project="acme/shop")
            message = Message(key="u", position=1, role="user", text="hello")
            writing.add(Fragment(session=session, messages=(message,)))
        writing.finish()


def an_episode(session: str, number: int = 1, **facts: Any) -> Episode:
    given = {
        "request": f"request {number} of {session}",
        "ending": "well",
        "steps": (Step(tool="bash", arguments='{"n": 1}', result=f"{session} saw it"),),
        **facts,
    }
    return Episode(session=SessionId(session), number=number, **given)


def seen(**observed: Any) -> Episode:
    return an_episode("a", observed=Observations(**observed))


def a_pattern(name: str, session: str, **facts: Any) -> Pattern:
    steps = (Step(tool="bash", result=f"{session} saw it"),)
    return Pattern(**{"intent": name, "steps": steps, "sessions": (SessionId(session),), **facts})


def learn(store: Store, name: str, *found: Episode) -> None:
    digest = store.sessions.get(name).digest
    mined = MinedSession(session=SessionId(name), digest=digest, episodes=found)
    store.learned.save(RULES, [mined], {(one.session, one.number): KEYS for one in found})


def forget(store: Store, *names: str, **options: Any) -> Forgotten:
    which = {SessionId(name): frozenset((EVERY_REQUEST,)) for name in names}
    return store.forgotten.forget(which, at=9.0, **options)


def forget_text(store: Store, text: str, **options: Any) -> Forgotten:
    found = store.forgotten.matching(text)
    return store.forgotten.forget(found, at=9.0, matching=text, **options)


def known(store: Store) -> dict[str, object]:
    """Everything learned, without row ids."""
    episodes = store.episodes.by_row([one.row for one in store.episodes.rows()]).values()
    return {
        "episodes": sorted((one.session, one.number) for one in episodes),
        "templates": [
            (f"{one.name}@{one.version}", [pattern.intent for pattern in one.patterns])
            for one in store.templates.list()
        ],
    }


class TestSessions:
    def test_everything_learned_from_a_session_is_removed(self, store: Store) -> None:
        write(store, "a", "b")
        learn(
            store,
            "a",
            an_episode("a", 1, observed=MADE_TEST),
            an_episode(
                "a",
                2,
                observed=Observations(
                    commands=(CommandUse("make lint", "make lint", 1),),
                    files=(FileUse("src/a.py", 1),),
                    traps=(Trap("path", "shell", "src/b.py", "src/a.py"),),
                ),
            ),
        )
        learn(store, "b", an_episode("b", 1, observed=MADE_TEST))
        revision = store.episodes.revision()
        removed = forget(store, "a")
        assert removed == Forgotten(
            sessions=(SessionId("a"),),
            projects=("acme/shop",),
            episodes=2,
        )
        assert store.episodes.revision() > revision
        assert known(store) == {"episodes": [("b", 1)], "templates": []}
        assert store.learned.missing(RULES) == []
        assert store.learned.reasons(["a"]) == {"a": "forgotten"}
        assert [one.session.id for one in store.sessions.list()] == ["a", "b"]

    def test_a_forgotten_session_is_not_learned_again_until_undone(self, store: Store) -> None:
        write(store, "a")
        taught = an_episode("a")
        learn(store, "a", taught)
        before = known(store)
        forget(store, "a")
        nothing = known(store)
        learn(store, "a", taught)
        assert known(store) == nothing
        assert store.learned.missing(RULES) == []
        assert store.learned.reasons(["a"]) == {"a": "forgotten"}
        assert store.forgotten.list() == [ForgottenSession(session=SessionId("a"), at=9.0)]
        assert store.forgotten.undo(["a", "other"]) == ["a"]
        assert store.learned.missing(RULES) == ["a"]
        learn(store, "a", taught)
        assert known(store) == before
        assert store.forgotten.list() == []

    def test_a_forgotten_session_that_was_never_mined_is_not_learned(self, store: Store) -> None:
        write(store, "a")
        assert forget(store, "a").is_empty
        assert store.learned.missing(RULES) == ["a"]
        learn(store, "a", an_episode("a"))
        assert (known(store)["episodes"], store.learned.missing(RULES)) == ([], [])

    def test_it_stays_forgotten_when_deleted_and_imported_again(self, store: Store) -> None:
        write(store, "a")
        forget(store, "a")
        store.sessions.delete("a")
        with store.writing(restores=True) as writing:
            message = Message(key="u", position=1, role="user", text="hello")
            session = Session(id=SessionId("a"), source="test")
            writing.add(Fragment(session=session, messages=(message,)))
            writing.finish()
        learn(store, "a", an_episode("a"))
        assert known(store)["episodes"] == []

    def test_a_dry_run_reports_the_same_and_removes_nothing(self, store: Store) -> None:
        write(store, "a")
        learn(store, "a", an_episode("a"))
        store.templates.add(Template(name="web", patterns=(a_pattern("p", "a"),)))
        before = known(store)
        told = forget(store, "a", dry_run=True)
        assert known(store) == before
        assert store.forgotten.list() == []
        assert forget(store, "a") == told
        assert told.templates_deleted == ("web@1",)

    def test_forgetting_is_atomic(self, store: Store) -> None:
        write(store, "a")
        learn(store, "a", an_episode("a"))
        store.templates.add(Template(name="web", patterns=(a_pattern("p", "a"),)))
        before = known(store)
        which = {SessionId("a"): frozenset((EVERY_REQUEST,))}
        with pytest.raises(Unstorable):
            store.forgotten.forget(which, at=None)  # type: ignore[arg-type]
        assert known(store) == before
        assert (store.forgotten.list(), store.learned.missing(RULES)) == ([], [])

    def test_templates_lose_patterns_shown_from_it(self, store: Store) -> None:
        write(store, "a", "b")
        ours, theirs = a_pattern("ours", "a"), a_pattern("theirs", "b")
        for patterns in ((ours,), (ours, theirs), (theirs,)):
            store.templates.add(Template(name="web", patterns=patterns))
        removed = forget(store, "a")
        assert removed.templates_deleted == ("web@1",)
        assert removed.templates_changed == ("web@2",)
        assert known(store)["templates"] == [("web@2", ["theirs"]), ("web@3", ["theirs"])]

    def test_forgetting_many_sessions_at_once(self, store: Store) -> None:
        names = [f"s{number}" for number in range(600)]
        write(store, *names, "other")
        for name in (*names[:5], "other"):
            learn(store, name, an_episode(name))
        removed = forget(store, *names)
        assert (len(removed.sessions), removed.episodes) == (600, 5)
        assert known(store)["episodes"] == [("other", 1)]
        assert len(store.forgotten.undo(names)) == 600


class TestMatching:
    @table(
        ("place", "learned"),
        [
            ("request", an_episode("a", request=f"ask {CANARY}?")),
            ("steps", an_episode("a", steps=(Step(tool="t", result=f"at {CANARY}"),))),
            ("command", seen(commands=(CommandUse("curl", f"curl {CANARY}", 1),))),
            ("folder", seen(commands=(CommandUse("ls", "ls", 1, 0, 0.0, CANARY),))),
            ("file", seen(files=(FileUse(f"src/{CANARY}.py", 1),))),
            ("trap", seen(traps=(Trap("path", "shell", f"src/{CANARY}.py"),))),
            ("remedy", seen(traps=(Trap("program", "shell", "pytest", f"bin/{CANARY}"),))),
            ("finding", seen(findings=(Finding("pytest", f"a.py::{CANARY}"),))),
            ("check", seen(check=Check(f"make {CANARY}", worked=True))),
            ("words", seen(remarks=(Remark(f"Never say {CANARY}"),))),
            ("target", seen(remarks=(Remark("Never do that", "Edit", f"{CANARY}.py"),))),
        ],
    )
    def test_a_request_is_found_wherever_it_contains_the_text(
        self, store: Store, place: str, learned: Episode
    ) -> None:
        write(store, "a")
        learn(store, "a", learned, an_episode("a", 2))
        for text in (CANARY, CANARY.lower(), CANARY[:9].upper()):
            assert store.forgotten.matching(text) == {"a": {1}}, place
        for text in (f"{CANARY}0", "Zanz.bar", "Zanzi%", "request 3"):
            assert store.forgotten.matching(text) == {}

    def test_text_inside_arguments_is_found(self, store: Store) -> None:
        write(store, "a")
        said = 'say "Grüße"\nto all'
        arguments = msgspec.json.encode({"command": said}).decode()
        step = Step(tool="t", arguments=arguments)
        learn(store, "a", an_episode("a", steps=(step,)))
        assert store.forgotten.matching(said.upper()) == {"a": {1}}

    def test_only_matching_items_are_removed(self, store: Store) -> None:
        write(store, "a", "b")
        secret = (Step(tool="t", result=f"at {CANARY}"),)
        learn(store, "a", an_episode("a", 1, steps=secret), an_episode("a", 2))
        learn(store, "b", an_episode("b"))
        assert forget_text(store, CANARY.lower()).episodes == 1
        assert known(store)["episodes"] == [("a", 2), ("b", 1)]
        assert store.learned.missing(RULES) == ["a"]
        assert store.forgotten.of(["a", "b"]) == {"a": {1}}
        # Results mined before the text was forgotten are skipped; later ones are stored.
        learn(store, "a", an_episode("a", 1), an_episode("a", 2))
        assert store.learned.missing(RULES) == ["a"]
        learn(store, "a", an_episode("a", 2), an_episode("a", 3))
        assert known(store)["episodes"] == [("a", 2), ("a", 3), ("b", 1)]
        assert store.learned.missing(RULES) == []

    def test_templates_lose_matching_patterns_of_any_origin(self, store: Store) -> None:
        held, free = a_pattern("held", "x", intent=f"to {CANARY}"), a_pattern("free", "x")
        facts = {"description": f"for {CANARY}", "tags": (CANARY, "web"), "addendum": "Mind."}
        store.templates.add(Template(name="web", patterns=(held, free), **facts))
        store.templates.add(Template(name="all", patterns=(held,)))
        store.templates.add(Template(name=f"of {CANARY}", patterns=(free,)))
        removed = forget_text(store, CANARY)
        assert removed.templates_changed == ("web@1",)
        assert removed.templates_deleted == ("all@1", f"of {CANARY}@1")
        (web,) = store.templates.list()
        assert (web.patterns, web.tags) == ((free,), ("web",))
        assert (web.description, web.addendum) == ("", "Mind.")

    def test_without_a_match_nothing_changes(self, store: Store) -> None:
        write(store, "a")
        learn(store, "a", an_episode("a"))
        before = known(store)
        assert forget_text(store, CANARY).is_empty
        assert known(store) == before
        assert store.learned.missing(RULES) == []


@table("by_text", [True, False])
def test_its_text_is_erased_from_the_file(tmp_path: Path, by_text: bool) -> None:
    """From a SQLite file; on PostgreSQL, vacuuming does it."""
    path = tmp_path / f"{by_text}.db"
    with Store(f"sqlite:///{path}") as store:
        write(store, "a", "b")
        for name in ("a", "b"):
            long = f"{CANARY} " * 2_000 if name == "a" else "other " * 2_000
            steps = (Step(tool="t", result=long),)
            command = CommandUse("curl", f"curl {long[:30]}", 1)
            observed = Observations(commands=(command,))
            learn(store, name, an_episode(name, steps=steps, observed=observed))
            store.templates.add(Template(name=name, patterns=(a_pattern("p", name, steps=steps),)))
        store.templates.add(Template(name="of both", patterns=store.templates.list()[0].patterns))
        removed = forget_text(store, CANARY) if by_text else forget(store, "a")
        assert not removed.is_empty
        in_files = {
            file.name for file in tmp_path.iterdir() if CANARY.encode() in file.read_bytes()
        }
        assert in_files == set()
    assert CANARY.encode() not in path.read_bytes()
    assert b"other other" in path.read_bytes()
