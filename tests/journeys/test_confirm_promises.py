"""The promises of a trustworthy approval service, one class per property. Most are checked over
HTTP against a real server; those that need a controlled clock use the real core.
"""

import asyncio
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
import rfc8785
from tests.confirm_core import EVERYTHING, Clock, Core, confirm_core, refused_as
from tests.confirm_server import ConfirmServer, confirm_server
from tests.tables import table
from tests.waiting import LONGEST_S, until

from journeyman.confirm import credentials
from journeyman.confirm.policy import Policy, Rule
from journeyman.confirm.schemas import Accepted, Granted
from journeyman.records.confirmation import Confirmation, Constraint, Refusal, WhitelistEntry

POLICY = """
requester_limit = 100000

[[rules]]
action = "read_file"
tier = "routine"

[[rules]]
action = "format_disk"
tier = "forbidden"

[[rules]]
action = "pay_bill"
tier = "ask"
edits = ["amount"]

[[rules]]
action = "sign_contract"
tier = "ask"
quorum = 2
edits = true

[[rules]]
action = "rotate_keys"
tier = "critical"

[[rules]]
action = "limited"
tier = "ask"
rate_limit = 5
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmServer]:
    with confirm_server(tmp_path_factory.mktemp("service"), policy=POLICY) as server:
        for name in ("ann", "bob", "cid"):
            server.approver(name)
        server.agent("builder")
        yield server


def code(answer: httpx2.Response) -> str:
    """Return the code of a refusal."""
    found: str = answer.json()["error"]["code"]
    return found


def wait_until_revoked(ask: Callable[[], httpx2.Response]) -> None:
    """Wait until a revocation applies: the service checks for external changes twice a second."""
    until(lambda: ask().status_code == 401)


def approve(
    server: ConfirmServer, card: dict[str, Any], name: str = "ann", **more: Any
) -> httpx2.Response:
    body = {"digest": card["digest"], **more}
    return server.post(f"/confirm/{card['id']}/approve", server.approver(name), body)


def redeem(server: ConfirmServer, card: dict[str, Any], **more: Any) -> httpx2.Response:
    body = {"digest": card["digest"], **more}
    return server.post(f"/confirm/{card['id']}/redeem", server.agent(), body)


class TestRequesterAuthn:
    def test_requester_authn_token_determines_the_requester(self, server: ConfirmServer) -> None:
        card = server.submit(requester="the boss", description="Who am I?")
        assert (card["requester"], card["claimed"]) == ("builder", "the boss")
        assert server.audit("submitted", card["id"])[0].actor == "agent:builder"

    def test_requester_authn_secrets_are_hashed_at_rest(self, server: ConfirmServer) -> None:
        with closing(server.browser("ann")) as browser:
            cookie = browser.cookies["journeyman_session"]
        secrets = (server.agent(), server.approver("ann"), cookie)
        kept = b"".join(path.read_bytes() for path in server.home.iterdir())
        assert not [secret for secret in secrets if secret.encode() in kept]
        assert credentials.secret_digest(secrets[0]).encode() in kept

    def test_requester_authn_approver_cannot_submit_requests(self, server: ConfirmServer) -> None:
        body = {"action": "send_mail", "description": "By hand."}
        assert server.post("/confirm", server.approver("ann"), body).status_code == 403


class TestApproverAuthn:
    def test_approver_authn_rule_limits_where_an_action_is_approved(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            ann, card = core.approver("ann"), await core.ask(action="pay")
            assert refused_as(await core.decide(card, ann)) == "channel_not_allowed"
            assert (await core.approve(card, ann, channel="page")).status == "approved"

        rule = Rule(action="pay", tier="ask", channels=("page",))
        run_core(tmp_path, work, Policy(rules=(rule,)))

    def test_approver_authn_revoked_approver_and_sessions_cannot_decide(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(description="After the leaver left.")
        with closing(server.browser("dan")) as browser:
            with server.store.confirmations.writing(time.time()) as ledger:
                credentials.revoke(ledger, "approver", "dan", "test")
            wait_until_revoked(lambda: browser.get("/me"))
            wait_until_revoked(lambda: server.get("/confirmations", server.approver("dan")))
            by_session = browser.post(f"/confirm/{card['id']}/deny", json={})
        assert (by_session.status_code, approve(server, card, "dan").status_code) == (401, 401)
        assert server.card(card["id"]).status == "pending"

    def test_approver_authn_chat_cannot_approve_critical_actions(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            ann, card = core.approver("ann"), await core.ask(action="delete_data")
            pressed = await core.decide(card, ann, channel="telegram")
            assert refused_as(pressed) == "channel_not_allowed"
            denied = await core.decide(card, ann, "deny", channel="telegram")
            assert isinstance(denied, Confirmation)
            assert denied.status == "denied"

        run_core(tmp_path, work)


class TestNoSelfApproval:
    @table("page", [False, True], ids=["agents_port", "page_port"])
    @table("choice", ["approve", "deny"])
    def test_no_self_approval_agent_token_can_never_decide(
        self, server: ConfirmServer, choice: str, page: bool
    ) -> None:
        card = server.submit(description=f"{choice} {page}")
        for token in (server.agent(), server.agent("other")):
            body = {"digest": card["digest"], "decided_by": "ann", "approver": "ann"}
            answer = server.post(f"/confirm/{card['id']}/{choice}", token, body, page=page)
            assert (answer.status_code, code(answer)) == (403, "not_allowed")
        assert server.card(card["id"]).status == "pending"
        noted = [entry.actor for entry in server.audit("refused", card["id"])]
        assert noted == ["agent:builder", "agent:other"]

    def test_no_self_approval_owner_may_deny_but_not_approve(self, server: ConfirmServer) -> None:
        token = server.agent("anns", owner="ann")
        for asked in ({"description": "Owned."}, {"description": "Named.", "requester": "ann"}):
            card = server.submit(token, **asked)
            own = approve(server, card, "ann")
            assert (own.status_code, code(own)) == (403, "own_request")
        assert approve(server, card, "bob").json()["status"] == "approved"
        card = server.submit(token, description="Owned and denied.")
        denied = server.post(f"/confirm/{card['id']}/deny", server.approver("ann"))
        assert denied.json()["settled_by"] == "ann"

    def test_no_self_approval_after_the_agent_token_was_revoked(self, tmp_path: Path) -> None:
        async def run() -> None:
            async with confirm_core(tmp_path) as core:
                ann = core.approver("ann")
                core.agent("bot", owner="ann")
                card = await core.ask(requester="bot")
                with core.store.confirmations.writing(core.clock()) as ledger:
                    credentials.revoke(ledger, "agent", "bot", "approver:ann")
                assert refused_as(await core.decide(card, ann))

        asyncio.run(run())


class TestPayloadBinding:
    def test_payload_binding_digest_is_sha256_of_the_whole_request(
        self, server: ConfirmServer
    ) -> None:
        """The digest is computed here independently of the service's code."""
        details = {"to": "bob", "n": [1, 2.5, None, True], "ü": {"b": 1, "a": "\u202e"}}
        card = server.submit(details=details, session_key="s1", description="Bound.")
        names = ("action", "description", "details", "requester", "session_key", "context", "nonce")
        bound = {name: card[name] for name in names} | {"type": "journeyman.confirmation.v1"}
        assert card["digest"] == f"sha256:{hashlib.sha256(rfc8785.dumps(bound)).hexdigest()}"
        assert card["details"] == details

    def test_payload_binding_decision_names_the_digest_that_was_shown(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(description="Seen.")
        path, key = f"/confirm/{card['id']}/approve", server.approver("ann")
        assert server.post(path, key).status_code == 400
        assert code(server.post(path, key, {"digest": ""})) == "bad_request"
        other = server.post(path, key, {"digest": f"sha256:{'0' * 64}"})
        assert (other.status_code, code(other)) == (412, "digest_differs")
        assert server.card(card["id"]).status == "pending"
        assert approve(server, card).status_code == 200
        assert server.card(card["id"]).votes[0].digest == card["digest"]


class TestExecuteWhatWasApproved:
    def test_execute_what_was_approved_only_one_redeemer_gets_the_grant(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(description="Once.", details={"n": 1})
        approve(server, card)
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: redeem(server, card), range(24)))
        granted = [answer for answer in answers if answer.status_code == 200]
        refusals = [answer for answer in answers if answer.status_code != 200]
        assert len(granted) == 1
        assert {code(answer) for answer in refusals} == {"already_redeemed"}
        grant = granted[0].json()
        assert (grant["id"], grant["digest"]) == (card["id"], card["digest"])
        assert grant["details"] == {"n": 1}

    @table(
        "changed",
        [
            {"digest": f"sha256:{'0' * 64}"},
            {"details": {"n": 2}},
            {"details": {"n": 1, "more": 1}},
            {"details": {"n": "1"}},
            {"details": {}},
        ],
        ids=["digest", "value", "more", "type", "nothing"],
    )
    def test_execute_what_was_approved_and_nothing_else(
        self, server: ConfirmServer, changed: dict[str, Any]
    ) -> None:
        card = server.submit(description="Exactly.", details={"n": 1})
        approve(server, card)
        answer = redeem(server, card, **changed)
        assert (answer.status_code, code(answer)) == (409, "changed")
        assert redeem(server, card, details={"n": 1}).status_code == 200

    def test_execute_what_was_approved_only_by_the_requester_after_approval(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(description="Mine alone.")
        assert code(redeem(server, card)) == "not_approved"
        approve(server, card)
        path, body = f"/confirm/{card['id']}/redeem", {"digest": card["digest"]}
        assert server.post(path, server.agent("other"), body).status_code == 404
        assert server.post(path, server.approver("ann"), body).status_code == 403
        assert redeem(server, card).status_code == 200

    def test_execute_what_was_approved_in_time(self, tmp_path: Path) -> None:
        async def run() -> None:
            async with confirm_core(tmp_path) as core:
                ann = core.approver("ann")
                early, late = await core.ask(details={"n": 1}), await core.ask(details={"n": 2})
                await core.approve(early, ann)
                await core.approve(late, ann)
                core.clock.forward(599.9)
                assert isinstance(await core.redeem(early), Granted)
                core.clock.forward(0.1)
                assert refused_as(await core.redeem(late)) == "lapsed"

        asyncio.run(run())


class TestCompleteDisplay:
    def test_complete_display_returns_every_byte(self, server: ConfirmServer) -> None:
        """The display on the page is tested in test_confirm_page."""
        details = {"script": "x" * 200_000 + "; rm -rf ~", "hidden": "a\u202eb\u200bc\x00\x1b[8m"}
        card = server.submit(description="\u2066Long\u2069", details=details)
        seen = server.get(f"/confirm/{card['id']}", server.approver("ann")).json()
        assert seen["details"] == details
        assert seen["description"] == "\u2066Long\u2069"
        listed = server.get("/confirmations?limit=1", server.approver("ann")).json()
        assert listed["confirmations"][0]["details"] == details


def run_core(
    home: Path, work: "Callable[[Core], Any]", policy: Policy = EVERYTHING, **how: Any
) -> None:
    async def run() -> None:
        async with confirm_core(home, policy=policy, **how) as core:
            await work(core)

    asyncio.run(run())


class TestTtlFailClosed:
    def test_ttl_fail_closed_expired_is_neither_denied_nor_cancelled(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            ann = core.approver("ann")
            cards = [await core.ask(details={"n": n}, timeout_s=30) for n in range(3)]
            await core.decide(cards[0], ann, "deny", reason="no")
            await core.service.cancel(cards[1].id, core.agent())
            core.clock.forward(30)
            ended = [(await core.now(card)).status for card in cards]
            assert ended == ["denied", "cancelled", "expired"]
            for card in cards:
                assert refused_as(await core.redeem(card)) in ("not_approved", "expired")
            late = await core.decide(cards[2], ann)
            assert isinstance(late, Refusal)
            assert (late.code, late.about["expired_at"]) == ("expired", cards[2].expires_at)
            assert [entry.actor for entry in core.audit("expired")] == ["service"]

        run_core(tmp_path, work)

    def test_ttl_fail_closed_expiry_needs_no_request(self, tmp_path: Path) -> None:
        """The stored confirmation expires, and a client that was already waiting is notified."""

        async def work(core: Core) -> None:
            card = await core.ask(timeout_s=30)
            waiting = asyncio.create_task(core.service.wait(card.id, 60))
            await asyncio.sleep(0)
            core.clock.forward(30)
            waited = await asyncio.wait_for(waiting, LONGEST_S)
            assert waited is not None
            assert (waited.status, waited.settled_at) == ("expired", card.expires_at)
            stored = core.store.confirmations.find(card.id)
            assert stored is not None
            assert stored.status == "expired"

        run_core(tmp_path, work)

    @table(("before_s", "status"), [(0.001, "approved"), (0.0, "expired"), (-5.0, "expired")])
    def test_ttl_fail_closed_decision_at_the_deadline_is_too_late(
        self, tmp_path_factory: pytest.TempPathFactory, before_s: float, status: str
    ) -> None:
        folder = tmp_path_factory.mktemp("row")

        async def work(core: Core) -> None:
            card = await core.ask(timeout_s=30)
            core.clock.forward(30 - before_s)
            decided = await core.decide(card, core.approver("ann"))
            assert refused_as(decided) == ("" if status == "approved" else "expired")
            core.clock.forward(60)
            assert (await core.now(card)).status == status
            kinds = {entry.kind for entry in core.audit(card=card.id)}
            assert len(kinds & {"approved", "expired"}) == 1

        run_core(folder, work)


class TestRestart:
    def test_restart_keeps_pending_confirmations_and_their_deadlines(self, tmp_path: Path) -> None:
        clock = Clock()

        async def first() -> tuple[Confirmation, Confirmation]:
            async with confirm_core(tmp_path, clock=clock) as core:
                core.approver("ann")
                short = await core.ask(details={"n": 1}, timeout_s=60)
                return short, await core.ask(details={"n": 2}, timeout_s=600)

        async def again(short: Confirmation, long: Confirmation) -> None:
            async with confirm_core(tmp_path, clock=clock) as core:
                assert (await core.now(long)).expires_at == long.expires_at
                stored = core.store.confirmations.find(short.id)
                assert stored is not None
                assert (stored.status, stored.settled_at) == ("expired", short.expires_at)
                waiting = asyncio.create_task(core.service.wait(long.id, 60))
                ann = core.store.confirmations.credentials("approver")[0]
                await core.approve(long, ann)
                waited = await waiting
                assert waited is not None
                assert waited.status == "approved"
                assert isinstance(await self._redeemed(core, long), Granted)
                assert (await core.service.verify_audit()).ok

        cards = asyncio.run(first())
        clock.forward(100)
        asyncio.run(again(*cards))

    @staticmethod
    async def _redeemed(core: Core, card: Confirmation) -> Granted | Refusal:
        return await core.service.redeem(card.id, core.agent(card.requester), card.digest)


class TestIdempotency:
    def test_idempotency_same_key_returns_the_same_request(self, server: ConfirmServer) -> None:
        asked = {"description": "Keyed.", "details": {"n": 1}, "idempotency_key": "key-1"}
        first, again = server.submit(**asked), server.submit(**asked)
        by_header = server.post(
            "/confirm",
            server.agent(),
            {"action": "send_mail", "description": "Keyed.", "details": {"n": 1}},
            headers={"Idempotency-Key": "key-1"},
        ).json()
        assert first["id"] == again["id"] == by_header["id"]
        assert (first["replayed"], again["replayed"]) == (False, True)
        assert by_header["submissions"] == 1
        approve(server, first)
        assert server.submit(**asked)["status"] == "approved"

    def test_idempotency_other_body_with_the_same_key_is_refused(
        self, server: ConfirmServer
    ) -> None:
        first = server.submit(description="One.", idempotency_key="key-2")
        body = {"action": "send_mail", "description": "Another.", "idempotency_key": "key-2"}
        answer = server.post("/confirm", server.agent(), body)
        assert (answer.status_code, code(answer)) == (409, "key_reused")
        assert answer.json()["error"]["id"] == first["id"]
        other = server.submit(
            server.agent("other"), description="Another.", idempotency_key="key-2"
        )
        assert other["id"] != first["id"]

    def test_idempotency_racing_requests_with_one_key_create_one_confirmation(
        self, server: ConfirmServer
    ) -> None:
        def ask(_: int) -> dict[str, Any]:
            return server.submit(description="Raced.", idempotency_key="key-3")

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(16)))
        assert len({answer["id"] for answer in answers}) == 1
        assert sum(not answer["replayed"] for answer in answers) == 1


class TestCoalescing:
    def test_coalescing_identical_requests_share_one_confirmation_and_one_grant(
        self, server: ConfirmServer
    ) -> None:
        def ask(_: int) -> dict[str, Any]:
            card = server.submit(description="Alike.", details={"a": 1, "b": 2})
            ready.release()
            return server.get(f"/confirm/{card['id']}?wait=30", server.agent()).json() | {
                "shared": card["shared"]
            }

        ready = threading.Semaphore(0)
        with ThreadPoolExecutor(5) as pool:
            asked = [pool.submit(ask, number) for number in range(5)]
            for _ in asked:
                ready.acquire()
            waiting = server.get("/confirmations?status=pending", server.approver("ann")).json()
            cards = [c for c in waiting["confirmations"] if c["description"] == "Alike."]
            assert [card["submissions"] for card in cards] == [5]
            approve(server, cards[0])
            told = [one.result() for one in asked]
        assert {one["id"] for one in told} == {cards[0]["id"]}
        assert {one["status"] for one in told} == {"approved"}
        assert sorted(one["shared"] for one in told) == [False, True, True, True, True]
        assert sorted(redeem(server, one).status_code for one in told) == [200, 409, 409, 409, 409]

    @table(
        "changed",
        [
            {"details": {"n": 2}},
            {"session_key": "another"},
            {"description": "Else."},
            {"action": "send_post"},
            {},
        ],
        ids=["details", "session", "description", "action", "agent"],
    )
    def test_coalescing_needs_identical_requests(
        self, server: ConfirmServer, changed: dict[str, Any]
    ) -> None:
        asked = {"description": "Nearly.", "details": {"n": 1}}
        other = {"secret": server.agent("other")} if changed == {} else changed
        assert server.submit(**asked)["id"] != server.submit(**{**asked, **other})["id"]


class TestQuorum:
    def test_quorum_needs_distinct_approvers(self, server: ConfirmServer) -> None:
        card = server.submit(action="sign_contract", details={"n": 1}, description="Two.")
        assert approve(server, card, "ann").json()["status"] == "pending"
        for again in (
            {},
            {"details": {"n": 1}},  # an edit that changes nothing is not a second approval
        ):
            assert code(approve(server, card, "ann", **again)) == "already_voted"
        assert code(redeem(server, card)) == "not_approved"
        done = approve(server, card, "bob").json()
        assert (done["status"], done["approvals"], done["settled_by"]) == ("approved", 2, "bob")
        assert {vote["approver"] for vote in done["votes"]} == {"ann", "bob"}

    def test_quorum_edit_and_reverse_edit_is_not_a_second_approval(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(action="sign_contract", details={"n": 1}, description="Back.")
        approve(server, card, "ann")
        edited = approve(server, card, "ann", details={"n": 2}).json()
        assert (edited["status"], edited["approvals"]) == ("pending", 1)
        assert code(approve(server, edited, "ann", details={"n": 1})) == "already_voted"
        assert server.card(card["id"]).status == "pending"

    def test_quorum_approval_of_other_details_does_not_count(self, server: ConfirmServer) -> None:
        card = server.submit(action="sign_contract", details={"n": 1}, description="Changed.")
        approve(server, card, "ann")
        edited = approve(server, card, "bob", details={"n": 9}).json()
        assert (edited["status"], edited["approvals"]) == ("pending", 1)
        assert code(approve(server, card, "cid")) == "digest_differs"
        assert approve(server, edited, "ann").json()["approved_details"] == {"n": 9}

    def test_quorum_one_denial_is_enough(self, server: ConfirmServer) -> None:
        card = server.submit(action="sign_contract", description="Vetoed.")
        approve(server, card, "ann")
        denied = server.post(f"/confirm/{card['id']}/deny", server.approver("bob"))
        assert denied.json()["status"] == "denied"
        assert code(approve(server, card, "cid")) == "already_settled"


class TestRateLimit:
    def test_rate_limit_refusal_is_audited_and_creates_no_confirmation(
        self, server: ConfirmServer
    ) -> None:
        for number in range(5):
            server.submit(action="limited", details={"n": number})
        body = {"action": "limited", "description": "d", "details": {"n": 5}}
        answer = server.post("/confirm", server.agent(), body)
        assert (answer.status_code, code(answer)) == (429, "over_limit")
        assert int(answer.headers["Retry-After"]) > 0
        error = answer.json()["error"]
        assert (error["limit"], error["remaining"]) == (5, 0)
        datetime.fromisoformat(error["reset_at"])
        assert server.audit("refused")[-1].about["code"] == "over_limit"
        found = [one for one in server.store.confirmations.list() if one.action == "limited"]
        assert len(found) == 5
        other = server.post("/confirm", server.agent("other"), body)
        assert code(other) == "over_limit"  # all agents together

    def test_rate_limit_of_whitelisted_requests_is_their_own(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            allowed = {"to": Constraint(equals="bob")}
            entry = WhitelistEntry(
                id="", action="send_mail", added_by="", added_at=0.0, constraints=allowed
            )
            await core.service.add_to_whitelist(entry, core.approver("ann"))
            bob = {"details": {"to": "bob"}}
            statuses = [(await core.ask(**bob)).status for _ in range(4)]
            assert statuses == ["auto_approved"] * 4
            # They used up nothing of what people may be asked, and the other way round.
            asked = [await core.ask(details={"to": f"eve-{n}"}) for n in range(2)]
            assert [card.status for card in asked] == ["pending"] * 2
            assert refused_as(await core.submit(details={"to": "eve-3"})) == "over_limit"
            assert (await core.ask(**bob)).status == "auto_approved"
            refused = await core.submit(**bob)
            assert isinstance(refused, Refusal)
            assert (refused.code, refused.about["limit"]) == ("over_limit", 5)

        run_core(tmp_path, work, Policy(rate_limit=2, automatic_limit=5))

    def test_rate_limit_of_a_routine_rule(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            for number in range(2):
                assert (await core.ask(action="read_mail", details={"n": number})).status == (
                    "auto_approved"
                )
            assert refused_as(await core.submit(action="read_mail")) == "over_limit"

        routine = Rule(action="read_*", tier="routine", rate_limit=2)
        run_core(tmp_path, work, Policy(rules=(routine,)))

    def test_rate_limit_uses_a_sliding_window(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            for number in range(2):
                await core.ask(details={"n": number})
                core.clock.forward(1_000)
            refused = await core.submit(details={"n": 3})
            assert isinstance(refused, Refusal)
            assert refused.about["reset_at"] == core.clock() - 2_000 + 3_600
            core.clock.forward(1_599)
            assert refused_as(await core.submit(details={"n": 3})) == "over_limit"
            core.clock.forward(1)
            await core.ask(details={"n": 3})
            assert refused_as(await core.submit(details={"n": 4})) == "over_limit"

        run_core(tmp_path, work, Policy(rate_limit=2))

    def test_rate_limit_of_an_agent_spans_all_its_actions(self, tmp_path: Path) -> None:
        async def work(core: Core) -> None:
            for number in range(4):
                await core.ask(action=f"action_{number}")
            assert refused_as(await core.submit(action="action_4")) == "over_limit"
            shared = await core.submit(action="action_0")  # shares the pending confirmation
            assert isinstance(shared, Accepted)
            assert shared.shared
            assert isinstance(await core.submit(action="a", requester="other"), Accepted)

        run_core(tmp_path, work, Policy(rate_limit=100, requester_limit=4))


class TestWhitelist:
    def add(self, server: ConfirmServer, **entry: Any) -> dict[str, Any]:
        answer = server.post("/whitelist", server.approver("ann"), entry)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def test_whitelist_entry_covers_its_constraints_and_records_its_last_use(
        self, server: ConfirmServer
    ) -> None:
        entry = self.add(
            server,
            action="post_note",
            session_key="s1",
            requester="builder",
            constraints={"to": {"one_of": ["bob", "cid"]}, "n": {"at_most": 10}},
            expires_in_seconds=600,
        )

        def status(**changes: Any) -> str:
            asked = {
                "action": "post_note",
                "session_key": "s1",
                "details": {"to": "bob", "n": 10},
                **changes,
            }
            found: str = server.submit(asked.pop("token", ""), **asked)["status"]
            return found

        assert status() == "auto_approved"
        assert status(token=server.agent("other")) == "pending"
        assert status(session_key="s2") == "pending"
        assert status(action="post_notes") == "pending"
        assert status(details={"to": "dan", "n": 10}) == "pending"
        assert status(details={"to": "bob", "n": 11}) == "pending"
        assert status(details={"to": "bob", "n": 10, "cc": "eve"}) == "pending"
        listed = server.get("/whitelist", server.approver("bob")).json()["whitelist"]
        mine = next(one for one in listed if one["id"] == entry["id"])
        assert (mine["uses"], mine["added_by"]) == (1, "ann")
        assert mine["last_used_at"]
        gone = server.delete(f"/whitelist/{entry['id']}", server.approver("bob"))
        assert gone.json()["revoked_by"] == "bob"
        assert status(details={"to": "bob", "n": 9}) == "pending"
        kinds = [one.kind for one in server.audit() if one.kind.startswith("whitelist_")]
        assert {"whitelist_added", "whitelist_revoked"} <= set(kinds)

    def test_whitelist_auto_approval_is_redeemed_once(self, server: ConfirmServer) -> None:
        card = server.submit(action="read_file", details={"path": "/a"})
        assert (card["status"], card["settled_by"]) == ("auto_approved", "policy")
        assert [redeem(server, card).status_code for _ in range(2)] == [200, 409]
        kinds = [entry.kind for entry in server.audit(confirmation=card["id"])]
        assert kinds[:3] == ["submitted", "auto_approved", "redeemed"]

    @table(
        "action", ["delete_data", "aws.Delete-Data", "rotate_keys", "format_disk", "transferFunds"]
    )
    def test_whitelist_refuses_actions_that_need_a_decision(
        self, server: ConfirmServer, action: str
    ) -> None:
        answer = server.post("/whitelist", server.approver("ann"), {"action": action})
        assert (answer.status_code, code(answer)) == (400, "bad_request")
        body = {"action": action, "description": "d"}
        asked = server.post("/confirm", server.agent(), body)
        if action == "format_disk":
            assert (asked.status_code, code(asked)) == (403, "forbidden_action")
        else:
            assert asked.status_code == 202

    def test_whitelist_unknown_action_needs_a_decision(self, server: ConfirmServer) -> None:
        card = server.submit(action="never_heard_of")
        assert (card["status"], card["tier"]) == ("pending", "ask")


class TestEdit:
    def test_edit_creates_a_new_digest_and_the_audit_records_both(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(action="pay_bill", details={"amount": 900, "to": "ACME"})
        assert card["editable"] == ["amount"]
        edited = approve(server, card, details={"amount": 90, "to": "ACME"}).json()
        assert edited["status"] == "approved"
        assert edited["digest"] != card["digest"] == edited["submitted_digest"]
        assert (edited["details"]["amount"], edited["approved_details"]["amount"]) == (900, 90)
        about = server.audit("edited", card["id"])[0].about
        assert (about["digest_before"], about["digest"]) == (card["digest"], edited["digest"])
        amounts = (about["details_before"]["amount"], about["details"]["amount"])
        assert amounts == (900, 90)
        assert code(redeem(server, card)) == "changed"
        assert redeem(server, edited).json()["details"] == {"amount": 90, "to": "ACME"}

    @table(
        "details",
        [
            {"amount": 900, "to": "EVE"},
            {"amount": 900},
            {"amount": 900, "to": "ACME", "cc": 1},
        ],
        ids=["not_allowed", "removed", "added"],
    )
    def test_edit_is_limited_by_policy(
        self, server: ConfirmServer, details: dict[str, Any]
    ) -> None:
        card = server.submit(action="pay_bill", details={"amount": 900, "to": "ACME"})
        answer = approve(server, card, details=details)
        assert (answer.status_code, code(answer)) == (403, "edit_not_allowed")
        assert server.card(card["id"]).status == "pending"

    def test_edit_to_a_value_that_python_considers_equal_counts(self, tmp_path: Path) -> None:
        """True and 1 are different values to the program that runs the action."""

        async def work(core: Core) -> None:
            card = await core.ask(action="e", details={"force": 1})
            done = await core.approve(card, core.approver("ann"), edited={"force": True})
            assert done.approved_details["force"] is True
            assert done.digest != card.digest

        run_core(
            tmp_path,
            work,
            Policy(rules=(Rule(action="e", tier="ask", edits=True),), rate_limit=10),
        )


class TestWait:
    def test_wait_polling_and_long_polling_agree(self, server: ConfirmServer) -> None:
        card = server.submit(description="Waited for.")
        path, token = f"/confirm/{card['id']}", server.agent()
        with ThreadPoolExecutor(1) as pool:
            polled = pool.submit(server.get, f"{path}?wait=30", token)
            approve(server, card, reason="fine")
            waited = polled.result().json()
        looked = server.get(path, token).json()
        for name in ("status", "settled_by", "settled_at", "digest", "reason"):
            assert waited[name] == looked[name]
        assert waited["status"] == "approved"


class TestAudit:
    def test_audit_records_who_decided_what_and_when(self, server: ConfirmServer) -> None:
        card = server.submit(action="pay_bill", details={"amount": 7, "password": "hunter2-x"})
        server.get(f"/confirm/{card['id']}", server.approver("ann"))
        approve(server, card, reason="agreed")
        redeem(server, card)
        found = server.get(f"/audit?confirmation={card['id']}", server.approver("bob")).json()
        entries = list(reversed(found["audit"]))
        assert [(one["kind"], one["actor"]) for one in entries] == [
            ("submitted", "agent:builder"),
            ("viewed", "approver:ann"),
            ("approved", "approver:ann"),
            ("redeemed", "agent:builder"),
        ]
        approved = entries[2]
        assert approved["at"].endswith("Z")
        about = approved["about"]
        assert (about["action"], about["digest"]) == ("pay_bill", card["digest"])
        assert (about["details"]["amount"], about["reason"]) == (7, "agreed")
        assert "hunter2-x" not in json.dumps(entries)

    def test_audit_export_is_complete_and_verifiable(self, server: ConfirmServer) -> None:
        server.submit(description="Exported, with a \u2028 and an ü.")
        key = server.approver("ann")
        lines = server.get("/audit/export", key).text.split("\n")[:-1]
        before = "0" * 64
        for number, line in enumerate(lines, 1):
            entry = json.loads(line)
            text, _, _ = line.rpartition(',"digest":"')
            digest = hashlib.sha256(f"{text}}}".encode()).hexdigest()
            assert (entry["seq"], entry["previous"], entry["digest"]) == (number, before, digest)
            before = digest
        checked = server.get("/audit/verify", key).json()
        assert (checked["ok"], checked["broken_at"]) == (True, None)
        assert checked["anchor"]

    def test_audit_no_route_changes_or_deletes_an_entry(self, server: ConfirmServer) -> None:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for path in ("/audit", "/audit/1"):
                answer = server.send(method, path, server.approver("ann"), json={})
                assert answer.status_code in (404, 405)


class TestFatigue:
    def test_fatigue_critical_card_on_the_page_needs_its_id_typed(
        self, server: ConfirmServer
    ) -> None:
        card = server.submit(action="delete_data", description="Typed.")
        with closing(server.browser("bob")) as browser:
            path, body = f"/confirm/{card['id']}/approve", {"digest": card["digest"]}
            for typed in ("", "yes", card["id"]):
                assert browser.post(path, json={**body, "typed": typed}).status_code == 400
            done = browser.post(path, json={**body, "typed": card["short_id"]})
        assert done.json()["status"] == "approved"


def test_owasp_page_names_existing_tests() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "confirm-owasp.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    files = (path for path in (root / "tests").rglob("*.py") if "confirm" in str(path))
    sources = "".join(path.read_text() for path in files)
    assert named
    assert sorted(name for name in named if f"def {name}(" not in sources) == []
