"""The confirmation service under load: submissions per second compared with a plain server, and the
latency of decisions for waiting agents.

    python benchmarks/confirm_load.py [--clients 64] [--rounds 3] [--seconds 4] [--waiters 1000]

Ours is the real program: it checks tokens, computes digests, chains the audit, writes notices, and
commits each request. The plain server does none of that: same
framework and settings, same body, one table, and a commit per request on the event loop. Both
respond only after data is on disk, and take turns, because a machine's speed varies. Then agents
wait, each for its own decision, while people decide at a steady pace; finally all of them wait for
the same one. The ratio of ours to the plain server's rate is printed last.
"""

import argparse
import asyncio
import os
import re
import resource
import secrets
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import msgspec
import uvicorn
from litestar import Litestar, post

from journeyman import Journeyman
from journeyman.confirm.schemas import NewConfirmation

_AGENTS = 8
_APPROVERS = 8
_WARM_S = 0.5
_WAIT_S = 30
_NO_LIMIT = "1000000000"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Line(asyncio.Protocol):
    """A client connection: one request, its response, then the next."""

    def __init__(self) -> None:
        self._got = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def to(cls, port: int) -> "Line":
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, "127.0.0.1", port))[1]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; return its status and body after all of it has arrived."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if found and length and len(body) >= int(length[1]) and self._answer is not None:
            self._got = b""
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("the server hung up"))

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


class Card(msgspec.Struct, frozen=True):
    """The parts of a card that a client needs."""

    id: str
    digest: str = ""
    status: str = ""


def request(method: str, path: str, port: int, secret: str, body: object = None) -> bytes:
    content = b"" if body is None else msgspec.json.encode(body)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def wish(client: int, number: int) -> dict[str, object]:
    """A typical request of an agent, different from every other."""
    return {
        "action": f"send_mail_{client}",
        "description": f"Tell customer {number} that the order has been sent.",
        "details": {
            "to": f"customer{number}@example.org",
            "subject": f"Order {client}-{number}",
            "body": "Dear customer, your order is on its way and arrives on Thursday.",
            "copies": 1,
            "tags": ["orders", "shipping"],
        },
        "session_key": f"session-{client}",
        "timeout_seconds": 3600,
    }


# The two servers


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The response of the plain server."""

    id: str
    status: str
    created_at: datetime
    expires_at: datetime


def serve_plainly(home: Path) -> None:
    """Run the plain server: it validates, inserts and commits a request, nothing else."""
    database = sqlite3.connect(home / "plain.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute(
        "CREATE TABLE confirmations (id TEXT PRIMARY KEY, action TEXT, description TEXT,"
        " details TEXT, session_key TEXT, status TEXT, created_at TEXT, expires_at TEXT)"
    )

    @post("/confirm", status_code=202)
    async def submit(data: NewConfirmation) -> Kept:
        id_, now = secrets.token_hex(16), datetime.now(UTC)
        ends = now + timedelta(seconds=data.timeout_s)
        asked = (data.action, data.description, msgspec.json.encode(data.details))
        row = (id_, *asked, data.session_key, "pending", now.isoformat(), ends.isoformat())
        database.execute("INSERT INTO confirmations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return Kept(id=id_, status="pending", created_at=now, expires_at=ends)

    taken = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{taken.getsockname()[1]}", flush=True)
    # The same settings as our server.
    config = uvicorn.Config(
        Litestar(route_handlers=[submit], openapi_config=None, logging_config=None),
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    asyncio.run(uvicorn.Server(config).serve(sockets=[taken]))


@contextmanager
def running(home: Path, *arguments: str) -> Iterator[int]:
    """Run a server in a separate process; yield the port that it prints."""
    environ = os.environ | {
        "JOURNEYMAN_HOME": str(home),
        "CONFIRMATION_PORT": str(_free_port()),
        "JOURNEYMAN_CONFIRM_PAGE_PORT": str(_free_port()),
        "CONFIRMATION_RATE_LIMIT": _NO_LIMIT,
        "PYTHONUNBUFFERED": "1",
    }
    with (home / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=errors, env=environ
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                    yield int(found[1])
                    break
            else:
                raise SystemExit(f"it did not start: {(home / 'errors.txt').read_text()}")
        finally:
            process.terminate()
            process.communicate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


# Measurements


async def submissions(port: int, tokens: list[str], clients: int, seconds: float) -> float:
    """Acknowledged submissions per second."""
    lines = [await Line.to(port) for _ in range(clients)]
    begins = time.perf_counter() + _WARM_S
    ends = begins + seconds

    async def submit_on(client: int, line: Line) -> int:
        count, number = 0, secrets.randbits(40)
        while (now := time.perf_counter()) < ends:
            number += 1
            token = tokens[client % len(tokens)]
            asked = request("POST", "/confirm", port, token, wish(client, number))
            status, body = await line.ask(asked)
            if status != 202:
                raise SystemExit(f"a submission was answered {status}: {body.decode()}")
            count += begins <= now
        return count

    done = await asyncio.gather(*(submit_on(*one) for one in enumerate(lines)))
    for line in lines:
        line.close()
    return sum(done) / seconds


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """Our server and its credentials."""

    port: int
    tokens: list[str]
    keys: list[str]


async def submitted(ours: Ours, count: int) -> list[Card]:
    """Submit new cards."""
    line = await Line.to(ours.port)
    first = secrets.randbits(40)
    cards = []
    for number in range(first, first + count):
        asked = request("POST", "/confirm", ours.port, ours.tokens[0], wish(0, number))
        cards.append(msgspec.json.decode((await line.ask(asked))[1], type=Card))
    line.close()
    return cards


class Waiters:
    """Agents that wait, each on its own connection, and when each of them got the decision."""

    def __init__(self, ours: Ours) -> None:
        self._port = ours.port
        self._token = ours.tokens[0]
        self._tasks: list[asyncio.Task[float]] = []

    async def begin(self, cards: list[Card]) -> None:
        for card in cards:
            asked = f"/confirm/{card.id}?wait={_WAIT_S}"
            line = await Line.to(self._port)
            text = request("GET", asked, self._port, self._token)
            self._tasks.append(asyncio.create_task(self._wait(line, text)))
        await asyncio.sleep(2)  # until all of them really wait

    async def _wait(self, line: Line, text: bytes) -> float:
        status, body = await line.ask(text)
        now = time.perf_counter()
        if status != 200 or msgspec.json.decode(body, type=Card).status not in _DECIDED:
            raise SystemExit(f"who waited was answered {status}: {body.decode()}")
        line.close()
        return now

    async def ended(self) -> list[float]:
        return await asyncio.gather(*self._tasks)


_DECIDED = ("approved", "denied")


async def decided(ours: Ours, cards: list[Card], pace: float) -> list[float]:
    """Make `pace` decisions per second; return when each one was sent."""
    lines = [await Line.to(ours.port) for _ in ours.keys]
    free = asyncio.Queue[tuple[Line, str]]()
    for one in zip(lines, ours.keys, strict=True):
        free.put_nowait(one)
    began = time.perf_counter()

    async def decide(number: int, card: Card) -> float:
        await asyncio.sleep(began + number / pace - time.perf_counter())
        line, key = await free.get()
        path = f"/confirm/{card.id}/{'deny' if number % 4 == 3 else 'approve'}"
        text = request("POST", path, ours.port, key, {"digest": card.digest})
        sent = time.perf_counter()
        status, body = await line.ask(text)
        if status != 200:
            raise SystemExit(f"a decision was answered {status}: {body.decode()}")
        free.put_nowait((line, key))
        return sent

    found = await asyncio.gather(*(decide(*one) for one in enumerate(cards)))
    for line in lines:
        line.close()
    return found


async def waits(ours: Ours, *, cards: int, waiters: int, pace: float) -> list[float]:
    """Seconds between sending a decision and its arrival at a waiter, in order."""
    made = await submitted(ours, cards)
    waiting = Waiters(ours)
    each = [made[number % cards] for number in range(waiters)]
    await waiting.begin(each)
    sent = dict(zip(made, await decided(ours, made, pace), strict=True))
    known = await waiting.ended()
    return sorted(known[number] - sent[card] for number, card in enumerate(each))


# Output


def told(name: str, seconds: list[float]) -> None:
    at = [1000 * seconds[min(len(seconds) - 1, int(share * len(seconds)))] for share in _SHARES]
    print(f"{name}: median {at[0]:.1f} ms, 99th percentile {at[1]:.1f} ms, longest {at[2]:.1f} ms")


_SHARES = (0.5, 0.99, 1)


def machine(home: Path) -> str:
    descriptor = os.open(home / "flushed", os.O_CREAT | os.O_RDWR)
    seconds = []
    for number in range(200):
        os.pwrite(descriptor, bytes(4096), 4096 * number)
        began = time.perf_counter()
        os.fsync(descriptor)
        seconds.append(time.perf_counter() - began)
    os.close(descriptor)
    return f"{os.cpu_count()} cores, fsync {1000 * statistics.median(seconds):.2f} ms"


def durability(home: Path) -> str:
    """How the ledger's own connection writes."""
    with Journeyman(home=home) as journeyman:
        store = journeyman._store  # noqa: SLF001
        with store.confirmations.writing(time.time()) as ledger:
            ask = ledger._connection.exec_driver_sql  # noqa: SLF001
            mode, level = (ask(f"PRAGMA {one}").scalar() for one in ("journal_mode", "synchronous"))
    return f"journal_mode={mode}, synchronous={level}"


def rounds(home: Path, ours: Ours, asked: argparse.Namespace) -> float:
    """Run both servers in turn; return the ratio of the medians."""
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    with running(home, __file__, "--serve-plainly", str(home)) as plain:
        for number in range(asked.rounds):
            for name, port in (("ours", ours.port), ("plain", plain)):
                rate = asyncio.run(submissions(port, ours.tokens, asked.clients, asked.seconds))
                rates[name].append(rate)
                print(f"round {number + 1}, {name:5}: {rate:,.0f} submissions per second")
    medians = {name: statistics.median(found) for name, found in rates.items()}
    print(f"median: ours {medians['ours']:,.0f}, plain {medians['plain']:,.0f}")
    return medians["ours"] / medians["plain"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--waiters", type=int, default=1000)
    parser.add_argument("--pace", type=float, default=150, help="decisions per second")
    parser.add_argument("--serve-plainly", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve_plainly:
        serve_plainly(asked.serve_plainly)
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "confirm.toml").write_text(f"requester_limit = {_NO_LIMIT}\n")
        with Journeyman(home=home) as journeyman:
            add = journeyman.confirmations
            tokens = [add.add_agent(f"agent{number}")[1] for number in range(_AGENTS)]
            keys = [add.add_approver(f"person{number}")[1] for number in range(_APPROVERS)]
        print(f"{machine(home)}; the ledger writes with {durability(home)}")
        with running(home, "-m", "journeyman", "confirm", "serve") as port:
            ours = Ours(port=port, tokens=tokens, keys=keys)
            ratio = rounds(home, ours, asked)
            for name, cards in (("each for its own", asked.waiters), ("all for one", 1)):
                waited = waits(ours, cards=cards, waiters=asked.waiters, pace=asked.pace)
                told(f"{asked.waiters:,} waiters, {name}", asyncio.run(waited))
        print(f"ratio: {ratio:.2f}")


if __name__ == "__main__":
    main()
