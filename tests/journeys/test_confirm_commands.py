"""`journeyman confirm` as agents, scripts and approvers use it, with a real service."""

import hashlib
import json
import re
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.confirm_server import ConfirmServer, bearer, confirm_server, plain_client
from tests.program import Command, Process
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.confirm.client import ConfirmClient
from journeyman.confirm.schemas import Card
from journeyman.records.errors import ConfirmationRefused

POLICY = """
requester_limit = 100000
[[rules]]
action = "pay_*"
tier = "ask"
edits = ["amount"]
[[rules]]
action = "launch_*"
tier = "ask"
quorum = 2
reason = "two keys"
[[rules]]
action = "burn_*"
tier = "forbidden"
"""
HIDDEN = "safe\u202e\x1b[31m\u200b"
ESCAPED = r"safe\u{202e}\u{1b}[31m\u{200b}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("service"), policy=POLICY) as server:
        yield server


class Office:
    """A terminal with the agent's token in its environment. Pass `**as_ann` to run a command with
    the approver's key.
    """

    def __init__(self, command: Command, server: ConfirmServer) -> None:
        self.command = command
        self.server = server
        self.environ = {
            "JOURNEYMAN_HOME": str(server.home),
            "JOURNEYMAN_CONFIRM_POLICY": str(server.home / "policy.toml"),
            "JOURNEYMAN_CONFIRM_URL": server.url,
            "JOURNEYMAN_CONFIRM_TOKEN": server.agent("builder"),
        }
        self.as_ann = {"JOURNEYMAN_CONFIRM_APPROVER_KEY": server.approver("ann")}

    def __call__(
        self, *arguments: object, code: int = 0, typed: str = "", **environ: str
    ) -> CompletedProcess[str]:
        given = self.environ | environ
        return self.command("confirm", *arguments, code=code, typed=typed, **given)

    def json(self, *arguments: object, code: int = 0, **environ: str) -> Any:
        return json.loads(self(*arguments, "--json", code=code, **environ).stdout)

    def asked(self, action: str, description: str, *options: object) -> Any:
        return self.json("request", action, description, *options, "--no-wait")

    def start(self, *arguments: object) -> Process:
        return self.command.start("confirm", *arguments, **self.environ)


@pytest.fixture
def office(tmp_path: Path, server: ConfirmServer) -> Office:
    home = tmp_path / "desk"
    home.mkdir()
    return Office(Command(home), server)


@pytest.fixture(scope="module")
def ann(server: ConfirmServer) -> Iterator[ConfirmClient]:
    with ConfirmClient(server.url, server.approver("ann")) as client:
        yield client


def waiting_card(ann: ConfirmClient, action: str) -> Any:
    return until(
        lambda: next((one for one in ann.list(status="pending") if one.action == action), None)
    )


@contextmanager
def decided(
    ann: ConfirmClient, action: str, decide: Callable[[Card], object]
) -> Iterator[Callable[[], Card]]:
    """Decide in a thread while the block asks; call the value to get the confirmation."""

    def work() -> Card:
        card: Card = waiting_card(ann, action)
        decide(card)
        return card

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield done.result


def is_refused(client: ConfirmClient) -> bool:
    try:
        client.list()
    except ConfirmationRefused as refusal:
        return refusal.code == "unauthenticated"
    return False


class TestRequest:
    def test_request_waits_for_the_approval_and_redeems_it(
        self, office: Office, ann: ConfirmClient
    ) -> None:
        def approve(card: Card) -> None:
            assert (card.details, card.session_key) == ({"amount": 900}, "s")
            ann.approve(card.id, card.digest, reason="in time")

        asked = ("request", "pay_rent", "For March", "--detail", "amount:=900", "--session", "s")
        with decided(ann, "pay_rent", approve) as card_of:
            done = office(*asked)
        card = card_of()
        assert "Approved by ann: in time." in done.stdout
        assert card.short_id in done.stdout
        assert card.page_url in done.stdout
        assert office.server.card(card.id).status == "redeemed"

    def test_denied_request_exits_with_1(self, office: Office, ann: ConfirmClient) -> None:
        with decided(ann, "pay_fine", lambda card: ann.deny(card.id, reason=HIDDEN)):
            done = office("request", "pay_fine", "It was me", code=1)
        assert f"Denied by ann: {ESCAPED}. Do not do it." in done.stdout

    def test_edited_approval_needs_the_edits_option(
        self, office: Office, ann: ConfirmClient
    ) -> None:
        def change(card: Card) -> None:
            ann.approve(card.id, card.digest, details={"amount": 5})

        for number, options in enumerate(((), ("--edits",))):
            action = f"pay_part_{number}"
            asked = ("request", action, "Some of it", "--detail", "amount:=9", *options)
            with decided(ann, action, change) as card_of:
                done = office(*asked, code=0 if options else 1)
            assert '"amount": 5' in done.stdout
            used = "redeemed" if options else "approved"
            assert office.server.card(card_of().id).status == used

    def test_ctrl_c_cancels_the_request(self, office: Office, ann: ConfirmClient) -> None:
        running = office.start("request", "pay_later", "Perhaps")
        card = waiting_card(ann, "pay_later")
        until(lambda: card.short_id in running.printed)
        running.signal(signal.SIGINT)
        done = running.wait(code=1)
        assert f"the request {card.short_id} was cancelled" in done.stderr
        assert office.server.card(card.id).status == "cancelled"

    def test_details_from_a_file_and_from_standard_input(self, office: Office) -> None:
        (office.command.home / "d.json").write_text('{"to": "ACME", "amount": 1}')
        card = office.asked("pay_a", "File", "--details", "@d.json", "--detail", "amount:=2")
        assert card["details"] == {"to": "ACME", "amount": 2}
        said = office(
            *("request", "pay_b", "Input", "--details", "-", "--no-wait", "--json"),
            typed='{"n": [1, {"x": null}]}',
        )
        assert json.loads(said.stdout)["details"] == {"n": [1, {"x": None}]}
        card = office.asked("pay_c", "Text", "--detail", "a=b=c", "--detail", "v=2.10")
        assert card["details"] == {"a": "b=c", "v": "2.10"}
        details = ("--detail", "n:=3", "--detail", 'list:=["a"]', "--detail", "t=3")
        said = office("request", "pay_d", "JSON", *details, "--timeout", "5", "--no-wait", "--json")
        card = json.loads(said.stdout)
        assert card["details"] == {"n": 3, "list": ["a"], "t": "3"}
        assert card["warnings"][0].startswith("timeout_seconds is 5")
        assert said.stderr.startswith("Warning: timeout_seconds is 5")

    @table(
        ("arguments", "code", "said"),
        [
            (("pay_x",), 2, "DESCRIPTION"),
            (("pay_x", "y", "--detail", "amount"), 2, "Write it as name=text or name:=JSON"),
            (("pay_x", "y", "--details", "[1]"), 2, "must be a JSON object"),
            (("pay_x", "y", "--details", "{"), 2, "not valid JSON"),
            (("pay_x", "y", "--details", '{"a": NaN}'), 2, "not valid JSON"),
            (("pay_x", "y", "--details", "@nowhere"), 1, "cannot be read"),
            (("pay_x", "y", "--detail", "n:=2.1.0"), 2, "'n' is not valid JSON"),
            (("pay_x", " "), 1, "both action and description"),
            (("", "y"), 1, "not valid"),
            (("pay_x", "y", "--detail", f"n:={2**60}"), 1, "exact JSON"),
            (("burn_house", "y"), 1, "forbids burn_house"),
        ],
        ids=[
            *("no_description", "no_value", "not_an_object", "not_json", "nan", "no_file"),
            *("text_as_json", "no_words", "no_action", "too_large", "forbidden"),
        ],
    )
    def test_invalid_requests(
        self, office: Office, arguments: tuple[str, ...], code: int, said: str
    ) -> None:
        done = office("request", *arguments, code=code)
        assert said in " ".join(done.stderr.split())
        assert done.stdout == ""

    def test_story_10_without_a_service(self, office: Office) -> None:
        nowhere = {"JOURNEYMAN_CONFIRM_URL": "http://127.0.0.1:1"}
        done = office("request", "pay_x", "y", code=1, **nowhere)
        assert done.stdout == ""
        assert "journeyman confirm serve" in done.stderr
        assert office.environ["JOURNEYMAN_CONFIRM_TOKEN"] not in done.stderr

    def test_wrong_token(self, office: Office) -> None:
        done = office("request", "pay_x", "y", code=1, JOURNEYMAN_CONFIRM_TOKEN="jma_wrong")
        assert "journeyman confirm token add" in done.stderr
        assert "jma_wrong" not in done.stderr

    def test_without_a_token(self, office: Office) -> None:
        for arguments in (("request", "pay_x", "y"), ("wait", "5f0c2d"), ("list",)):
            done = office(*arguments, code=1, JOURNEYMAN_CONFIRM_TOKEN="")
            assert "requires a token or key" in done.stderr
            assert "JOURNEYMAN_CONFIRM_TOKEN" in done.stderr


class TestWaitRedeemAndCancel:
    def test_wait_and_redeem(self, office: Office, ann: ConfirmClient) -> None:
        card = office.asked("pay_toll", "Bridge", "--detail", "amount:=3")
        waited = office("wait", card["short_id"], "--timeout", "0.1", code=1)
        assert "No one has decided yet." in waited.stdout
        refused = office("redeem", card["short_id"], code=1)
        assert "not approved" in refused.stderr
        ann.approve(card["id"], card["digest"])
        assert "Approved by ann." in office("wait", card["id"]).stdout
        changed = office("redeem", card["id"], "--detail", "amount:=4", code=1)
        assert "not what was approved" in changed.stderr
        told = office.json("redeem", card["id"], "--detail", "amount:=3")
        assert told["grant"]["details"] == {"amount": 3}
        assert "already used" in office("redeem", card["id"], code=1).stderr
        assert office.json("wait", card["id"], code=1)["status"] == "redeemed"

    def test_redeem_shows_the_approved_details(self, office: Office, ann: ConfirmClient) -> None:
        card = office.asked("pay_tax", "Yearly", "--detail", "amount:=8")
        ann.approve(card["id"], card["digest"])
        done = office("redeem", card["id"])
        assert "exactly these parameters" in done.stdout
        assert '"amount": 8' in done.stdout

    def test_cancel(self, office: Office) -> None:
        card = office.asked("pay_slow", "Never mind")
        assert "Cancelled" in office("cancel", card["short_id"], "--reason", "done").stdout
        assert office.server.card(card["id"]).reason == "done"
        assert "already cancelled" in office("cancel", card["id"], code=1).stderr


class TestDecisions:
    def test_approve_shows_the_confirmation_and_asks_for_its_id(self, office: Office) -> None:
        card = office.asked("pay_bob", f"It is {HIDDEN}\nApproved ✅", "--detail", f"to={HIDDEN}")
        short = card["short_id"]
        refused = office("approve", short, code=1, typed="yes\n", **office.as_ann)
        assert "Nothing was changed" in refused.stderr
        assert office.server.card(card["id"]).status == "pending"
        done = office("approve", short, "--reason", "ok", typed=f"{short}\n", **office.as_ann)
        assert f'"to": "{ESCAPED}"' in done.stderr.replace(r"\u001b", r"\u{1b}")
        assert f"  | It is {ESCAPED}\n  | Approved ✅\n" in done.stderr
        assert done.stderr.index('"to"') < done.stderr.index("the agent's own words")
        assert "hidden characters" in done.stderr
        assert card["digest"] in done.stderr
        assert "Approved by ann: ok." in done.stdout
        assert not set(done.stderr + done.stdout) & set(HIDDEN[4:5] + HIDDEN[-1] + "\x1b")

    def test_approve_with_yes_needs_the_right_digest(self, office: Office) -> None:
        card = office.asked("pay_eve", "Yes")
        assert "--yes needs --digest" in office("approve", card["id"], "--yes", code=2).stderr
        other = ("--yes", "--digest", "sha256:" + "0" * 64)
        wrong = office("approve", card["id"], *other, code=1, **office.as_ann)
        assert "Look at it again" in wrong.stderr
        same = ("--yes", "--digest", card["digest"])
        assert office.json("approve", card["id"], *same, **office.as_ann)["status"] == "approved"

    def test_approve_with_edited_details(self, office: Office) -> None:
        card = office.asked("pay_tip", "Round up", "--detail", "amount:=9", "--detail", "to=Joe")
        short = card["short_id"]
        refused = office(
            *("approve", short, "--detail", "to=Jim"), code=1, typed=f"{short}\n", **office.as_ann
        )
        assert "does not allow changing 'to'" in refused.stderr
        office("approve", short, "--detail", "amount:=7", typed=f"{short}\n", **office.as_ann)
        stored = office.server.card(card["id"])
        assert (stored.status, stored.edited) == ("approved", {"amount": 7, "to": "Joe"})

    def test_story_5_agent_token_cannot_decide(self, office: Office) -> None:
        card = office.asked("pay_me", "Now")
        key = {"JOURNEYMAN_CONFIRM_APPROVER_KEY": office.environ["JOURNEYMAN_CONFIRM_TOKEN"]}
        short = card["short_id"]
        for arguments in (("approve", short), ("deny", short)):
            done = office(*arguments, code=1, typed=f"{short}\n", **key)
            assert "An agent's token cannot do this" in done.stderr
        without = office("approve", short, code=2)
        assert "JOURNEYMAN_CONFIRM_APPROVER_KEY" in without.stderr
        assert office.server.card(card["id"]).status == "pending"

    def test_quorum(self, office: Office) -> None:
        card = office.asked("launch_kite", "Windy")
        short = card["short_id"]
        first = office("approve", short, typed=f"{short}\n", **office.as_ann)
        assert "1 of 2 people" in first.stdout
        ben = {"JOURNEYMAN_CONFIRM_APPROVER_KEY": office.server.approver("ben")}
        assert "Approved by ben" in office("approve", short, typed=f"{short}\n", **ben).stdout

    def test_deny_and_show(self, office: Office) -> None:
        card = office.asked("pay_dan", "Please")
        denied = office("deny", card["short_id"], "--reason", "no money", **office.as_ann)
        assert "Denied by ann: no money." in denied.stdout
        late = office("approve", card["id"], code=1, **office.as_ann)
        assert "already denied by ann" in late.stderr
        shown = office("show", card["short_id"], **office.as_ann).stdout
        assert "Denied by ann: no money." in shown
        assert "deny by ann over api: no money" in shown
        assert office.json("show", card["id"])["votes"][0]["approver"] == "ann"

    @table("columns", ["80", "120"])
    def test_list_fits_the_terminal(self, office: Office, columns: str) -> None:
        for number in range(3):
            office.asked("pay_" + "y" * 60, f"{HIDDEN} {number}" + " long words" * 30)
        shown = office("list", "--limit", "3", COLUMNS=columns, **office.as_ann).stdout
        lines = shown.splitlines()
        assert len(lines) == 4
        assert max(map(len, lines)) <= int(columns)
        assert not set(shown) & set(HIDDEN[4:5] + "\x1b\u200b")
        assert lines[1].startswith(office.json("list", "--limit", "1")[0]["short_id"])

    def test_list_by_status(self, office: Office) -> None:
        card = office.asked("pay_zoe", "Listed")
        ids = {one["id"] for one in office.json("list", "--status", "pending")}
        assert card["id"] in ids
        assert card["id"] not in {one["id"] for one in office.json("list", "--status", "denied")}


class TestWhitelist:
    def test_add_list_use_and_remove(self, office: Office) -> None:
        added = office(
            *("whitelist", "add", "feed_dog", "--where", "cans<=2", "--where", 'sort in ["a","b"]'),
            *("--for", "2h", "--agent", "builder", "--session", "s", "--reason", "hungry"),
            **office.as_ann,
        )
        id_ = re.search(r"whitelist remove (\w+)", added.stdout)
        assert id_ is not None
        (entry,) = office.json("whitelist", "list", **office.as_ann)
        assert (entry["id"], entry["added_by"], entry["reason"]) == (id_[1], "ann", "hungry")
        assert entry["constraints"] == {"cans": {"at_most": 2}, "sort": {"one_of": ["a", "b"]}}
        details = ("--detail", "cans:=1", "--detail", "sort=a", "--session", "s")
        done = office("request", "feed_dog", "Wuff", *details)
        assert "Approved without asking" in done.stdout
        shown = office("whitelist", "list", **office.as_ann).stdout
        assert "cans<=2" in shown
        assert shown.splitlines()[1].split()[-1] == "1"
        office("whitelist", "remove", id_[1], **office.as_ann)
        assert office.asked("feed_dog", "Wuff again", *details)["status"] == "pending"
        assert "The whitelist is empty" in office("whitelist", "list", **office.as_ann).stdout

    @table(
        ("arguments", "code", "said"),
        [
            (("deploy_production",), 1, "never be bypassed"),
            (("feed_cat", "--where", "cans"), 1, "is not a constraint"),
            (("feed_cat", "--where", "cans<=many"), 1, "is not a constraint"),
            (("feed_cat", "--for", "0h"), 2, "like 90, 15m"),
            (("feed_cat", "--for", "soon"), 2, "like 90, 15m"),
        ],
        ids=[
            "never_bypassed",
            "not_a_constraint",
            "not_a_number",
            "zero_duration",
            "not_a_duration",
        ],
    )
    def test_invalid_entries(
        self, office: Office, arguments: tuple[str, ...], code: int, said: str
    ) -> None:
        done = office("whitelist", "add", *arguments, code=code, **office.as_ann)
        assert said in " ".join(done.stderr.split())


class TestCredentials:
    def test_token_works_until_it_is_revoked(self, office: Office) -> None:
        made = office("token", "add", "runner", "--owner", "ann")
        (token,) = re.findall(r"jma_\S+", made.stdout)
        assert "once" in made.stdout
        as_runner = {"JOURNEYMAN_CONFIRM_TOKEN": token}
        asked = office.json("request", "pay_run", "Shoes", "--no-wait", **as_runner)
        assert asked["requester"] == "runner"
        own = office(
            "approve", asked["id"], code=1, typed=f"{asked['short_id']}\n", **office.as_ann
        )
        assert "your own request" in own.stderr
        listed = office("token", "list").stdout
        assert re.search(r"runner\s+ann\s.*active", listed)
        assert token not in listed
        assert token not in json.dumps(office.json("token", "list"))
        assert "already" in office("token", "add", "runner", code=1).stderr
        office("token", "revoke", "runner")
        assert re.search(r"runner\s+ann\s.*revoked", office("token", "list").stdout)
        with ConfirmClient(office.server.url, token) as runner:
            until(lambda: is_refused(runner))
        assert "no agent 'nobody'" in office("token", "revoke", "nobody", code=1).stderr

    def test_approver_key_and_link(self, office: Office) -> None:
        made = office.json("approver", "add", "carl", "--telegram", "42")
        assert made["key"].startswith("jmk_")
        assert made["credential"]["telegram_id"] == 42
        (link,) = office("approver", "link", "carl").stdout.split()
        assert "/open#" in link
        assert re.search(r"carl\s+42\s.*active", office("approver", "list").stdout)
        assert "no agent 'carl'" in office("token", "revoke", "carl", code=1).stderr
        office("approver", "revoke", "carl")
        assert "no approver 'carl'" in office("approver", "link", "carl", code=1).stderr


class TestAudit:
    def test_list_and_verify(self, office: Office) -> None:
        card = office.asked("pay_log", "Noted", "--detail", f"to={HIDDEN}")
        events = office.json("audit", "list", "--confirmation", card["id"], **office.as_ann)
        assert "submitted" in [event["kind"] for event in events]
        for columns in ("80", "120"):
            shown = office("audit", "list", "--limit", "5", COLUMNS=columns, **office.as_ann).stdout
            assert max(map(len, shown.splitlines())) <= int(columns)
            assert "submitted" in shown
        held = office("audit", "verify").stdout
        assert "The chain is intact" in held
        told = office.json("audit", "verify")
        assert told["ok"] is True
        assert office.json("audit", "verify", "--anchor", told["head"])["ok"] is True
        wrong = office("audit", "verify", "--anchor", f"1:{'0' * 64}", code=1)
        assert "The chain is broken" in wrong.stdout

    def test_export_can_be_verified_independently(self, office: Office) -> None:
        office.asked("pay_csv", f"=SUM(A1) {HIDDEN}")
        lines = office("audit", "export").stdout.split("\n")[:-1]
        previous = "0" * 64
        for number, line in enumerate(lines, 1):
            entry = json.loads(line)
            assert (entry["seq"], entry["previous"]) == (number, previous)
            text = line[: line.rindex(',"digest":')] + "}"
            previous = hashlib.sha256(text.encode()).hexdigest()
            assert previous == entry["digest"]

    def test_story_15_truncated_audit_is_reported_until_reset(self, tmp_path: Path) -> None:
        command = Command(tmp_path)
        for name in ("one", "two", "three"):
            command("confirm", "token", "add", name)
        database = sqlite3.connect(tmp_path / ".journeyman" / "journeyman.db")
        with database:
            names = [row[0] for row in database.execute("SELECT name FROM sqlite_master")]
            table = next(name for name in names if "audit" in name and "index" not in name)
            for trigger in [name for name in names if "audit" in name and name != table]:
                database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            database.execute(f"DELETE FROM {table} WHERE seq = (SELECT max(seq) FROM {table})")
        database.close()
        broken = command("confirm", "audit", "verify", code=1)
        assert "The chain is broken" in broken.stdout
        assert "Nothing was changed" in command("confirm", "audit", "reset", code=1).stderr
        command("confirm", "audit", "verify", code=1)
        command("confirm", "audit", "reset", "--yes")
        assert "The chain is intact" in command("confirm", "audit", "verify").stdout


class TestServe:
    def test_first_start_shows_the_key_once_and_signals_stop_it_cleanly(
        self, tmp_path: Path
    ) -> None:
        listening = threading.Event()

        def follow(address: str, token: str) -> list[str]:
            heard = []
            headers = bearer(token)
            with plain_client() as client, client.stream("GET", address, headers=headers) as told:
                for line in told.iter_lines():
                    heard.append(line)
                    listening.set()
            return heard

        command = Command(tmp_path)
        with ThreadPoolExecutor(1) as pool:
            with (
                served(command, signal.SIGTERM) as (url, key),
                ConfirmClient(url, key) as ann,
                ConfirmClient(url) as nobody,
            ):
                assert ann.whitelist() == []
                assert is_refused(nobody)
                token = command.json("confirm", "token", "add", "builder")["token"]
                with ConfirmClient(url, token) as agent:
                    agent.request("wave", "Hello")
                following = pool.submit(follow, f"{url}/inbox/events", key)
                assert listening.wait(LONGEST_S)
            assert following.result(LONGEST_S)[0] == "event: confirmation"
        with (
            served(command, signal.SIGINT, "--anonymous") as (url, key),
            ConfirmClient(url) as nobody,
        ):
            assert key == ""
            assert nobody.request("wave", "Hello").requester == "anonymous"
            at = {"JOURNEYMAN_CONFIRM_URL": url}
            card = command.json("confirm", "request", "wave", "Bye", "--no-wait", **at)
            assert (card["requester"], card["status"]) == ("anonymous", "pending")
            listed = command.json("confirm", "list", **at)
            assert card["id"] in {one["id"] for one in listed}
            assert "Cancelled" in command("confirm", "cancel", card["id"], **at).stdout

    def test_serve_refuses_an_occupied_port_and_public_anonymous_access(
        self, tmp_path: Path, server: ConfirmServer
    ) -> None:
        command = Command(tmp_path)
        taken = server.url.rpartition(":")[2]
        done = command("confirm", "serve", "--port", taken, "--page-port", "0", code=1)
        assert "another program uses it" in done.stderr
        open_to_all = ("confirm", "serve", "--host", "0.0.0.0", "--port", "0", "--anonymous")
        assert "without a token" in command(*open_to_all, code=2).stderr


@contextmanager
def served(
    command: Command, stopped_by: signal.Signals, *options: str
) -> Iterator[tuple[str, str]]:
    """Run the service with the command line; yield its URL and the key that it showed."""
    running = command.start("confirm", "serve", "--port", "0", "--page-port", "0", *options)
    try:
        said = until(lambda: re.search(r"agents\s+(\S+)\n.*notices", running.printed, re.DOTALL))
        key = re.search(r"jmk_\S+", running.printed)
        yield said[1], key[0] if key else ""
    finally:
        running.signal(stopped_by)
        done = running.wait(code=0)
    assert "Stopped." in done.stdout
