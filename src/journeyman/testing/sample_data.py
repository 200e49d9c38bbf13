"""The projects that scripted agents work on: texts from `projects/`, and data made by rule.

Everything is a function of fixed seeds, so every build on every machine has the same bytes,
except for the SQLite file, whose rows are the same.
"""

import hashlib
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from journeyman.testing.bugs import BUGS

_TEXTS = Path(__file__).parent / "projects"
_FILE_MARK = re.compile(r"^==> (.+) <==\n", re.MULTILINE)

PATHS = ("/", "/search", "/products", "/products/images", "/basket", "/checkout", "/orders")
REGIONS = ("north", "south", "east", "west")
GOODS = ("lamp", "kettle", "chair", "clock", "blanket", "desk", "mirror", "radio", "shelf", "vase")
CITIES = ("Utrecht", "Graz", "Lyon")
TOPICS = ("hydration", "sensor drift", "cold start", "yeast", "lighting", "soil moisture")


def pick(key: str, limit: int) -> int:
    """A number from 0 up to, but without, the limit: random to look at, fixed by the key."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % limit


def project_files(bugs: Sequence[str] = ()) -> dict[str, bytes]:
    """All projects, by path below the work folder, with some bugs put in."""
    texts = dict(_sound_projects())
    for name in bugs:
        bug = BUGS[name]
        path = f"invoicer/invoicer/{bug.module}.py"
        if texts[path].count(bug.good) != 1:
            raise ValueError(f"the bug {name} does not fit {path}")
        texts[path] = texts[path].replace(bug.good, bug.bad)
    return {path: text.encode() for path, text in texts.items()}


@cache
def _sound_projects() -> dict[str, str]:
    texts = {
        f"{bundle.stem}/{path}": text
        for bundle in sorted(_TEXTS.glob("*.txt"))
        for path, text in _unbundle(bundle.read_text("utf-8"))
    }
    made = {"weblog/access.log": access_log(), "weblog/orders.csv": orders()}
    return texts | made | notes()


def _unbundle(text: str) -> list[tuple[str, str]]:
    parts = _FILE_MARK.split(text)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def access_log() -> str:
    """A day of requests: busier in the evening, slow searches, a bad half hour at checkout."""
    rows = []
    for number in range(600):
        second = number * 86400 // 600 + pick(f"second {number}", 120)
        path = PATHS[pick(f"path {number}", len(PATHS))]
        method = "POST" if path in ("/basket", "/checkout") else "GET"
        bad = path == "/checkout" and 50400 <= second < 57600
        status = 502 if bad else (404 if pick(f"status {number}", 23) == 0 else 200)
        slowness = {"/search": 420, "/checkout": 260, "/products/images": 40}.get(path, 90)
        millis = slowness + pick(f"millis {number}", slowness) + (2500 if bad else 0)
        size = 400 + pick(f"size {number}", 60000)
        visitor = f"v{pick(f'visitor {number}', 90):03d}"
        rows.append(f"{_clock(second)} {method} {path} {status} {millis} {size} {visitor}")
    return "\n".join(rows) + "\n"


def _clock(second: int) -> str:
    return f"2026-10-05T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def orders() -> str:
    """Orders of a quarter, some returned, some cancelled, two with a missing amount."""
    rows = ["order_id,ordered_on,region,product,quantity,amount_cents,status"]
    for number in range(240):
        day = f"2026-{7 + number // 80:02d}-{1 + pick(f'day {number}', 28):02d}"
        good = GOODS[pick(f"good {number}", len(GOODS))]
        quantity = 1 + pick(f"quantity {number}", 4)
        amount = quantity * (1900 + 350 * GOODS.index(good))
        status = ("paid", "paid", "paid", "paid", "returned", "cancelled")[pick(f"st {number}", 6)]
        shown = "" if number in (57, 171) else str(amount)
        region = REGIONS[pick(f"region {number}", len(REGIONS))]
        rows.append(f"O{10400 + number},{day},{region},{good},{quantity},{shown},{status}")
    return "\n".join(rows) + "\n"


def notes() -> dict[str, str]:
    """Lab notes of a small greenhouse and bakery, five for each topic."""
    made = {}
    for number in range(30):
        topic = TOPICS[number % len(TOPICS)]
        day = f"2026-{6 + number // 10:02d}-{2 + 2 * (number % 10):02d}"
        slug = topic.replace(" ", "-")
        made[f"notes/log/{day}-{slug}.md"] = _note(number, day, topic)
    made["notes/README.md"] = (
        "# notes\n\nLab notes in `log/`, one file a day, newest last. Summaries go to `summaries/`."
        "\nEvery note has a `result:` line with a number; lower is better unless it says so.\n"
    )
    return made


def _note(number: int, day: str, topic: str) -> str:
    other = TOPICS[(number + 2) % len(TOPICS)]
    value = 20 + pick(f"value {number}", 600) / 10
    lines = [f"# {day} {topic}", "", f"result: {value:.1f} ({topic}, run {number + 1})", ""]
    lines += [
        f"Question: does {topic} explain the spread we saw last week? We kept {other} as it was.",
        "",
        "| time  | reading | temperature | remark |",
        "| ----- | ------- | ----------- | ------ |",
    ]
    remarks = ("steady", "door open", "probe moved", "steady", "steady", "recalibrated")
    for step in range(120):
        reading = value + (pick(f"reading {number} {step}", 80) - 40) / 10
        degrees = 17 + pick(f"degrees {number} {step}", 90) / 10
        remark = remarks[pick(f"remark {number} {step}", len(remarks))]
        time = f"{8 + step // 12:02d}:{step % 12 * 5:02d}"
        lines.append(f"| {time} | {reading:7.1f} | {degrees:11.1f} | {remark} |")
    lines += [
        "",
        f"The readings drift by less than {1 + pick(f'drift {number}', 5)} over the day.",
        f"Next: repeat with {other} changed, everything else equal.",
        "TODO: enter the temperatures into the sheet." if number % 4 == 0 else "Sheet is done.",
    ]
    return "\n".join(lines) + "\n"


def stock_database() -> bytes:
    """The stock project's SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stock.db"
        connection = sqlite3.connect(file)
        schema = dict(_unbundle((_TEXTS / "stock.txt").read_text("utf-8")))["schema.sql"]
        connection.executescript(schema)
        _fill_stock(connection)
        connection.commit()
        connection.close()
        return file.read_bytes()


def _fill_stock(connection: sqlite3.Connection) -> None:
    products = [
        (n + 1, f"SKU-{1000 + n}", f"{colour} {good}", good, 1900 + 350 * (n % 10), 5 + n % 7)
        for n, (good, colour) in enumerate(
            (good, colour) for colour in ("plain", "blue", "oak", "brass") for good in GOODS
        )
    ]
    connection.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", products)
    connection.executemany("INSERT INTO warehouses VALUES (?, ?)", list(enumerate(CITIES, 1)))
    stock = [(p[0], w, pick(f"stock {p[0]} {w}", 40)) for p in products for w in (1, 2, 3)]
    connection.executemany("INSERT INTO stock VALUES (?, ?, ?)", stock)
    reasons = ("sale", "sale", "sale", "delivery", "return", "loss")
    for number in range(400):
        reason = reasons[pick(f"reason {number}", len(reasons))]
        amount = 1 + pick(f"amount {number}", 9)
        delta = amount if reason in ("delivery", "return") else -amount
        day = f"2026-{7 + number // 134:02d}-{1 + pick(f'moved {number}', 28):02d}"
        place = 1 + pick(f"place {number}", 3)
        what = 1 + pick(f"what {number}", len(products))
        connection.execute(
            "INSERT INTO movements VALUES (?, ?, ?, ?, ?, ?)",
            (number + 1, what, place, day, delta, reason),
        )
