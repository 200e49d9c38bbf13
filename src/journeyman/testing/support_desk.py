"""The customer-service agent of the sample corpus: its tools over a real SQLite database, and the
conversations it has. Tools answer in JSON; what goes wrong is an object with an `error`.
"""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from journeyman.testing.moves import act
from journeyman.testing.sample_data import GOODS, pick
from journeyman.testing.script import Ask, Result, Script, Step, UserSays

_SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, address TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, item TEXT, cents INTEGER,
                     ordered_on TEXT, status TEXT);
CREATE TABLE refunds (order_id INTEGER PRIMARY KEY, cents INTEGER, reason TEXT);
"""
_NAMES = ("Ada", "Bo", "Cleo", "Dee", "Eli", "Fay", "Gus", "Hal")
_STATUSES = ("delivered", "delivered", "returned", "shipped", "processing")

Answer = dict[str, Any]


class ShopError(Exception):
    """What a tool cannot do, told to the agent."""


class SupportDesk:
    """A shop's database and the tools that may touch it."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._database.row_factory = sqlite3.Row
        self._database.executescript(_SCHEMA)
        self._fill()
        self._tools: dict[str, Callable[..., Answer]] = {
            "find_customer": self.find_customer,
            "list_orders": self.list_orders,
            "get_order": self.get_order,
            "refund_order": self.refund_order,
            "cancel_order": self.cancel_order,
            "update_address": self.update_address,
        }

    def close(self) -> None:
        self._database.close()

    def perform(self, ask: Ask) -> Result:
        """Execute one call."""
        tool = self._tools.get(ask.tool)
        if tool is None:
            return Result(kind="unknown_tool", text=_error(f"There is no tool {ask.tool}."))
        try:
            return Result(kind="ok", text=json.dumps(tool(**ask.arguments), indent=1))
        except ShopError as error:
            return Result(kind="tool_error", text=_error(str(error)))
        except TypeError:
            given = ", ".join(ask.arguments)
            return Result(kind="bad_arguments", text=_error(f"Unexpected arguments: {given}."))

    def find_customer(self, email: str) -> Answer:
        return self._one("SELECT * FROM customers WHERE email = ?", email, f"customer {email}")

    def list_orders(self, customer_id: int) -> Answer:
        query = "SELECT * FROM orders WHERE customer_id = ? ORDER BY id"
        return {"orders": [dict(row) for row in self._database.execute(query, (customer_id,))]}

    def get_order(self, order_id: int) -> Answer:
        return self._one("SELECT * FROM orders WHERE id = ?", order_id, f"order {order_id}")

    def refund_order(self, order_id: int, reason: str) -> Answer:
        order = self.get_order(order_id)
        if order["status"] not in ("delivered", "returned"):
            raise ShopError(f"Order {order_id} is {order['status']} and cannot be refunded.")
        try:
            self._database.execute(
                "INSERT INTO refunds VALUES (?, ?, ?)", (order_id, order["cents"], reason)
            )
        except sqlite3.IntegrityError:
            raise ShopError(f"Order {order_id} was refunded already.") from None
        self._set_status(order_id, "refunded")
        return {"order_id": order_id, "refunded_cents": order["cents"], "reason": reason}

    def cancel_order(self, order_id: int) -> Answer:
        order = self.get_order(order_id)
        if order["status"] != "processing":
            raise ShopError(f"Order {order_id} is {order['status']} and cannot be cancelled.")
        self._set_status(order_id, "cancelled")
        return {"order_id": order_id, "status": "cancelled"}

    def update_address(self, customer_id: int, address: str) -> Answer:
        change = "UPDATE customers SET address = ? WHERE id = ?"
        if not self._database.execute(change, (address, customer_id)).rowcount:
            raise ShopError(f"There is no customer {customer_id}.")
        return {"customer_id": customer_id, "address": address}

    def _set_status(self, order_id: int, status: str) -> None:
        self._database.execute("UPDATE orders SET status = ? WHERE id = ?", (status, order_id))

    def _one(self, query: str, key: object, what: str) -> Answer:
        row = self._database.execute(query, (key,)).fetchone()
        if row is None:
            raise ShopError(f"There is no {what}.")
        return dict(row)

    def _fill(self) -> None:
        for number, name in enumerate(_NAMES, 1):
            email = f"{name.lower()}@example.com"
            address = f"{number} Harbour Road"
            person = (number, name, email, address)
            self._database.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", person)
            for place in range(6):
                order = number * 100 + place
                good = GOODS[pick(f"desk {order}", len(GOODS))]
                cents = 1900 + 350 * GOODS.index(good)
                day = f"2026-09-{3 + 4 * place:02d}"
                status = _STATUSES[order % len(_STATUSES)]
                row = (order, number, good, cents, day, status)
                self._database.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", row)


def _error(text: str) -> str:
    return json.dumps({"error": text})


def _call(tool: str, **arguments: Any) -> Ask:
    return Ask(tool=tool, arguments=arguments)


def _greet(name: str, wish: str) -> list[Step]:
    email = f"{name}@example.com"
    return [
        UserSays(text=f"Hi, {wish} My address with you is {email}."),
        act("", _call("find_customer", email=email)),
    ]


def support_scripts() -> list[Script]:
    """Five conversations: three that end well, two that do not."""
    return [_refund(), _cancel_too_late(), _move(), _two_orders(), _wrong_refund()]


def _script(name: str, title: str, reward: float, *steps: Step) -> Script:
    return Script(name=f"chat {name}", project="support", title=title, steps=steps, reward=reward)


def _refund() -> Script:
    return _script(
        "refund",
        "Refund for a broken radio",
        1.0,
        *_greet("ada", "order 100 arrived broken and I want my money back."),
        act("", _call("list_orders", customer_id=1)),
        act("", _call("get_order", order_id=100)),
        act("", _call("refund_order", order_id=100, reason="arrived broken")),
        act("I am sorry about that. The full price of order 100 is on its way back to you."),
        UserSays(text="Great, thanks!"),
        act("You are welcome."),
    )


def _cancel_too_late() -> Script:
    return _script(
        "cancel",
        "An order that had left already",
        1.0,
        *_greet("bo", "please cancel order 203."),
        act("", _call("cancel_order", order_id=203)),
        act("", _call("get_order", order_id=203)),
        act("Order 203 has left the warehouse, so I cannot cancel it. You can send it back."),
        UserSays(text="Then cancel 204 instead."),
        act("", _call("cancel_order", order_id=204)),
        act("Order 204 is cancelled."),
    )


def _move() -> Script:
    return _script(
        "move",
        "A new address",
        1.0,
        *_greet("cleo", "I moved to 9 Mill Lane."),
        act("", _call("update_address", customer="cleo@example.com", address="9 Mill Lane")),
        act("", _call("update_address", customer_id=3, address="9 Mill Lane")),
        act("", _call("find_customer", email="cleo@example.com")),
        act("Done: we ship to 9 Mill Lane from now on."),
    )


def _two_orders() -> Script:
    broken = Ask(tool="refund_order", arguments={}, malformed='{"order_id": 402, "reason": "bac')
    return _script(
        "two orders",
        "Two returns, one of them forgotten",
        0.0,
        *_greet("dee", "I sent back 402 and 401 and saw no money yet."),
        act("", _call("list_orders", customer_id=4)),
        act("", broken),
        act("", _call("refund_order", order_id=402, reason="returned")),
        act("Both orders are refunded."),
    )


def _wrong_refund() -> Script:
    return _script(
        "wrong refund",
        "Money for the wrong order",
        0.0,
        *_greet("eli", "the lamp from last week never came."),
        act("", _call("list_orders", customer_id=5), _call("find_order", item="lamp")),
        act("", _call("refund_order", order_id=503, reason="not delivered")),
        act("", _call("refund_order", order_id=500, reason="not delivered")),
        act("I have refunded your order. Sorry for the wait!"),
    )
