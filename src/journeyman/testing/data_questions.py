"""Errands with data: questions to the shop's log and orders, and to the stock database."""

from msgspec import Struct

from journeyman.testing.moves import act, at, misspelt, py, read, sh, write, wrong_path
from journeyman.testing.script import Ask, Step, UserSays


class LogQuestion(Struct, frozen=True, kw_only=True):
    """A question, the script that answers it and what stands wrongly in its first version."""

    ask: str
    name: str
    code: str
    right: str
    wrong: str


_REQUESTS = 'rows = [line.split(" ") for line in open("access.log").read().splitlines()]\n'
_ORDERS = 'import csv\n\nrows = list(csv.DictReader(open("orders.csv")))\n'

LOG_QUESTIONS: dict[str, LogQuestion] = {
    "revenue": LogQuestion(
        ask="How much did each region bring in last quarter? Paid orders only.",
        name="revenue",
        code=_ORDERS
        + "totals = {}\nfor row in rows:\n"
        + '    if row["status"] == "paid" and row["amount_cents"]:\n'
        + '        region = row["region"]\n'
        + '        totals[region] = totals.get(region, 0) + int(row["amount_cents"])\n'
        + "for region, cents in sorted(totals.items()):\n"
        + '    print(f"{region:6} {cents / 100:10.2f}")\n',
        right='    if row["status"] == "paid" and row["amount_cents"]:\n',
        wrong='    if row["status"] == "paid":\n',
    ),
    "returns": LogQuestion(
        ask="Which products come back most often?",
        name="returns",
        code=_ORDERS
        + "sold, back = {}, {}\nfor row in rows:\n"
        + '    name = row["product"]\n'
        + "    sold[name] = sold.get(name, 0) + 1\n"
        + '    back[name] = back.get(name, 0) + (row["status"] == "returned")\n'
        + "for name in sorted(sold, key=lambda name: (-back[name] / sold[name], name)):\n"
        + '    print(f"{name:8} {back[name]:3} of {sold[name]:3}")\n',
        right='    name = row["product"]\n',
        wrong='    name = row["item"]\n',
    ),
    "bad hour": LogQuestion(
        ask="When on 5 October did requests fail, and which path?",
        name="bad_hour",
        code=_REQUESTS
        + "failed = {}\nfor when, _, path, status, *_ in rows:\n"
        + "    if int(status) >= 500:\n"
        + "        failed.setdefault((when[11:13], path), []).append(when)\n"
        + "for (hour, path), times in sorted(failed.items()):\n"
        + '    print(f"{hour}h {path:12} {len(times):3}  first {times[0]}  last {times[-1]}")\n',
        right="for when, _, path, status, *_ in rows:\n",
        wrong="for when, path, status, *_ in rows:\n",
    ),
    "slow search": LogQuestion(
        ask="How slow is search, compared with the other pages?",
        name="slow_search",
        code=_REQUESTS
        + "times = {}\nfor row in rows:\n"
        + "    times.setdefault(row[2], []).append(int(row[4]))\n"
        + "for path, values in sorted(times.items()):\n"
        + "    values.sort()\n"
        + "    middle, high = values[len(values) // 2], values[int(0.95 * (len(values) - 1))]\n"
        + '    print(f"{path:18} median {middle:5} ms  p95 {high:5} ms  n {len(values)}")\n',
        right="    times.setdefault(row[2], []).append(int(row[4]))\n",
        wrong="    times.setdefault(row[2], []).append(int(row[7]))\n",
    ),
    "visitors": LogQuestion(
        ask="Do a few visitors make most of the requests?",
        name="visitors",
        code=_REQUESTS
        + "counts = {}\nfor row in rows:\n"
        + "    counts[row[6]] = counts.get(row[6], 0) + 1\n"
        + "ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))\n"
        + "share = 100 * sum(count for _, count in ordered[:9]) / len(rows)\n"
        + 'print(f"{len(counts)} visitors; the top tenth makes {share:.1f} % of requests")\n'
        + "for name, count in ordered[:25]:\n"
        + '    print(f"{name} {count}")\n',
        right="share = 100 * sum(count for _, count in ordered[:9]) / len(rows)\n",
        wrong="share = 100 * sum(ordered[:9]) / len(rows)\n",
    ),
}


def ask_log(key: str, *slips: str) -> list[Step]:
    """Answer a question from the log with a small script. Slips: path, wrong, typo, inline."""
    question = LOG_QUESTIONS[key]
    tool = at("weblog", f"tools/{question.name}.py")
    run = f"python3 tools/{question.name}.py"
    wrong = "wrong" in slips
    first = question.code.replace(question.right, question.wrong) if wrong else question.code
    data = "orders.csv" if "orders.csv" in question.code else "access.log"
    steps: list[Step] = [
        UserSays(text=f"{question.ask} Put the answer under answers/ as well."),
        act("", sh("cat README.md tools/summary.py; ls . answers tools")),
    ]
    if "path" in slips:
        steps += wrong_path("weblog", "tools/summary.py")
    steps.append(
        act(
            "",
            sh(f"head -n 120 {data}"),
            thought=f"The answer has to come from {data}. I want to see real lines before I write "
            "anything that parses them: separators, missing values, odd rows.",
        )
    )
    if data == "access.log" and "wrong" not in slips:
        steps.append(act("The overall picture.", sh("python3 tools/summary.py access.log")))
    if "inline" in slips:
        steps.append(act("A few lines of Python are enough.", py(question.code)))
    else:
        steps.append(act("A small script, so that it can be run again.", write(tool, first)))
        steps += misspelt(run) if "typo" in slips else [act("", sh(run))]
    if wrong:
        steps += _repair(question, tool, run)
    return steps + _answer_log(question)


def _repair(question: LogQuestion, tool: str, run: str) -> list[Step]:
    edits = {"path": tool, "old": question.wrong, "new": question.right}
    return [
        act(
            "The data is not what I took it for. Correcting the script.",
            Ask(tool="edit", arguments=edits),
            thought="The traceback points at the line. The extract has rows that do not look like "
            "the first ones, so this must be handled and not ignored.",
        ),
        act("", sh(run)),
    ]


def _answer_log(question: LogQuestion) -> list[Step]:
    page = at("weblog", f"answers/2026-10-{question.name.replace('_', '-')}.md")
    body = f"# {question.ask}\n\nSee `tools/{question.name}.py`; figures from the extract only.\n"
    return [
        act("", write(page, body)),
        act("", sh(f"cat answers/2026-10-{question.name.replace('_', '-')}.md; ls answers")),
        act(
            f"The figures are above; the page is `{page}`. They come from the extract, so read "
            "them as shares rather than as totals."
        ),
    ]


class StockQuestion(Struct, frozen=True, kw_only=True):
    """A question, the SQL that answers it and a statement that does not run."""

    ask: str
    sql: str
    wrong: str
    check: str


STOCK_QUESTIONS: dict[str, StockQuestion] = {
    "reorder": StockQuestion(
        ask="What do we have to reorder in Graz?",
        sql="SELECT p.sku, p.name, s.on_hand, p.reorder_level FROM stock s JOIN products p ON "
        "p.id = s.product_id JOIN warehouses w ON w.id = s.warehouse_id WHERE w.city = 'Graz' "
        "AND s.on_hand < p.reorder_level ORDER BY s.on_hand, p.sku",
        wrong="SELECT sku, name, quantity FROM stock WHERE city = 'Graz' AND quantity < 5",
        check="SELECT w.city, COUNT(*) AS products, SUM(s.on_hand) AS pieces FROM stock s JOIN "
        "warehouses w ON w.id = s.warehouse_id GROUP BY w.city ORDER BY w.city",
    ),
    "value": StockQuestion(
        ask="What is the stock worth, by category?",
        sql="SELECT p.category, SUM(s.on_hand) AS pieces, SUM(s.on_hand * p.price_cents) / 100 AS "
        "value FROM stock s JOIN products p ON p.id = s.product_id GROUP BY p.category ORDER BY "
        "value DESC",
        wrong="SELECT category, SUM(on_hand * price) FROM stocks GROUP BY category",
        check="SELECT category, COUNT(*) AS products, MIN(price_cents) AS low, MAX(price_cents) AS "
        "high FROM products GROUP BY category ORDER BY category",
    ),
    "losses": StockQuestion(
        ask="Where do we lose the most pieces, and what?",
        sql="SELECT w.city, p.name, -SUM(m.delta) AS lost FROM movements m JOIN products p ON p.id "
        "= m.product_id JOIN warehouses w ON w.id = m.warehouse_id WHERE m.reason = 'loss' GROUP "
        "BY w.city, p.name ORDER BY lost DESC, w.city, p.name LIMIT 30",
        wrong="SELECT warehouse, product, SUM(delta) FORM movements WHERE reason = 'loss'",
        check="SELECT reason, COUNT(*) AS bookings, SUM(delta) AS pieces FROM movements GROUP BY "
        "reason ORDER BY reason",
    ),
    "sellers": StockQuestion(
        ask="Which products sold best in August?",
        sql="SELECT p.sku, p.name, -SUM(m.delta) AS sold FROM movements m JOIN products p ON p.id "
        "= m.product_id WHERE m.reason = 'sale' AND m.moved_on LIKE '2026-08-%' GROUP BY p.id "
        "ORDER BY sold DESC, p.sku LIMIT 40",
        wrong="SELECT product_id, SUM(delta) FROM movements WHERE date LIKE '2026-08-%'",
        check="SELECT substr(moved_on, 1, 7) AS month, COUNT(*) AS bookings FROM movements GROUP "
        "BY month ORDER BY month",
    ),
}


def ask_stock(key: str, *slips: str) -> list[Step]:
    """Answer a question from the stock database. Slips: wrong, typo."""
    question = STOCK_QUESTIONS[key]
    steps: list[Step] = [UserSays(text=f"{question.ask} A table is enough.")]
    if "wrong" in slips:
        steps.append(act("Asking the database.", _query(question.wrong)))
    steps += [
        act(
            "I need the schema to ask this properly.",
            read(at("stock", "schema.sql")),
            thought="Guessing column names is a waste of calls. The schema is one file away, and "
            "the README says what positive and negative deltas mean.",
        ),
        act("", sh("cat README.md; ls . reports tools")),
        act("A quick overview, to know the order of magnitude.", _query(question.check)),
    ]
    command = _query(question.sql)
    if "typo" in slips:
        steps += misspelt(str(command.arguments["command"]))
    else:
        steps.append(act("Now the question itself.", command))
    report = at("stock", f"reports/2026-10-{key}.md")
    body = f"# {question.ask}\n\n```sql\n{question.sql}\n```\n"
    return [
        *steps,
        act("Keeping the query with the reports.", write(report, body)),
        act("", sh("cat schema.sql tools/query.py reports/*.md")),
        act(f"The table is above, and the query is kept in `reports/2026-10-{key}.md`."),
    ]


def _query(sql: str) -> Ask:
    return sh(f'python3 tools/query.py "{sql}"')
