"""A person in front of the page: a real Chromium, logged in, with everything written down that a
page must not do: dialogs, foreign scripts, broken rules of the content policy, errors.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.journeys.confirm_page_service import ConfirmationPage

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_WATCH = """
window.hits = [];
window.hit = () => window.hits.push("ran");
document.addEventListener("securitypolicyviolation", (event) =>
  window.hits.push(`${event.violatedDirective} ${event.blockedURI}`));
"""

_PATIENCE_MS = 30_000
ARMED_AFTER_MS = 800

APPROVE = "button.approve"
DENY = ".decision button.deny"


def chromium() -> str:
    """Where Chromium is; empty when it is not."""
    usual = Path("/usr/bin/chromium")
    return str(usual) if usual.exists() else shutil.which("chromium") or ""


@contextmanager
def a_browser() -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE_MS)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        environ = {name: it for name, it in os.environ.items() if not name.startswith("XDG_")}
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=list(_FLAGS), env={**environ, "HOME": home}
        )
        try:
            yield browser
        finally:
            browser.close()


def a_profile(browser: Browser, **given: Any) -> BrowserContext:
    """A browser of somebody's own. Nothing in it moves: to draw that takes longer than the rest."""
    return browser.new_context(reduced_motion="reduce", **given)


class Person:
    """Somebody with the page open. For one who is `hasty`, time can be put ahead, so that nobody
    waits until the buttons of a card are on.
    """

    def __init__(
        self, served: ConfirmationPage, context: BrowserContext, *, hasty: bool = False
    ) -> None:
        self.served = served
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(_PATIENCE_MS)
        self._hasty = hasty
        if hasty:
            self.page.clock.install()
        self.troubles: list[str] = []
        self.sent: list[str] = []
        self.page.add_init_script(_WATCH)
        self.page.on("dialog", lambda dialog: (self._trouble("dialog"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self._trouble(f"error: {error}"))
        self.page.on("request", lambda request: self._sent(request.method, request.url))

    def leave(self) -> None:
        """Leave the page; what happened on it is forgotten. Where one goes is of the same site,
        because for another one the browser starts another process.
        """
        self.page.goto(f"{self.served.url}/static/icon.svg")
        self.page.unroute_all()
        self.troubles, self.sent = [], []

    def open(self, route: str = "inbox") -> Page:
        """Go to a view and wait until it is there."""
        self.page.goto(f"{self.served.url}/#/{route}")
        self.page.wait_for_selector(f"main[data-view='{route.partition('/')[0]}'] h1")
        return self.page

    def open_card(self, card: dict[str, Any], *, armed: bool = True) -> Page:
        self.open(f"card/{card['id']}")
        self.page.wait_for_function(
            "id => document.querySelector('.short-id')?.textContent === id", arg=card["short_id"]
        )
        if armed:
            if self._hasty:
                self.page.clock.fast_forward(ARMED_AFTER_MS)
            self.page.wait_for_selector(f"{DENY}:enabled")
        return self.page

    def hits(self) -> list[str]:
        """Everything that happened and must not."""
        ran: list[str] = self.page.evaluate("window.hits")
        return ran + self.troubles

    def decisions(self) -> list[str]:
        """Which decisions the page sent."""
        return [sent for sent in self.sent if sent.startswith("POST") and "/confirm/" in sent]

    def _trouble(self, what: str) -> None:
        self.troubles.append(what)

    def _sent(self, method: str, url: str) -> None:
        self.sent.append(f"{method} {url.removeprefix(self.served.url)}")


def log_in(person: Person, name: str, key: str) -> None:
    """As a person does, with the form."""
    page = person.page
    page.goto(person.served.url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Log in").click()


@contextmanager
def foreign_site(body: str) -> Iterator[str]:
    """A page of somebody else, on another port; its address."""

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
