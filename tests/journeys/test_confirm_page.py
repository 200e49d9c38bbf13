"""The confirmation page in a real Chromium, against the real service."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.journeys.confirm_page_browser import (
    APPROVE,
    ARMED_AFTER_MS,
    DENY,
    Person,
    chromium,
    foreign_site,
    launched_browser,
    log_in,
    new_profile,
)
from tests.journeys.confirm_page_payloads import PAYLOADS
from tests.journeys.confirm_page_service import ConfirmationPage, running_page
from tests.tables import table

from journeyman.confirm import credentials
from journeyman.text.display import is_hidden, visible

pytestmark = pytest.mark.skipif(not chromium(), reason="Chromium is not installed")

Opens = Callable[..., Person]
VIEWS = ("inbox", "history", "whitelist", "audit", "policy")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfirmationPage]:
    with running_page(tmp_path_factory.mktemp("confirm")) as page:
        yield page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched_browser() as found:
        yield found


@pytest.fixture(scope="module")
def people(served: ConfirmationPage, browser: Browser) -> dict[str, Person]:
    """Logged-in approvers, each with their own browser profile."""
    known = {name: Person(served, new_profile(browser), fast=True) for name in ("anna", "bo")}
    for name, person in known.items():
        log_in(person, name, served.keys[name])
        person.page.wait_for_selector(".connection.live")
        person.leave()
    return known


@pytest.fixture
def opens(served: ConfirmationPage, browser: Browser, people: dict[str, Person]) -> Iterator[Opens]:
    """Open the page for a person. Logged-in people are reused unless options require a new profile,
    because creating one takes longer than most tests. Anything that must not happen on the page
    fails the test at the end.
    """
    seen: list[Person] = []

    def open_for(name: str = "anna", *, separate: bool = False, **options: Any) -> Person:
        person = people.get(name)
        if person is None or separate or options:
            state = person.context.storage_state() if person else None
            person = Person(served, new_profile(browser, storage_state=state, **options))
        seen.append(person)
        return person

    yield open_for
    problems_seen = [person.problems for person in seen]
    for person in seen:
        if person in people.values():
            person.leave()
        else:
            person.context.close()
    assert problems_seen == [[] for _ in seen]


def test_login_and_logout(served: ConfirmationPage, opens: Opens) -> None:
    person = opens("")
    log_in(person, "anna", "jmk_not-the-key")
    expect(person.page.get_by_role("alert")).to_contain_text("do not match")
    assert (
        person.page.get_by_label("Key", exact=True).get_attribute("autocomplete")
        == "current-password"
    )
    log_in(person, "anna", served.keys["anna"])
    expect(person.page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(person.page.locator(".me")).to_have_text("anna")
    person.page.get_by_role("button", name="Log out").click()
    expect(person.page.get_by_text("You are logged out.")).to_be_visible()
    person.page.goto(f"{served.url}/#/audit")
    expect(person.page.get_by_label("Key", exact=True)).to_be_visible()


def test_new_request_appears_without_a_reload(served: ConfirmationPage, opens: Opens) -> None:
    served.clear()
    person = opens()
    page = person.open()
    expect(page.get_by_text("Nothing is waiting for you.")).to_be_visible()
    page.wait_for_selector(".connection.live")
    page.evaluate("window.same = true")
    first = served.ask("arrives_first")
    expect(page.locator(".row .action")).to_have_text(["arrives_first"])
    expect(page.locator("#news")).to_contain_text("arrives_first")
    served.ask("arrives_second")
    expect(page.locator(".row .action")).to_have_text(["arrives_first", "arrives_second"])
    expect(page).to_have_title("(2) Inbox · Journeyman")
    served.as_person("bo", "POST", f"/confirm/{first['id']}/deny", {})
    expect(page.locator(".row").first).to_contain_text("denied")
    expect(page.locator(".row .action")).to_have_text(["arrives_first", "arrives_second"])
    expect(page).to_have_title("(1) Inbox · Journeyman")
    assert page.evaluate("window.same") is True


def test_everything_that_waits_is_shown_in_pages(served: ConfirmationPage, opens: Opens) -> None:
    served.clear()
    waiting = [f"waits_{number}" for number in range(504)]
    for action in waiting:
        served.ask(action, timeout_seconds=7200)
    served.ask("most_urgent", timeout_seconds=600)
    page = opens().open()
    expect(page).to_have_title("(505) Inbox · Journeyman")
    expect(page.locator(".lead")).to_contain_text("505 actions are waiting")
    later = page.get_by_role("button", name="Later")
    seen = page.locator(".row .action").all_text_contents()
    while later.is_enabled():
        later.click()
        seen += page.locator(".row .action").all_text_contents()
    assert seen == ["most_urgent", *waiting]
    served.clear()


def test_lost_connection_is_shown_and_restored(served: ConfirmationPage, opens: Opens) -> None:
    person = opens()
    person.page.route("**/inbox/events", lambda route: route.abort())
    page = person.open()
    expect(page.locator(".connection")).to_have_text("reconnecting")
    served.ask("came_meanwhile")
    page.unroute("**/inbox/events")
    expect(page.locator(".connection")).to_have_text("live")
    expect(page.locator(".row", has_text="came_meanwhile")).to_be_visible()


@table(("press", "status"), [(APPROVE, "approved"), (DENY, "denied")])
def test_decision_with_its_reason_reaches_the_agent(
    served: ConfirmationPage, opens: Opens, press: str, status: str
) -> None:
    card = served.ask()
    page = opens().open_card(card)
    page.get_by_label("Reason").fill("looked at it")
    page.click(press)
    expect(page.locator(".outcome h2")).to_have_text(f"{status.capitalize()} by anna")
    expect(page.locator(".outcome")).to_contain_text("looked at it")
    settled = served.card(card["id"])
    assert (settled["status"], settled["settled_by"]) == (status, "anna")
    assert settled["reason"] == "looked at it"
    assert [(vote["digest"], vote["channel"]) for vote in settled["votes"]] == [
        (card["digest"], "page")
    ]


def test_facts_come_first_and_agent_text_last_and_labelled(
    served: ConfirmationPage, opens: Opens
) -> None:
    card = served.ask(
        description="Approved ✅ by the board",
        requester="The Board",
        session_key="night-7",
        details={"to": "bank", "amount": 471100, "nested": {"a": [1, None, True]}, "": "no name"},
    )
    page = opens().open_card(card)
    text = page.locator(".card").inner_text()
    order = (
        *(
            "send_mail",
            "bot",
            "calls itself “The Board” (not verified)",
            "night-7",
            "no rule matches",
        ),
        *("bank", "471100", '"a": [', card["digest"], "own words (not verified)", "by the board"),
    )
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    page.get_by_role("button", name="Show exact JSON").click()
    assert json.loads(page.locator(".raw pre").inner_text()) == card["details"]


def test_a_call_of_a_host_names_its_rule_and_shows_its_edits_as_diffs(
    served: ConfirmationPage, opens: Opens
) -> None:
    edits = [{"old_string": "a\nb\nc", "new_string": "a\nB\nc"}, {"content": "new"}]
    patch = "*** Begin Patch\n*** Update File: x\n@@\n-one\n+two\n*** End Patch"
    arguments = {"file_path": "/etc/hosts", "edits": edits, "input": patch}
    details = {"arguments": arguments, "rule": "file.write_outside", "reason": "It is outside."}
    held = served.ask(details=details, by="claude-code")
    page = opens().open_card(held)
    expect(page.locator(".facts")).to_contain_text("It is outside. Rule file.write_outside")
    assert page.locator(".diff").all_inner_texts() == [" a\n-b\n+B\n c", "+new"]
    assert page.locator(".removed").all_inner_texts() == ["-b\n", "-one\n"]
    # The words of another agent are not the gate's.
    page = opens().open_card(served.ask(details=details))
    expect(page.locator(".facts")).not_to_contain_text("It is outside")


def test_enter_never_approves(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask("edit_mail", details={"amount": 3, "note": "x" * 2000, "api_key": "abcdef"})
    person = opens()
    page = person.open_card(card)
    page.locator(".editor summary").click()
    stay = ".card :is(button, input, textarea, summary, [tabindex]):not(.deny)"
    count = page.locator(stay).count()
    assert count >= 8
    for number in range(count):
        one = page.locator(stay).nth(min(number, page.locator(stay).count() - 1))
        one.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Enter")
    page.locator(APPROVE).focus()
    expect(page.locator(APPROVE)).to_be_focused()
    page.keyboard.press("Enter", delay=20)
    for link in page.locator("header :is(a, button)").all()[:-1]:
        link.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
    assert person.decisions() == []
    assert served.card(card["id"])["status"] == "pending"


def test_buttons_are_disabled_until_the_card_was_visible_for_a_moment(
    served: ConfirmationPage, opens: Opens
) -> None:
    card = served.ask("both_mail")
    person = opens(separate=True)  # with a stopped clock
    page = person.page
    page.clock.install(time=1_000_000)
    page.clock.pause_at(1_001_000)
    person.open_card(card, armed=False)
    page.wait_for_selector(".connection.live")
    page.mouse.move(*_middle(page, APPROVE))
    page.mouse.down()
    page.clock.run_for(799)
    expect(page.locator(APPROVE)).to_be_disabled()
    expect(page.locator(DENY)).to_be_disabled()
    page.clock.run_for(1)
    expect(page.locator(APPROVE)).to_be_enabled()
    page.mouse.up()  # the press began while it was disabled
    assert person.decisions() == []
    digest = {"digest": card["digest"]}
    served.as_person("bo", "POST", f"/confirm/{card['id']}/approve", digest)
    expect(page.locator(".decision .votes")).to_contain_text("1 of 2")
    expect(page.locator(APPROVE)).to_be_disabled()
    page.clock.run_for(800)
    page.click(APPROVE)
    expect(page.locator(".outcome")).to_contain_text("Approved by anna")


def _middle(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_decision_by_keyboard_alone(served: ConfirmationPage, opens: Opens) -> None:
    served.clear()
    no, yes = served.ask("by_keys_no"), served.ask("by_keys_yes")
    page = opens().open()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(DENY)
    page.clock.fast_forward(ARMED_AFTER_MS)
    page.wait_for_selector(f"{APPROVE}:enabled")
    page.keyboard.press("a")
    page.keyboard.press("Space")
    expect(page.locator(".outcome")).to_contain_text("Approved by anna")
    page.keyboard.press("u")
    page.wait_for_selector(".row")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_selector(DENY)
    page.clock.fast_forward(ARMED_AFTER_MS)
    page.wait_for_selector(f"{DENY}:enabled")
    page.keyboard.press("d")
    page.keyboard.press("Space")
    expect(page.locator(".outcome")).to_contain_text("Denied by anna")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("never approves")
    states = [served.card(card["id"])["status"] for card in (no, yes)]
    assert states == ["denied", "approved"]


def test_critical_card_needs_every_fold_opened_and_its_id_typed(
    served: ConfirmationPage, opens: Opens
) -> None:
    details = {
        "body": "\n".join(f"line {number}" for number in range(100)),
        "long": "y" * 5000,
        "token": "s3cret-value",
        "inside": {"password": "another-secret", "rows": list(range(400))},
    }
    card = served.ask("coded_deploy", details=details, description="w" * 3000)
    page = opens().open_card(card)
    facts = page.locator(".card-body")
    expect(page.locator(APPROVE)).to_be_disabled()
    assert "s3cret-value" not in facts.inner_text()
    expect(facts.get_by_role("button", name="4,400 more characters")).to_be_visible()
    page.get_by_label("Type ").fill(card["short_id"])
    expect(page.locator(".missing")).to_contain_text("folded or covered value")
    closed = facts.locator("button.fold, .covered button")
    while closed.count():
        expect(page.locator(APPROVE)).to_be_disabled()
        closed.first.click()
    text = facts.inner_text()
    assert all(part in text for part in ("y" * 5000, "s3cret-value", "another-secret", "line 99"))
    expect(page.locator(APPROVE)).to_be_enabled()
    page.get_by_label("Type ").fill("000000x")
    expect(page.locator(APPROVE)).to_be_disabled()
    page.get_by_label("Type ").fill(card["short_id"])
    page.click(APPROVE)
    expect(page.locator(".outcome")).to_contain_text("Approved by anna")


def test_approve_with_edits(served: ConfirmationPage, opens: Opens) -> None:
    asked = {"amount": 100, "note": "all of it", "where": {"__proto__": 1}, "fixed": "stays"}
    card = served.ask("edit_transfer", details=asked)
    page = opens().open_card(card)
    page.locator(".editor summary").click()
    expect(page.locator(".editor textarea")).to_have_count(3)
    page.get_by_label("amount").fill("ten")
    expect(page.locator(".missing")).to_contain_text("amount")
    page.get_by_label("amount").fill("10")
    page.get_by_label("note").fill("a tenth\nof it")
    page.get_by_role("button", name="Approve with changes").click()
    expect(page.locator(".outcome")).to_contain_text("Approved by anna")
    expect(page.locator("tr.changed .before")).to_have_text(
        ["requested: 100", "requested: all of it"]
    )
    settled = served.card(card["id"])
    assert settled["approved_details"] == asked | {"amount": 10, "note": "a tenth\nof it"}
    assert settled["details"] == asked


def test_card_changed_while_open_is_flagged(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask("both_transfer", details={"amount": 100})
    page = opens().open_card(card)
    page.wait_for_selector(".connection.live")
    changed = {"digest": card["digest"], "details": {"amount": 7}}
    served.as_person("bo", "POST", f"/confirm/{card['id']}/approve", changed)
    expect(page.locator(".notes")).to_contain_text("changed while you were looking")
    expect(page.locator(".parameters")).to_contain_text("requested: 100")
    page.click(APPROVE)
    expect(page.locator(".outcome")).to_contain_text("Approved by anna")
    assert served.card(card["id"])["approved_details"] == {"amount": 7}


def test_second_approver_sees_who_decided(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask()
    late = opens("bo")
    late.page.route("**/inbox/events", lambda route: route.abort())
    late.open_card(card)
    first = opens("anna").open_card(card)
    first.click(APPROVE)
    expect(first.locator(".outcome")).to_contain_text("Approved by anna")
    late.page.click(DENY)
    expect(late.page.locator(".notes")).to_contain_text("Too late: already approved by anna")
    expect(late.page.locator(".outcome")).to_contain_text("Approved by anna")
    assert served.card(card["id"])["status"] == "approved"


def test_outdated_view_cannot_approve(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask("both_transfer", details={"amount": 100})
    late = opens("anna")
    late.page.route("**/inbox/events", lambda route: route.abort())
    page = late.open_card(card)
    changed = {"digest": card["digest"], "details": {"amount": 7}}
    served.as_person("bo", "POST", f"/confirm/{card['id']}/approve", changed)
    page.click(APPROVE)
    expect(page.locator(".answer")).to_contain_text("changed after you read it")
    expect(page.locator(".notes")).to_contain_text("changed while you were looking")
    assert served.card(card["id"])["status"] == "pending"


def test_decision_before_the_page_connects_is_not_missed(
    served: ConfirmationPage, opens: Opens
) -> None:
    card = served.ask()
    person = opens()

    def deny_first(route: Route) -> None:
        served.as_person("bo", "POST", f"/confirm/{card['id']}/deny", {})
        route.continue_()

    person.page.route("**/inbox/events", deny_first)
    page = person.open_card(card, armed=False)
    expect(page.locator(".outcome")).to_contain_text("Denied by bo")


def test_countdown_is_shown_and_expired_means_no(served: ConfirmationPage, opens: Opens) -> None:
    hour = 3600
    card = served.ask(timeout_seconds=hour)
    late = opens(separate=True)  # with a stopped clock
    late.page.clock.install(time=1_000_000)
    late.page.clock.pause_at(1_001_000)
    late.page.route("**/inbox/events", lambda route: route.abort())  # so that it gets no events
    page = late.open_card(card, armed=False)
    page.clock.fast_forward(1000 * (hour - 30))
    expect(page.locator(".clock")).to_have_text(re.compile(r"^\d+ s left$"))
    page.clock.fast_forward(31_000)
    expect(page.locator(".clock")).to_have_text("Time is up: the answer is no")
    expect(page.locator(APPROVE)).to_be_disabled()
    served.ahead_s += hour
    assert served.card(card["id"])["status"] == "expired"
    page.unroute("**/inbox/events")
    page.clock.resume()
    expect(page.locator(".outcome h2")).to_contain_text("Expired")
    other = served.ask(timeout_seconds=hour)
    page.goto("about:blank")
    page.route("**/inbox/events", lambda route: route.abort())
    page = late.open_card(other, armed=False)
    page.clock.run_for(900)
    served.ahead_s += hour
    page.click(APPROVE)
    expect(page.locator(".card")).to_contain_text("Expired means no")


def test_hidden_characters_are_shown_and_counted(served: ConfirmationPage, opens: Opens) -> None:
    details = {
        "command": "rm \u202egpj.exe\u202c \x1b[2K\u200b\u2800\u3164\ufeff end",
        "lines": "one\n\ttwo\r\nthree\u2028four",
        "na\u200bme": {"in\u00adside": ["\U000e0041"]},
        "letters": "שלום Привет 你好 é",
        "written": "\\u{202e}",
    }
    card = served.ask(
        "run\u200bit\n", details=details, requester="a\u2066b", session_key="s\u00a0t"
    )
    page = opens().open_card(card)
    text = page.locator(".card").inner_text()
    for value in ("command", "letters", "written"):
        assert visible(details[value]) in text
    assert "one\n" in text
    assert "two\\u{d}\nthree\\u{2028}four" in text
    assert "\\u{e0041}" in text
    assert page.locator("h1").inner_text() == "run\\u{200b}it\\u{a}"
    expect(page.locator(".note.warning")).to_contain_text("16 hidden characters")
    assert not any(is_hidden(letter) for letter in text if letter not in "\n\t")
    page.get_by_role("button", name="Show exact JSON").click()
    raw = page.locator(".raw pre").inner_text()
    assert json.loads(raw) == details
    assert raw.isprintable() or "\n" in raw


@pytest.mark.soak
def test_page_and_service_agree_on_hidden_characters(
    served: ConfirmationPage, opens: Opens
) -> None:
    page = opens().open()
    found = page.evaluate(
        """async () => {
          const { runs } = await import("/static/shown_text.js");
          const ranges = [];
          for (let first = 0; first <= 0x10ffff; first += 0x1000) {
            const codes = [...Array(0x1000).keys()].map((at) => first + at);
            // A letter in between keeps neighbours from combining.
            const text = codes.map((code) => String.fromCodePoint(code)).join("a");
            for (const run of runs(text).filter((one) => one.hidden)) {
              const code = run.text.codePointAt(0);
              if (ranges.at(-1)?.[1] === code - 1) ranges.at(-1)[1] = code;
              else ranges.push([code, code]);
            }
          }
          return ranges;
        }"""
    )
    there = {code for first, last in found for code in range(first, last + 1)}
    here = {code for code in range(sys.maxunicode + 1) if is_hidden(chr(code))}
    # The browser may know newer characters than this Python; nothing else may differ.
    assert there <= here
    assert {unicodedata.category(chr(code)) for code in here - there} <= {"Cn"}
    assert len(there) > 900_000


@pytest.mark.parametrize(
    "payloads", [PAYLOADS[::5], pytest.param(PAYLOADS, marks=pytest.mark.soak)]
)
def test_injected_markup_stays_text_in_every_field(
    served: ConfirmationPage, opens: Opens, payloads: Sequence[str]
) -> None:
    served.clear()
    cards = [
        served.ask(
            payload,
            description=payload,
            details={payload: payload, "nested": {payload: [payload]}, "token": payload},
            requester=payload,
            session_key=payload,
        )
        for payload in payloads
    ]
    assert len(cards) >= 10
    person = opens()
    page = person.open()
    expect(page.locator(".row")).to_have_count(len(cards))
    assert page.locator(".row .action").all_inner_texts() == [*map(visible, payloads)]
    assert person.hits() == []
    for card, payload in zip(cards, payloads, strict=True):
        page = person.open_card(card, armed=False)
        for button in page.locator(".covered button").all():
            button.click()
        shown = visible(payload)
        places = ("h1", ".parameters .name", ".parameters .value", ".own-words .value")
        assert page.evaluate(_TEXTS, places) == [shown] * len(places)
        assert shown in (page.locator(".claimed").text_content() or "")
        assert person.hits() == []
        served.as_person("bo", "POST", f"/confirm/{card['id']}/deny", {"reason": payload})
        expect(page.locator(".outcome q")).to_have_text(shown, use_inner_text=True)
    _only_own_elements(page)
    _whitelist_payloads(served, payloads)
    for view in ("history", "whitelist", "audit"):
        page = person.open(view)
        page.wait_for_selector("main li")
        if view != "audit":
            shown = page.locator("main .action").all_text_contents()
            # The history is paginated, newest first.
            assert set(shown) >= set(map(visible, payloads[-40:]))
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        _only_own_elements(page)
        assert person.hits() == []


_TEXTS = "places => places.map((one) => document.querySelector(`main ${one}`).textContent)"


def _whitelist_payloads(served: ConfirmationPage, payloads: Sequence[str]) -> None:
    for payload in payloads:
        entry = {
            **dict.fromkeys(("action", "session_key", "reason"), payload),
            "constraints": {payload.replace(".", ""): {"one_of": [payload]}},
        }
        added = served.as_person("bo", "POST", "/whitelist", entry)
        assert added.get("action") == payload, added


def _only_own_elements(page: Page) -> None:
    foreign = "script, img, svg, iframe, object, embed, style, link, form, video, audio, base, meta"
    assert page.locator("main").locator(foreign).count() == 0
    assert (
        page.evaluate(
            """() => [...document.querySelectorAll("body *")].flatMap((node) =>
          [...node.attributes].filter((one) => /^on|^src|^formaction|^xlink/.test(one.name)
            || /^\\s*(javascript|data):/i.test(one.value)).map((one) => one.name))"""
        )
        == []
    )


def test_whitelist_entries_are_added_and_revoked(served: ConfirmationPage, opens: Opens) -> None:
    page = opens().open("whitelist")
    page.get_by_text("Add an entry").click()
    page.get_by_label("Action", exact=True).fill("delete_data")
    page.get_by_role("button", name="Approve without asking").click()
    expect(page.get_by_role("alert")).to_contain_text("can never be bypassed")
    page.get_by_label("Action", exact=True).fill("page_ticket")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Parameter", exact=True).fill("number")
    page.get_by_label("Condition", exact=True).select_option("is at most")
    page.get_by_label("Value").fill("5")
    page.get_by_role("button", name="Approve without asking").click()
    entry = page.locator(".entry", has_text="page_ticket")
    expect(entry).to_contain_text("number is at most 5")
    through = served.ask("page_ticket", details={"number": 5})
    held = served.ask("page_ticket", details={"number": 6})
    assert (through["status"], held["status"]) == ("auto_approved", "pending")
    entry.get_by_role("button", name="Revoke").click()
    expect(entry.get_by_role("button", name="Revoke")).to_have_count(0)
    assert served.ask("page_ticket", details={"number": 4})["status"] == "pending"


def test_history_audit_and_policy(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask("seen_in_history")
    served.as_person("bo", "POST", f"/confirm/{card['id']}/deny", {"reason": "not today"})
    person = opens()
    page = person.open("history")
    page.get_by_label("Show").select_option("denied")
    expect(page.locator(".row").first).to_contain_text("not today")
    expect(page.locator(".row .pill", has_text="approved")).to_have_count(0)
    page.get_by_label("Show").select_option("cancelled")
    expect(page.get_by_text("Nothing here yet.")).to_be_visible()
    page = person.open("audit")
    page.get_by_role("button", name="Verify the chain").click()
    expect(page.locator(".note.good")).to_contain_text("The chain is intact")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["seq"] == 1
    page = person.open("policy")
    expect(page.locator("main")).to_contain_text("wipe_database")
    expect(page.locator("main")).to_contain_text("Nothing is lost by it.")


def test_login_link_logs_in_and_notice_link_opens_the_card(
    served: ConfirmationPage, opens: Opens
) -> None:
    stranger = opens("")
    link = served.service.write(credentials.add_link, "bo")
    stranger.page.goto(f"{served.url}/open#{link}")
    expect(stranger.page.locator(".me")).to_have_text("bo")
    card = served.ask("by_link")
    anna = opens("anna")
    anna.page.goto(card["page_url"])
    expect(anna.page.locator("h1")).to_have_text("by_link")
    expect(anna.page.locator(".me")).to_have_text("anna")
    anna.page.click(DENY)
    expect(anna.page.locator(".outcome")).to_contain_text("Denied by anna")


def test_no_get_decides(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask()
    person = opens()
    links = set()
    for view in (*VIEWS, f"card/{card['id']}"):
        page = person.open(view)
        links |= set(page.evaluate("[...document.links].map((one) => one.getAttribute('href'))"))
    # Follow the links of one card only.
    links = {link for link in links if not link.startswith("#/card/") or card["id"] in link}
    guessed = {
        f"/confirm/{card['id']}{way}?digest={card['digest']}&approve=1"
        for way in ("", "/approve", "/deny", "/cancel", "/redeem")
    }
    for link in sorted(links | guessed | {"/open", "/whitelist", "/logout"}):
        if link.startswith("/"):
            person.page.evaluate("link => fetch(link).then((answer) => answer.status)", link)
        else:
            person.page.goto(f"{served.url}/{link}")
    assert served.card(card["id"])["status"] == "pending"
    assert person.decisions() == []


def test_no_other_site_can_frame_the_page(served: ConfirmationPage, opens: Opens) -> None:
    person = opens()
    frames = f"<iframe src='{served.url}/'></iframe><iframe src='{served.url}/open'></iframe>"
    with foreign_site(f"<h1>win</h1>{frames}") as url:
        for host in (url, url.replace("127.0.0.1", "localhost")):
            person.page.goto(host)
            for frame in person.page.frames[1:]:
                assert "Journeyman" not in frame.content()
                assert frame.url.startswith("chrome-error:")


def test_no_other_site_can_decide(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask()
    path = f"{served.url}/confirm/{card['id']}"
    body = json.dumps({"digest": card["digest"]})
    tries = f"""async () => {{
      const body = {json.dumps(body)};
      const answers = [];
      for (const way of ["approve", "deny"]) {{
        for (const mode of ["cors", "no-cors", "same-origin"]) {{
          for (const type of ["text/plain", "application/json"]) {{
            const asked = {{ method: "POST", mode, credentials: "include", body,
              headers: {{ "Content-Type": type }} }};
            const answer = fetch(`{path}/${{way}}`, asked);
            answers.push(await answer.then((one) => one.type, () => "refused"));
          }}
        }}
        navigator.sendBeacon(`{path}/${{way}}`, body);
      }}
      return answers;
    }}"""
    form = f"<form method=post enctype='text/plain' action='{path}/approve'>"
    form += f'<input name=\'{{"digest": "{card["digest"]}", "x": "\' value=\'"}}\'></form>'
    person = opens()
    with foreign_site(f"<h1>win</h1>{form}") as url:
        # The first is same-site for a browser, so it sends the cookie; the other is cross-site.
        for host in (url, url.replace("127.0.0.1", "localhost")):
            person.page.goto(host)
            assert set(person.page.evaluate(tries)) <= {"refused", "opaque"}
            person.page.goto(host)
            with person.page.expect_navigation():
                person.page.evaluate("document.forms[0].submit()")
            expect(person.page.locator("body")).to_contain_text("must not use this service")
    assert served.card(card["id"])["status"] == "pending"


@pytest.mark.soak
def test_phone_layout_fits_and_targets_are_large_enough(
    served: ConfirmationPage, opens: Opens
) -> None:
    wide = {"x" * 90: "y" * 3000, "list": [{"deep": {"er": "z" * 300}}], "secret": "s" * 40}
    long = {"action": "coded_" + "long" * 40, "details": wide, "requester": "r" * 150}
    settled = served.ask(**long)
    served.as_person("bo", "POST", f"/confirm/{settled['id']}/deny", {"reason": "n" * 200})
    let = {"action": "page_" + "long" * 40, "reason": "n" * 200, "constraints": {}}
    assert "id" in served.as_person("bo", "POST", "/whitelist", let)
    card = served.ask(**long)
    person = opens(viewport={"width": 390, "height": 844}, has_touch=True)
    for view in (*VIEWS, f"card/{card['id']}"):
        page = person.open(view)
        page.wait_for_selector("main li, .parameters")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            heights = page.evaluate(
                """() => [...document.querySelectorAll("button, .button, nav a, summary, select")]
                  .filter((one) => one.checkVisibility() && one.offsetHeight < 44)
                  .map((one) => `${one.textContent} ${one.offsetHeight}`)"""
            )
            assert heights == [], (view, scheme)
    page.locator(".fold").first.tap()
    expect(page.locator(".card-body")).to_contain_text("y" * 3000)
    page.locator(DENY).scroll_into_view_if_needed()
    expect(page.locator(DENY)).to_be_enabled()
    page.locator(DENY).tap()
    expect(page.locator(".outcome")).to_contain_text("Denied by anna")


def test_ended_session_asks_to_log_in(served: ConfirmationPage, opens: Opens) -> None:
    card = served.ask()
    person = opens("")
    log_in(person, "bo", served.keys["bo"])
    page = person.open_card(card)
    page.evaluate(
        """async () => {
          const csrf = localStorage.getItem("journeyman.session");
          const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
          await fetch("/logout", { method: "POST", headers, body: "{}" });
        }"""
    )
    page.click(APPROVE)
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    assert served.card(card["id"])["status"] == "pending"


def test_sources_never_turn_text_into_code() -> None:
    ways = re.compile(
        r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
        r"|createContextualFragment|setHTML|srcdoc|javascript:|https?:(?!//www\.w3\.org/2000/svg)"
        r"|trustedTypes"
    )
    sources = [
        file
        for file in files("journeyman.confirm").joinpath("page").iterdir()
        if file.name.endswith((".js", ".html", ".css", ".svg"))
    ]
    assert len(sources) > 10
    for file in sources:
        assert not ways.findall(file.read_text(encoding="utf-8")), file.name
    html = files("journeyman.confirm").joinpath("page", "index.html").read_text(encoding="utf-8")
    assert not re.findall(
        r"<style|\bstyle=|<script(?! type=\"module\" src=\"/static/)|\son\w+=", html
    )
