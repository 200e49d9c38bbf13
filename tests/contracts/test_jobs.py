"""The contract of stored jobs, on SQLite and on a real PostgreSQL: for the people who manage jobs
and the schedulers that claim them concurrently.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from msgspec.structs import replace

from journeyman.records.errors import UnknownJob, WrongInput
from journeyman.records.job import Job, JobId, JobState, Run, RunId, Schedule
from journeyman.store.store import Store

NOW = 1_800_000_000.0
HOURLY = Schedule(text="every 1h", kind="every", timezone="UTC", at=NOW, seconds=3600.0)


def a_job(id_: str = "a1", name: str = "", **facts: Any) -> Job:
    given = {"prompt": "p", "schedule": HOURLY, "next_run_at": NOW, **facts}
    return Job(id=JobId(id_), name=name or f"job-{id_}", **given)


def a_run(id_: str = "r1", job: str = "a1", **facts: Any) -> Run:
    given = {"trigger": "schedule", "started_at": NOW, "due_at": NOW, "holder": "me", **facts}
    return Run(id=RunId(id_), job=JobId(job), **given)


def added(store: Store, *of: Job) -> Job:
    for job in of:
        store.jobs.add(job)
    return of[0]


def moved(job: Job, by: float = 3600.0) -> Job:
    return replace(job, runs=job.runs + 1, next_run_at=(job.next_run_at or 0.0) + by)


def lead(store: Store, holder: str = "me", until: float = NOW + 30) -> None:
    assert store.jobs.take_lease(holder, now=NOW, until=until)


def claimed(store: Store, job: Job, run: Run, **facts: Any) -> bool:
    given = {"then": moved(job), "skipped": replace(moved(job), runs=job.runs), **facts}
    return store.jobs.claim(job, run, **{"alive_until": NOW + 60, **given})


def same(job: Job) -> Job:
    return job


class TestJobs:
    def test_reading_returns_exactly_what_was_stored(self, store: Store, database_url: str) -> None:
        job = added(
            store,
            a_job(
                prompt='nul \x00 🦓 \u2028 "%s" :x',
                skills=("größer", "東京"),
                tools=(),
                next_run_at=NOW + 0.125,
                cost_usd=0.1,
                repeat=3,
                runs=2,
                failures=1,
                remark="held",
            ),
        )
        with Store(database_url) as again:
            assert again.jobs.get("a1") == job
            assert again.jobs.list() == [job]

    def test_a_name_belongs_to_one_job_until_it_is_removed(self, store: Store) -> None:
        first = added(store, a_job("a1", "report"))
        with pytest.raises(WrongInput, match="A job named 'report' already exists"):
            store.jobs.add(a_job("a2", "report"))
        assert store.jobs.list() == [first]
        store.jobs.change("report", lambda job: replace(job, state="removed"))
        second = added(store, a_job("a2", "report"))
        assert store.jobs.get("report") == second
        with pytest.raises(WrongInput, match="Another job is now named 'report'"):
            store.jobs.change("a1", lambda job: replace(job, state="scheduled"))
        assert store.jobs.get("a1").state == "removed"
        with pytest.raises(WrongInput):
            store.jobs.change(added(store, a_job("a3")).id, lambda job: replace(job, name="report"))

    def test_a_job_is_found_by_name_id_or_prefix(self, store: Store) -> None:
        first = added(
            *(store, a_job("abcd1", "mail"), a_job("abcd2", "abcd1-copy"), a_job("abd", "abcd")),
        )
        get = store.jobs.get
        assert get("mail") == get("abcd1") == first
        assert get("abcd2").name == "abcd1-copy"
        assert get("abcd").id == "abd"  # the name wins over the prefix of two ids
        for wrong in ("", "ab", "ABCD1", "MAIL", "abcd%", "abcd_", "abcd\x00", "mai"):
            with pytest.raises(UnknownJob):
                get(wrong)
        store.jobs.change("abd", lambda job: replace(job, name="other"))
        with pytest.raises(UnknownJob, match="More than one job matches 'abcd'"):
            get("abcd")

    def test_a_change_is_atomic(self, store: Store) -> None:
        job = added(store, a_job())

        def fail(_job: Job) -> Job:
            raise KeyError

        with pytest.raises(KeyError):
            store.jobs.change("a1", fail)
        assert store.jobs.get("a1") == job
        with pytest.raises(UnknownJob):
            store.jobs.change("other", same)

    def test_concurrent_changes_are_all_applied(self, store: Store, database_url: str) -> None:
        added(store, a_job())

        def count(_thread: int) -> None:
            with Store(database_url) as mine:
                for _ in range(10):
                    mine.jobs.change("a1", lambda job: replace(job, runs=job.runs + 1))

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(count, range(3)))
        assert store.jobs.get("a1").runs == 30

    def test_the_next_job_to_run_is_first(self, store: Store) -> None:
        def add(name: str, at: float | None, state: JobState = "scheduled") -> None:
            store.jobs.add(a_job(f"id-{name}", name, next_run_at=at, state=state))

        add("late", NOW + 2)
        add("z-paused", None, "paused")
        add("soon", NOW + 1)
        add("b", NOW + 3)
        add("a", NOW + 3)
        add("a-done", None, "done")
        add("gone", None, "removed")
        names = [job.name for job in store.jobs.list()]
        assert names == ["soon", "late", "a", "b", "a-done", "z-paused"]
        assert [job.name for job in store.jobs.list(["removed", "done"])] == ["a-done", "gone"]
        assert store.jobs.list([]) == []

    def test_runs_are_newest_first(self, store: Store) -> None:
        added(store, a_job("a1"), a_job("a2"))
        ended: list[Run] = []
        for number, status in enumerate(("ok", "failed", "ok", "silent")):
            run = a_run(f"r{number}", started_at=NOW + number, due_at=None)
            assert store.jobs.begin(run, alive_until=NOW)
            used = {"tokens": 2**40, "cost_usd": 0.25} if status == "ok" else {}
            ended.append(replace(run, status=status, ended_at=NOW + 9, **used))
            store.jobs.finish(ended[-1], same)
        assert store.jobs.runs(JobId("a1")) == ended[::-1]
        assert store.jobs.runs(JobId("a1"), limit=2) == ended[:1:-1]
        assert store.jobs.last_runs() == {"a1": ended[-1]}

    def test_a_job_is_deleted_with_its_runs(self, store: Store) -> None:
        added(store, a_job("a1"), a_job("a2"))
        for job in ("a1", "a2"):
            assert store.jobs.begin(a_run(f"r-{job}", job), alive_until=NOW)
        with pytest.raises(WrongInput, match="is running"):
            store.jobs.delete("a1")
        done = replace(a_run("r-a1"), status="ok")
        store.jobs.finish(done, same)
        assert store.jobs.delete("a1") == [done]
        assert [job.id for job in store.jobs.list()] == ["a2"]
        assert list(store.jobs.last_runs()) == ["a2"]


class TestLease:
    def test_the_lease_belongs_to_its_holder_until_it_expires(self, store: Store) -> None:
        take, seen = store.jobs.take_lease, store.jobs.lease
        assert seen() is None
        assert take("a", now=NOW, until=NOW + 30)
        assert not take("b", now=NOW + 29.9, until=NOW + 60)
        assert seen() == ("a", NOW + 30)
        assert take("a", now=NOW + 20, until=NOW + 50)
        assert not take("b", now=NOW + 30, until=NOW + 60)
        assert take("b", now=NOW + 50, until=NOW + 80)
        assert seen() == ("b", NOW + 80)
        assert not take("a", now=NOW + 51, until=NOW + 90)
        assert store.jobs.look(NOW, most=1).holder == "b"

    def test_one_of_many_schedulers_gets_the_lease(self, store: Store, database_url: str) -> None:
        barrier = Barrier(3)

        def take(name: str) -> list[bool]:
            got = []
            with Store(database_url) as mine:
                for turn in range(10):
                    barrier.wait()
                    now = NOW + 100 * turn
                    got.append(mine.jobs.take_lease(name, now=now, until=now + 30))
            return got

        with ThreadPoolExecutor(3) as pool:
            taken = list(pool.map(take, "abc"))
        assert [sum(turn) for turn in zip(*taken, strict=True)] == [1] * 10


class TestDueJobs:
    def test_only_due_jobs_are_returned(self, store: Store) -> None:
        added(
            store,
            a_job("later", next_run_at=NOW + 0.001),
            a_job("now", next_run_at=NOW),
            a_job("past", next_run_at=NOW - 9),
            a_job("runs", next_run_at=NOW - 5),
            a_job("paused", state="paused"),
            a_job("done", next_run_at=None),
        )
        assert store.jobs.begin(a_run(job="runs", due_at=None), alive_until=NOW)
        look = store.jobs.look
        assert [job.id for job in look(NOW, most=9).due] == ["past", "now"]
        assert [job.id for job in look(NOW, most=1).due] == ["past"]
        assert look(NOW, most=0).due == ()
        assert (look(NOW, most=1).holder, look(NOW, most=1).until) == ("", 0.0)

    def test_a_run_without_a_heartbeat_is_lost(self, store: Store) -> None:
        added(store, a_job("a1"), a_job("a2"))
        claims = store.jobs
        for job in ("a1", "a2"):
            assert claims.begin(a_run(f"r-{job}", job), alive_until=NOW + 60)
        ids = [RunId("r-a1"), RunId("r-a2"), RunId("unknown")]
        assert claims.look(NOW + 60, most=1).lost == ()
        assert claims.keep_alive(ids[:1], until=NOW + 90) == {"r-a1"}
        assert [run.id for run in claims.look(NOW + 61, most=0).lost] == ["r-a2"]
        claims.finish(replace(a_run("r-a2", "a2"), status="ok"), same)
        assert claims.keep_alive(ids, until=NOW + 99) == {"r-a1"}
        assert claims.keep_alive([], until=NOW) == frozenset()
        assert [run.id for run in claims.look(NOW + 99.5, most=0).lost] == ["r-a1"]


class TestClaims:
    def test_a_claim_begins_the_run_and_moves_the_job(self, store: Store) -> None:
        job, run = added(store, a_job(held_since=NOW - 9)), a_run()
        missed = a_run("r0", due_at=None, status="missed", missed=2)
        lead(store)
        assert claimed(store, job, run, missed=missed)
        assert {one.id: one for one in store.jobs.runs(job.id)} == {"r1": run, "r0": missed}
        assert store.jobs.last_runs() == {job.id: run}
        assert store.jobs.get("a1") == moved(job)

    def test_a_claim_needs_the_lease(self, store: Store) -> None:
        job = added(store, a_job())
        for lease in (None, ("other", NOW + 30), ("me", NOW)):
            if lease:
                lead(store, lease[0], lease[1])
            assert not claimed(store, job, a_run())
            assert (store.jobs.runs(job.id), store.jobs.get("a1")) == ([], job)
            if lease:
                store.jobs.release_lease(lease[0])

    def test_a_claim_needs_an_unchanged_job(self, store: Store) -> None:
        lead(store)
        for id_, change in {"a1": {"state": "paused"}, "a2": {"next_run_at": NOW + 1}}.items():
            job = added(store, a_job(id_))
            changed = store.jobs.change(id_, lambda one, facts=change: replace(one, **facts))
            assert not claimed(store, job, a_run(f"r-{id_}", id_))
            assert (store.jobs.runs(job.id), store.jobs.get(id_)) == ([], changed)

    def test_a_job_never_runs_twice_at_once(self, store: Store) -> None:
        job = added(store, a_job())
        lead(store)
        by_hand = a_run("hand", trigger="hand", due_at=None)
        assert store.jobs.begin(by_hand, alive_until=NOW + 60)
        assert not store.jobs.begin(replace(by_hand, id=RunId("h2")), alive_until=NOW)
        assert not claimed(store, job, a_run())
        assert (store.jobs.runs(job.id), store.jobs.get("a1")) == ([by_hand], job)
        store.jobs.finish(replace(by_hand, status="ok"), same)
        assert claimed(store, job, a_run())
        assert not store.jobs.begin(replace(by_hand, id=RunId("h3")), alive_until=NOW)

    def test_a_scheduled_time_never_has_two_runs(self, store: Store) -> None:
        """If the clock was set back, the job is rescheduled without a second run."""
        job = added(store, a_job())
        lead(store)
        assert claimed(store, job, a_run())
        store.jobs.finish(replace(a_run(), status="ok"), same)
        back = store.jobs.change("a1", lambda one: replace(one, next_run_at=NOW))
        assert not claimed(store, back, a_run("r2"))
        assert len(store.jobs.runs(job.id)) == 1
        assert store.jobs.get("a1") == replace(back, next_run_at=NOW + 3600)

    def test_a_run_ends_once(self, store: Store) -> None:
        job = added(store, a_job())
        lead(store)
        claimed(store, job, a_run())
        done = replace(a_run(), status="failed", reason="no", ended_at=NOW + 1, tokens=3)
        finish = store.jobs.finish
        settled = finish(done, lambda one: replace(one, failures=1, remark="held"))
        assert settled == replace(moved(job), failures=1, remark="held") == store.jobs.get("a1")
        assert finish(replace(done, status="ok"), lambda one: replace(one, failures=0)) is None
        assert (store.jobs.runs(JobId("a1"))[0], store.jobs.get("a1").failures) == (done, 1)
        assert finish(a_run("unknown"), same) is None
        amended = replace(done, delivered=("file",))
        store.jobs.amend(amended)
        assert store.jobs.runs(job.id) == [amended]

    def test_only_runs_that_are_still_lost_are_abandoned(self, store: Store) -> None:
        added(store, a_job())
        assert store.jobs.begin(a_run(), alive_until=NOW + 60)
        lost = replace(a_run(), status="interrupted")
        assert store.jobs.finish(lost, same, lost_at=NOW + 60) is None
        store.jobs.keep_alive([RunId("r1")], until=NOW + 90)
        assert store.jobs.finish(lost, same, lost_at=NOW + 61) is None
        assert store.jobs.runs(JobId("a1"))[0].status == "running"
        assert store.jobs.finish(lost, same, lost_at=NOW + 91) is not None
        assert store.jobs.runs(JobId("a1"))[0] == lost

    def test_a_concurrent_change_by_a_person_stays(self, store: Store) -> None:
        job = added(store, a_job())
        lead(store)
        claimed(store, job, a_run())
        store.jobs.change("a1", lambda one: replace(one, prompt="new", state="paused"))
        store.jobs.finish(replace(a_run(), status="ok"), lambda one: replace(one, failures=0))
        stands = store.jobs.get("a1")
        assert (stands.prompt, stands.state, stands.runs) == ("new", "paused", 1)

    def test_manual_runs_and_claims_do_not_deadlock(self, store: Store, database_url: str) -> None:
        added(store, a_job())
        lead(store)
        barrier = Barrier(2)

        def run_by_hand() -> None:
            with Store(database_url) as mine:
                barrier.wait()
                for number in range(25):
                    run = a_run(f"hand{number}", trigger="hand", due_at=None)
                    if mine.jobs.begin(run, alive_until=NOW):
                        assert mine.jobs.finish(replace(run, status="ok"), same)

        def run_on_schedule() -> None:
            with Store(database_url) as mine:
                barrier.wait()
                for number in range(25):
                    job = mine.jobs.get("a1")
                    run = a_run(f"due{number}", due_at=job.next_run_at)
                    if claimed(mine, job, run):
                        assert mine.jobs.finish(replace(run, status="ok"), same)

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(work) for work in (run_by_hand, run_on_schedule)]:
                done.result()
        assert {run.status for run in store.jobs.runs(JobId("a1"))} == {"ok"}

    def test_one_of_two_concurrent_claims_wins(self, store: Store, database_url: str) -> None:
        made = [a_job(f"{number:08x}") for number in range(60)]
        for job in made:
            store.jobs.add(job)
        lead(store)
        barrier = Barrier(2)

        def claim_all(name: str) -> list[str]:
            with Store(database_url) as mine:
                barrier.wait()
                return [
                    job.id for job in made if claimed(mine, job, a_run(f"{name}-{job.id}", job.id))
                ]

        with ThreadPoolExecutor(2) as pool:
            won = list(pool.map(claim_all, "ab"))
        assert Counter(won[0] + won[1]) == {job.id: 1 for job in made}
        assert {run.id for run in store.jobs.last_runs().values()} == {
            f"{name}-{id_}" for name, ids in zip("ab", won, strict=True) for id_ in ids
        }
        assert {job.runs for job in store.jobs.list()} == {1}
