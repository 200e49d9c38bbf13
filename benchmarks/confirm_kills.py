"""The confirmation service killed repeatedly under load, with `kill -9`.

    python benchmarks/confirm_kills.py [--kills 200] [--seed 1]

The real program is started, used by agents and people at the same time, killed at a random moment,
and restarted on the same data. Every response is recorded and compared with the store after each
start: no acknowledged request, vote, decision or redemption is lost, nothing is decided or redeemed
twice, no deadline moves, nothing is approved after its deadline, and the audit chain matches its
anchor. The number of violations is printed last.
"""

import argparse
import http.client
import os
import random
import re
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from journeyman import Journeyman
from journeyman.confirm.policy import Policy
from journeyman.confirm.requests import prepare, submit
from journeyman.records.confirmation import Confirmation, Submission

AGENTS, APPROVERS = 5, 4
_POLICY = """
requester_limit = 1000000000

[[rules]]
action = "pair_*"
tier = "ask"
quorum = 2
"""
_SHORTEST_S = 30
_EARLIER = 40
_PATIENCE_S = 60.0
_SETTLING = ("approved", "denied", "cancelled", "expired")
_decode = msgspec.json.Decoder(Confirmation).decode

Json = dict[str, Any]


class Card(msgspec.Struct, kw_only=True):
    """What clients know about a card from the responses they received."""

    id: str
    digest: str
    action: str
    agent: str
    expires_at: float
    settled: tuple[str, str, float] | None = None
    known_at: float = 0.0
    """When a client first knew that it is settled."""
    votes: set[str] = msgspec.field(default_factory=set)
    grants: list[str] = msgspec.field(default_factory=list)
    redeeming: bool = False


class Book:
    """All responses to all clients; a contradiction is a violation."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.violations: list[str] = []
        self.answers: Counter[str] = Counter()
        self._lock = threading.Lock()

    def told(self, view: Json, kind: str, *, sent: float, vote: str = "") -> Card:
        """Record a response that shows a card. Of two concurrent requests, the older one may be
        answered later, so the time at which a request was `sent` counts.
        """
        with self._lock:
            self.answers[kind] += 1
            card = self.cards.get(view["id"])
            if card is None:
                card = self.cards[view["id"]] = Card(
                    id=view["id"],
                    digest=view["digest"],
                    action=view["action"],
                    agent=view["requester"],
                    expires_at=_seconds(view["expires_at"]),
                )
            if vote:
                card.votes.add(vote)
            if (view["digest"], _seconds(view["expires_at"])) != (card.digest, card.expires_at):
                self.wrong(card, f"digest or deadline moved to {view['expires_at']}")
            if view["settled_at"]:
                self._settled(card, view["status"], view["settled_by"], view["settled_at"])
            elif card.settled and card.known_at < sent:
                self.wrong(card, f"was {card.settled}, but is pending again")
            return card

    def _settled(self, card: Card, status: str, by: str, at: str) -> None:
        found = ("approved" if status == "redeemed" else status, by, _seconds(at))
        if card.settled not in (None, found):
            self.wrong(card, f"was settled as {card.settled}, then as {found}")
        if card.settled is None:
            card.settled, card.known_at = found, time.monotonic()
        if found[0] == "approved" and found[2] >= card.expires_at:
            self.wrong(card, "was approved after its deadline")

    def granted(self, card: Card, grant: str) -> None:
        """Record the response to a redemption."""
        with self._lock:
            self.answers["redeemed"] += 1
            card.grants.append(grant)
            if len(card.grants) > 1:
                self.wrong(card, "was redeemed twice")

    def wait_for(self, kinds: Collection[str] = ()) -> None:
        """Wait for a new response, and for a new one of each of these kinds."""
        before = Counter(self.answers)

        def is_answered() -> bool:
            return self.answers != before and all(
                self.answers[kind] > before[kind] for kind in kinds
            )

        wait_until(is_answered, f"answers, and among them {', '.join(kinds) or 'any'}")

    def wrong(self, card: Card, what: str) -> None:
        self.violations.append(f"{card.action} {card.id}: {what}")

    def pick(self, rng: random.Random, wanted: Callable[[Card], bool]) -> Card | None:
        """A random one of the newest cards that match."""
        with self._lock:
            newest = list(self.cards.values())[-300:]
        fitting = [card for card in newest if wanted(card)]
        return rng.choice(fitting) if fitting else None

    def copy(self) -> dict[str, Card]:
        """A snapshot of everything recorded so far."""
        with self._lock:
            return {
                card.id: msgspec.structs.replace(
                    card, votes=set(card.votes), grants=list(card.grants)
                )
                for card in self.cards.values()
            }


def _seconds(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()


class Client:
    """An agent or a person: a thread that sends requests, and retries if there is no response."""

    def __init__(self, name: str, secret: str, port: int, book: Book, *, seed: int) -> None:
        self.name = name
        self.book = book
        self.rng = random.Random(f"{seed}-{name}")
        self.ended = threading.Event()
        self.sent = 0.0
        self._secret = secret
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self.ended.set()
        self._thread.join()
        self._connection.close()

    def turn(self) -> None:
        """One action of this client."""

    def _run(self) -> None:
        try:
            while not self.ended.wait(self.rng.uniform(0, 0.02)):
                self.turn()
        except Exception as error:
            self.book.violations.append(f"the client {self.name} failed: {error!r}")
            raise

    def ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json] | None:
        """The response; None if there was none and the outcome of the request is unknown."""
        headers = {"Authorization": f"Bearer {self._secret}", "Content-Type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        self.sent = time.monotonic()
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            status, found = answer.status, msgspec.json.decode(answer.read())
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self.ended.wait(0.05)
            return None
        if status >= 500:
            self.book.violations.append(f"{method} {path} was answered {status}: {found}")
        return status, found


class Agent(Client):
    """An agent that submits, waits, cancels and redeems."""

    _sent = 0
    _unanswered: Json | None = None

    def turn(self) -> None:
        chance = self.rng.random()
        if self._unanswered is not None or chance < 0.45:
            self._submit()
        elif chance < 0.75:
            self._redeem()
        elif chance < 0.8:
            self._on_own("cancel", "/cancel", {})
        else:
            self._on_own("looked", f"?wait={self.rng.choice((0, 0, 1))}")

    def _submit(self) -> None:
        wish = self._unanswered or self._wish()
        answer = self.ask("POST", "/confirm", wish)
        # Without a response it is sent again with the same key, until there is one.
        self._unanswered = wish if answer is None else None
        if answer is None:
            return
        status, view = answer
        if status != 202:
            # Sent again after it was settled.
            assert status == 200, view
        self.book.told(view, "replayed" if view["replayed"] else "submitted", sent=self.sent)

    def _wish(self) -> Json:
        self._sent += 1
        action = self.rng.choice(("send_mail", "send_mail", "pair_keys", "late_order"))
        short = action == "late_order" or self.rng.random() < 0.3
        return {
            "action": action,
            "description": f"Number {self._sent} of {self.name}.",
            "details": {"number": self._sent, "to": "bob@example.org"},
            "timeout_seconds": _SHORTEST_S if short else 3600,
            "idempotency_key": f"{self.name}-{self._sent}",
        }

    def _own(self, wanted: Callable[[Card], bool]) -> Card | None:
        return self.book.pick(self.rng, lambda card: card.agent == self.name and wanted(card))

    def _on_own(self, kind: str, path: str, body: Json | None = None) -> None:
        card = self._own(lambda card: card.settled is None)
        if card is None:
            return
        answer = self.ask("GET" if body is None else "POST", f"/confirm/{card.id}{path}", body)
        if answer is not None and answer[0] == 200:
            self.book.told(answer[1], kind, sent=self.sent)
        elif answer is not None and answer[0] == 404:
            self.book.wrong(card, "is no longer known")

    def _redeem(self) -> None:
        def is_mine(card: Card) -> bool:
            approved = card.settled is not None and card.settled[0] == "approved"
            # Occasionally a second time, which must be refused.
            return approved and (not card.grants or self.rng.random() < 0.1)

        card = self._own(is_mine)
        if card is None:
            return
        unsure, card.redeeming = card.redeeming, True
        answer = self.ask("POST", f"/confirm/{card.id}/redeem", {"digest": card.digest})
        if answer is None:
            return
        status, found = answer
        if status == 200:
            self.book.granted(card, found["grant"])
        elif found["error"]["code"] != "already_redeemed" or not (card.grants or unsure):
            self.book.wrong(card, f"could not be redeemed: {found}")


class Approver(Client):
    """A person who decides pending requests; late orders only around their deadline."""

    def turn(self) -> None:
        now = time.time()
        card = self.book.pick(
            self.rng,
            lambda card: (
                card.settled is None
                and (not card.action.startswith("late") or card.expires_at - now < 0.3)
            ),
        )
        if card is None:
            return
        choice = "approve" if self.rng.random() < 0.7 else "deny"
        answer = self.ask("POST", f"/confirm/{card.id}/{choice}", {"digest": card.digest})
        if answer is None:
            return
        status, found = answer
        if status == 200:
            kind = {"approved": "approved", "denied": "denied"}.get(found["status"], "voted")
            self.book.told(found, kind, sent=self.sent, vote=self.name)
        elif status == 404:
            self.book.wrong(card, "is no longer known")
        elif status in (409, 410):
            self.book.answers[f"refused: {found['error']['code']}"] += 1
            self._look(card)

    def _look(self, card: Card) -> None:
        answer = self.ask("GET", f"/confirm/{card.id}")
        if answer is not None and answer[0] == 200:
            self.book.told(answer[1], "looked", sent=self.sent)


class Program:
    """The service as a process, on the same home and ports each time."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port, page = _free_ports()
        self._environ = os.environ | {
            "JOURNEYMAN_HOME": str(home),
            "CONFIRMATION_PORT": str(self.port),
            "JOURNEYMAN_CONFIRM_PAGE_PORT": str(page),
            "CONFIRMATION_RATE_LIMIT": "1000000000",
            "PYTHONUNBUFFERED": "1",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.started_s: list[float] = []

    def start(self) -> None:
        with (self.home / "errors.txt").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "journeyman", "confirm", "serve"],
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environ,
            )

    def wait(self) -> None:
        """Wait until it prints its address."""
        assert self._process is not None
        assert self._process.stdout is not None
        began = time.perf_counter()
        for line in self._process.stdout:
            if re.search(rb"page +http", line):
                self.started_s.append(time.perf_counter() - began)
                return
        raise SystemExit(f"It did not start:\n{(self.home / 'errors.txt').read_text()}")

    def kill(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for an event that is certain to happen, however busy the machine is."""
    until = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {_PATIENCE_S:.0f} s without success for {what}")
        time.sleep(0.01)


def check(home: Path, book: Book) -> None:
    """Compare the recorded responses with the store. Responses that arrive meanwhile are compared
    next time.
    """
    answered = book.copy()
    with closing(sqlite3.connect(f"file:{home / 'journeyman.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT id, body FROM confirmations").fetchall()
        entries = database.execute("SELECT confirmation, kind, count(*) FROM audit GROUP BY 1, 2")
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for id_, kind, count in entries:
            counts[id_][kind] = count
    stored = {id_: _decode(body) for id_, body in rows}
    for card in answered.values():
        if card.id not in stored:
            book.wrong(card, "was acknowledged, but is lost")
        else:
            for problem in _problems(card, stored[card.id], counts[card.id]):
                book.wrong(card, problem)
    asked = Counter((card.requester, card.description) for card in stored.values())
    book.violations += [f"{one} has {count} cards" for one, count in asked.items() if count > 1]
    with Journeyman(home=home) as journeyman:
        verified = journeyman.confirmations.verify_audit()
    if not verified.ok:
        book.violations.append(f"the audit is not valid: {verified.problem}")


def _problems(card: Card, stored: Confirmation, entries: Counter[str]) -> list[str]:
    status = "approved" if stored.status == "redeemed" else stored.status
    settled = (status, stored.settled_by, stored.settled_at)
    votes = {vote.approver for vote in stored.votes}
    late = stored.settled_at is not None and stored.settled_at >= stored.expires_at
    wrong = {
        "its digest changed": stored.digest != card.digest,
        # Times in responses are rounded to microseconds.
        "its deadline moved": abs(stored.expires_at - card.expires_at) > 1e-5,
        f"was settled as {card.settled}, is {settled}": card.settled is not None
        and (card.settled[:2] != settled[:2] or abs(card.settled[2] - (settled[2] or 0)) > 1e-5),
        f"the votes of {card.votes - votes} are lost": not card.votes <= votes,
        "its redemption is lost": bool(card.grants) and stored.status != "redeemed",
        "was approved after its deadline": status == "approved" and late,
        "was not entered once in the audit": entries["submitted"] != 1,
        "was settled more than once": sum(entries[kind] for kind in _SETTLING) > 1,
        "is settled, and the audit does not say so": status != "pending" and not entries[status],
        "was redeemed more than once": entries["redeemed"] > 1,
    }
    return [what for what, is_so in wrong.items() if is_so]


def asked_earlier(home: Path, book: Book, agent: str, *, first_due_s: float) -> None:
    """Create cards before the run with deadlines that pass during it, for ten seconds starting
    `first_due_s` seconds from now: the service accepts no deadline of less than half a minute.
    """
    policy, now = Policy(requester_limit=10**9, rate_limit=10**9), time.time()
    with Journeyman(home=home) as journeyman:
        store = journeyman._store.confirmations  # noqa: SLF001
        for number in range(_EARLIER):
            wish = Submission(
                action="late_order",
                description=f"Number {number} from before.",
                requester=agent,
                timeout_s=_SHORTEST_S,
            )
            at = now - _SHORTEST_S + first_due_s + number / 4
            with store.writing(at) as ledger:
                submit(ledger, policy, wish, prepare(wish, policy))
        for card in store.list():
            book.cards[card.id] = Card(
                id=card.id,
                digest=card.digest,
                action=card.action,
                agent=card.requester,
                expires_at=round(card.expires_at, 6),
            )


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run."""

    kills: int
    while_starting: int
    cards: int
    expired: int
    answers: dict[str, int]
    start_s: float
    violations: list[str]


def run(
    home: Path,
    *,
    kills: int,
    seed: int = 1,
    first_due_s: float = 3.0,
    answered: Collection[str] = (),
    tell: Callable[[str], None] = print,
) -> Result:
    """Kill the service this many times, each time after a response of every kind in `answered`, and
    check it each time.
    """
    rng, book = random.Random(seed), Book()
    (home / "confirm.toml").write_text(_POLICY)
    program = Program(home)
    clients: list[Client] = []
    with Journeyman(home=home) as journeyman:
        for kind, count in ((Agent, AGENTS), (Approver, APPROVERS)):
            for number in range(count):
                name, add = f"{kind.__name__.lower()}{number}", journeyman.confirmations
                made = add.add_agent(name) if kind is Agent else add.add_approver(name)
                clients.append(kind(name, made[1], program.port, book, seed=seed))
    asked_earlier(home, book, clients[0].name, first_due_s=first_due_s)
    for client in clients:
        client.start()
    while_starting = 0
    for number in range(1, kills + 1):
        program.start()
        if number % 8 == 0:
            # During startup, where a kill must not cause harm either.
            time.sleep(rng.uniform(0.3, 2))
            while_starting += 1
        else:
            program.wait()
            book.wait_for(answered)
            time.sleep(rng.uniform(0.05, 0.7))
            check(home, book)
        program.kill()
        if number % 20 == 0:
            tell(f"{number} kills, {len(book.cards):,} cards, {len(book.violations)} violations")
    return _ended(program, clients, book, kills, while_starting)


def _ended(
    program: Program, clients: list[Client], book: Book, kills: int, while_starting: int
) -> Result:
    """Start once more, and check that everything is stored and that deadlines were kept."""
    program.start()
    program.wait()
    started = time.time()
    book.wait_for()
    for client in clients:
        client.join()
    check(program.home, book)
    with Journeyman(home=program.home) as journeyman:

        def late() -> list[str]:
            waiting = journeyman.confirmations.list(status="pending", limit=None)
            return [card.id for card in waiting if card.expires_at < started]

        try:
            wait_until(lambda: not late(), "the end of what is past its deadline")
        except TimeoutError:
            book.violations += [f"{card} is still pending after its deadline" for card in late()]
        stored = journeyman.confirmations.list(limit=None)
    program.kill()
    return Result(
        kills=kills,
        while_starting=while_starting,
        cards=len(book.cards),
        expired=sum(card.status == "expired" for card in stored),
        answers=dict(sorted(book.answers.items())),
        start_s=statistics.median(program.started_s),
        violations=book.violations,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), kills=asked.kills, seed=asked.seed)
    print(
        f"{result.kills} kills, {result.while_starting} of them during startup, in "
        f"{time.perf_counter() - began:.0f} s; a start took {result.start_s:.1f} s (median)\n"
        f"{result.cards:,} cards known to the clients, {result.expired:,} expired\n"
        "answers: " + ", ".join(f"{count:,} {kind}" for kind, count in result.answers.items())
    )
    for violation in result.violations[:20]:
        print(violation)
    print(f"violations: {len(result.violations)}")
    sys.exit(bool(result.violations))


if __name__ == "__main__":
    main()
