"""The contract of projects in the store, on SQLite and on a real PostgreSQL."""

from journeyman.records import Fragment, Message, Session, SessionId, Usage
from journeyman.records.project import is_in_project
from journeyman.store.store import Store

PROJECTS = {
    "a": "github.com/acme/cli",
    "b": "cli",
    "c": "github.com/Other/CLI",
    "d": "~/src/my_app",
    "e": "~/src/myxapp",
    "f": "",
    "g": "Überblick",
    "h": "example.org/github.com/acme/cli",
}


def add(store: Store, name: str, **facts: object) -> None:
    session = Session(**{"id": SessionId(name), "source": "test", "log": "/logs/a", **facts})
    message = Message(key="u", position=1, role="user", text="hello", at=session.started_at)
    usage = Usage(key="u", model="m", input_tokens=1)
    with store.writing() as writing:
        writing.add(Fragment(session=session, messages=(message,), usage=(usage,), replaces=True))
        writing.finish()


def fill(store: Store) -> None:
    for number, (name, project) in enumerate(PROJECTS.items()):
        add(store, name, project=project, started_at=100.0 + number)


def names(store: Store, project: str) -> str:
    return "".join(sorted(one.session.id for one in store.sessions.list(project=project)))


def test_a_name_matches_every_project_that_ends_with_it(store: Store) -> None:
    fill(store)
    rows = {
        "cli": "abch",
        "CLI": "abch",
        "acme/cli": "abh",  # includes the session known only by its name
        "github.com/acme/cli": "ab",  # whole: another project may end with it
        "github.com/acme/cli/": "ab",
        "/home/ada/cli": "b",
        "my_app": "d",
        "~/src/my_app": "d",
        "my%": "",
        "i": "",
        "": "f",
        "Überblick": "g",
    }
    assert {given: names(store, given) for given in rows} == rows
    for given, found in rows.items():
        alike = {name for name, project in PROJECTS.items() if is_in_project(project, given)}
        assert not given or alike == set(found), given


def test_every_filter_of_sessions_accepts_a_project(store: Store) -> None:
    fill(store)
    hits = store.sessions.search("hello", project="acme/cli")
    assert {hit.session for hit in hits} == {"a", "b", "h"}
    assert store.usage.session_count(project="cli") == 4
    used = store.usage.used(project="cli")
    assert sorted(row.project for row in used) == sorted(PROJECTS[name] for name in "abch")
    assert store.learned.missing("rules", "cli") == ["a", "b", "c", "h"]
    assert len(store.learned.missing("rules")) == len(PROJECTS)


def test_projects_are_counted(store: Store) -> None:
    fill(store)
    add(store, "late", project="cli", ended_at=900.0)
    add(store, "undated", project="old")
    found = store.sessions.projects()
    assert [one.project for one in found[:2]] == ["cli", PROJECTS["h"]]
    assert (found[0].sessions, found[0].calls, found[0].ended_at) == (2, 0, 900.0)
    assert (found[-1].project, found[-1].ended_at) == ("old", None)


def test_a_known_project_is_not_replaced_by_a_shorter_name(store: Store) -> None:
    for project in ("cli", "github.com/acme/cli", "cli", ""):
        add(store, "s", project=project)
    assert store.sessions.get("s").session.project == ""
    for project in ("github.com/acme/cli", "CLI"):
        add(store, "s", project=project)
    assert store.sessions.get("s").session.project == "github.com/acme/cli"
    add(store, "s", project="app")
    assert store.sessions.get("s").session.project == "app"


def test_folders_inside_repositories(store: Store) -> None:
    add(store, "a", cwd="/x/cli", git_branch="main", project="cli")
    add(store, "b", cwd="/x/notes", project="notes")
    add(store, "c", project="none", git_branch="main")
    with store.writing() as writing:
        assert writing.repository_folders() == {"/x/cli": "cli"}


def test_suggested_projects(store: Store) -> None:
    fill(store)
    assert "There are: ~/src/my_app, " in store.sessions.no_match(project="acme/my_ap")
