"""A person using the page in a real Chromium. Records everything that the page must not do:
dialogs, injected scripts, violations of the content security policy, and errors.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.waiting import LONGEST_S

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

_PATIENCE_MS = 1_000 * LONGEST_S
ARMED_AFTER_MS = 800

APPROVE = "button.approve"
DENY = ".decision button.deny"


def chromium() -> str:
    """Return the path of Chromium, or an empty string if it is not installed."""
    return shutil.which("chromium") or ""


@contextmanager
def launched_browser() -> Iterator[Browser]:
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


def new_profile(browser: Browser, **options: Any) -> BrowserContext:
    """Create a separate profile. Animations are off because they take longer than the tests."""
    return browser.new_context(reduced_motion="reduce", **options)


class ServedPage(Protocol):
    """A page that is being served."""

    @property
    def url(self) -> str: ...


class Person:
    """A person with the page open. With `fast`, the test controls the clock and skips the delay
    before the buttons of a confirmation are enabled.
    """

    def __init__(self, served: ServedPage, context: BrowserContext, *, fast: bool = False) -> None:
        self.served = served
        self.context = context
        self.page: Page = context.new_page()
        self.page.set_default_timeout(_PATIENCE_MS)
        self._fast = fast
        if fast:
            self.page.clock.install()
        self.problems: list[str] = []
        self.sent: list[str] = []
        self.page.add_init_script(_WATCH)
        self.page.on("dialog", lambda dialog: (self._problem("dialog"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self._problem(f"error: {error}"))
        self.page.on("request", lambda request: self._sent(request.method, request.url))

    def leave(self) -> None:
        """Leave the page and clear the records. The target is on the same site because the browser
        starts another process for another site.
        """
        self.page.goto(f"{self.served.url}/static/icon.svg")
        self.page.unroute_all()
        self.problems, self.sent = [], []

    def open(self, route: str = "inbox") -> Page:
        """Open a view and wait until it is shown."""
        self.page.goto(f"{self.served.url}/#/{route}")
        self.page.wait_for_selector(f"main[data-view='{route.partition('/')[0]}'] h1")
        return self.page

    def open_card(self, card: dict[str, Any], *, armed: bool = True) -> Page:
        self.open(f"card/{card['id']}")
        self.page.wait_for_function(
            "id => document.querySelector('.short-id')?.textContent === id", arg=card["short_id"]
        )
        if armed:
            if self._fast:
                self.page.clock.fast_forward(ARMED_AFTER_MS)
            self.page.wait_for_selector(f"{DENY}:enabled")
        return self.page

    def hits(self) -> list[str]:
        """Return everything that the page did and must not do."""
        ran: list[str] = self.page.evaluate("window.hits")
        return ran + self.problems

    def decisions(self) -> list[str]:
        """Return the decisions that the page sent."""
        return [sent for sent in self.sent if sent.startswith("POST") and "/confirm/" in sent]

    def _problem(self, what: str) -> None:
        self.problems.append(what)

    def _sent(self, method: str, url: str) -> None:
        self.sent.append(f"{method} {url.removeprefix(self.served.url)}")


def log_in(person: Person, name: str, key: str) -> None:
    """Log in with the form."""
    page = person.page
    page.goto(person.served.url)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Log in").click()


@contextmanager
def foreign_site(body: str) -> Iterator[str]:
    """Serve a page of another site on another port, and yield its URL."""

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = body.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
