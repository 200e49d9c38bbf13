"""The contract of stored templates, on SQLite and on a real PostgreSQL."""

import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from journeyman.records import (
    Fragment,
    LateChange,
    Message,
    Pattern,
    Session,
    SessionId,
    Step,
    Template,
)
from journeyman.store.store import Store


def a_template(name: str = "web", **facts: Any) -> Template:
    return Template(name=name, **facts)


def a_pattern(words: str = "look it up") -> Pattern:
    step = Step(tool="bash", arguments='{"n": 1}', result=words)
    return Pattern(
        intent=words,
        source="test",
        steps=(step,),
        sessions=(SessionId("a"),),
    )


def versions(store: Store) -> list[tuple[str, int]]:
    return [(one.name, one.version) for one in store.templates.list()]


class TestAdding:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        template = a_template(
            "größer 東京",
            origin="created",
            task_type="research",
            tags=("red", "rot 🦓", 'quoted "'),
            description="nul \x00 and \\ and \u2028",
            addendum="Größe: %s :x\n",
            source="test",
            created_at=1e9 + 0.125,
            scanned=7,
            qualified=3,
            late_minus_early=LateChange(estimate=0.1, low=-0.2, high=0.3, calls=12, method="m"),
            patterns=(a_pattern("nul \x00 東京"), a_pattern("another")),
        )
        assert store.templates.add(template) == template
        with Store(database_url) as again:
            assert again.templates.find("größer 東京") == template
            assert again.templates.list() == [template]

    def test_versions_count_up_and_never_change(self, store: Store) -> None:
        added = [store.templates.add(a_template(description=f"number {n}")) for n in range(1, 12)]
        assert [one.version for one in added] == list(range(1, 12))
        assert store.templates.find("web") == added[-1]
        for one in added:
            assert store.templates.find("web", one.version) == one
            assert one.description == f"number {one.version}"
        assert store.templates.list() == added

    def test_two_builders_of_one_name_may_run_concurrently(
        self, store: Store, database_url: str
    ) -> None:
        failures: list[Exception] = []
        made: list[Template] = []

        def build(who: str) -> None:
            try:
                with Store(database_url, busy_timeout_s=30) as own:
                    made.extend(own.templates.add(a_template(description=who)) for _ in range(15))
            except Exception as error:  # noqa: BLE001 - reported to the test below
                failures.append(error)

        threads = [threading.Thread(target=build, args=(who,)) for who in ("one", "other")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert versions(store) == [("web", version) for version in range(1, 31)]
        for one in made:
            assert store.templates.find("web", one.version) == one


class TestDeleting:
    def test_deleting_one_version_or_all(self, store: Store) -> None:
        for name in ("web", "web", "web", "other"):
            store.templates.add(a_template(name))
        assert store.templates.delete("web", 2) == 1
        assert store.templates.delete("web", 2) == 0
        assert versions(store) == [("other", 1), ("web", 1), ("web", 3)]
        assert store.templates.delete("web") == 2
        assert store.templates.delete("web") == 0
        assert versions(store) == [("other", 1)]

    def test_its_text_is_erased_from_the_file(self, tmp_path: Path) -> None:
        def keep_deleted_content(
            driver: sa.engine.interfaces.DBAPIConnection, _entry: object
        ) -> None:
            # Like SQLite builds outside some Linux distributions, which do not overwrite deleted
            # content.
            driver.cursor().execute("PRAGMA secure_delete=OFF")

        with Store(f"sqlite:///{tmp_path / 'j.db'}") as store:
            sa.event.listen(store._engine, "connect", keep_deleted_content)
            store._engine.dispose()
            for name in ("goes", "stays"):
                store.templates.add(a_template(name, description=f"zebra-{name} " * 2000))
            store.templates.delete("goes")
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"zebra-stays" in content
        assert b"zebra-goes" not in content

    def test_a_template_stays_when_its_sessions_are_deleted(self, store: Store) -> None:
        with store.writing() as writing:
            session = Session(id=SessionId("a"), source="test", log="/logs/a")
            message = Message(key="u", position=1, role="user", text="hello")
            writing.add(Fragment(session=session, messages=(message,)))
            writing.finish()
        template = store.templates.add(a_template(patterns=(a_pattern(),)))
        store.sessions.delete("a")
        assert store.templates.find("web") == template
        assert template.patterns == (a_pattern(),)


class TestUses:
    def test_each_use_is_counted_for_its_version(self, store: Store) -> None:
        for _ in range(2):
            store.templates.add(a_template())
        for at in (10.0, 20.5):
            store.templates.count_use("web", 1, at)
        store.templates.count_use("web", 3, 30.0)
        first, second = store.templates.list()
        assert (first.used, first.last_used_at) == (2, 20.5)
        assert (second.used, second.last_used_at) == (0, None)
        assert store.templates.find("web", 1) == first
