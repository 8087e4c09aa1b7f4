"""A real browser: the Chromium of the system, driven by Playwright; it reaches one server only."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, Playwright, Request, ViewportSize, expect

from tests.support.sources import REPOSITORY

APP: Final = REPOSITORY / "src/omnigraph/server/built_app/index.html"
AXE: Final = REPOSITORY / "web/node_modules/axe-core/axe.min.js"
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERIOUS: Final = ("serious", "critical")
PHONE: Final = ViewportSize(width=390, height=844)
DESK: Final = ViewportSize(width=1200, height=760)
PATIENCE_MS: Final = 30_000
"""Other tests share the machine: what is waited for may take much longer than it needs."""

expect.set_options(timeout=PATIENCE_MS)


@cache
def lacking() -> str | None:
    """What a browser test lacks on this machine; None if nothing."""
    if not APP.is_file():
        return "the web app was not built (make web)"
    if find_chromium() is None:
        return "there is no Chromium (apt-get install chromium)"
    return None


def find_chromium() -> str | None:
    """The Chromium of the system."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name)) is not None), None)


def install_chromium() -> None:
    """Install Chromium from the packages of the system where that is allowed: `make test` does."""
    if find_chromium() is not None or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    sys.stderr.write("installing chromium for the tests of the web app\n")
    install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
    # A machine that has installed nothing yet does not know its packages.
    for command in (install, ["apt-get", "update"], install):
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if command is install and ran.returncode == 0:
            return
    sys.stderr.write(f"{ran.stdout[-500:]}{ran.stderr[-500:]}\n")


def launch(playwright: Playwright) -> Browser:
    """A browser without a profile: it remembers nothing, and shows nothing."""
    return playwright.chromium.launch(
        executable_path=find_chromium(), args=list(FLAGS), timeout=4 * PATIENCE_MS
    )


@dataclass
class Visit:
    """A tab on the app of a server, and all that it asked for or complained of."""

    page: Page
    url: str
    strangers: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, *parts: str, **query: str) -> None:
        """Show a page of the app by its address."""
        from urllib.parse import quote, urlencode

        path = "/".join(quote(part, safe="") for part in parts)
        values = f"?{urlencode(query)}" if query else ""
        self.page.goto(f"{self.url}/#/{path}{values}")

    def log_in(self, token: str) -> None:
        """Open the app, and give it a token as a person does."""
        self.page.goto(self.url)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("button", name="Log out").wait_for()

    def hold(self, token: str) -> None:
        """Have a token from the start, as a tab has that was logged in before."""
        stored = f"sessionStorage.setItem('omnigraph.token', {json.dumps(token)})"
        self.page.add_init_script(stored)

    def findings(self, *rules: str) -> list[str]:
        """What axe finds on the page that is serious or critical, by all rules or by some."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        options = {"runOnly": list(rules)} if rules else {}
        run = "options => axe.run(document, options)"
        found: dict[str, Any] = self.page.evaluate(run, options)
        return [
            f"{each['id']}: {each['help']}: {node['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
            for node in each["nodes"]
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(
            self.page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


@contextmanager
def visiting(browser: Browser, url: str, **context: Any) -> Iterator[Visit]:
    """A tab of its own for the block; it must end without a complaint or a request elsewhere."""
    # Colours that change slowly would be measured halfway.
    context = {"viewport": DESK, "reduced_motion": "reduce", **context}
    own = browser.new_context(**context)
    page = own.new_page()
    page.set_default_timeout(PATIENCE_MS)
    visit = Visit(page, url)

    def see(request: Request) -> None:
        if not request.url.startswith((url, "data:")):
            visit.strangers.append(request.url)

    page.on("request", see)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.on("dialog", lambda dialog: visit.complaints.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda line: (
            visit.complaints.append(line.text)
            # A refusal by the server is part of some stories.
            if line.type == "error" and "Failed to load resource" not in line.text
            else None
        ),
    )
    try:
        yield visit
    finally:
        own.close()
    assert visit.strangers == []
    assert visit.complaints == []


def screenshot(visit: Visit, name: str) -> None:
    """Write a picture of the page into docs/images, when pictures are to be written."""
    if os.environ.get("OMNIGRAPH_BLESS"):
        target = REPOSITORY / "docs" / "images" / name
        target.parent.mkdir(exist_ok=True)
        visit.page.screenshot(path=target, animations="disabled")
        _shrink(target)


def _shrink(path: Path) -> None:
    """Make a picture small, where the tool for it is installed."""
    if (tool := shutil.which("pngquant")) is not None:
        subprocess.run([tool, "--force", "--output", path, "64", path], check=False)


if __name__ == "__main__":
    install_chromium()
    if (reason := lacking()) is not None:
        sys.stderr.write(f"THE TESTS OF THE WEB APP ARE SKIPPED: {reason}\n")
