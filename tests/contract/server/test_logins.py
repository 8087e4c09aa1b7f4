"""`serve --open`: a browser is logged in by a code that is good once, and never by its address."""

import os
import re
import stat
import subprocess
import sys
import time
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import NotAllowedError
from omnigraph.server.logins import CODE_LIFETIME, LoginCodes
from omnigraph.server.tokens import TokenFile


class MovedClock(SystemClock):
    """The machine's clock, ahead by some time."""

    ahead = timedelta(0)

    def now(self):
        return super().now() + self.ahead


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def codes(tmp_path: Path, clock: MovedClock) -> LoginCodes:
    return LoginCodes(TokenFile(tmp_path / "tokens.json", clock), clock)


def test_a_code_is_good_once(codes):
    code = codes.offer("ada")
    token, actor = codes.redeem(code)

    assert actor == "ada"
    found = codes.tokens.find(token)
    assert found is not None
    assert found.expires_at is not None
    with pytest.raises(NotAllowedError, match="unknown, expired or used"):
        codes.redeem(code)


def test_a_code_expires(codes, clock):
    code = codes.offer("ada")
    clock.ahead = CODE_LIFETIME + timedelta(seconds=1)

    with pytest.raises(NotAllowedError):
        codes.redeem(code)
    assert codes.tokens.list() == ()


def test_the_route_takes_codes_from_its_own_pages_only(served):
    code = served.service.logins.offer("grace")
    with served.client(token=None) as anyone:
        elsewhere = {"Origin": "https://example.com"}
        refused = anyone.post("/session", json={"code": code}, headers=elsewhere)
        wrong = anyone.post("/session", json={"code": "guess"})
        right = anyone.post("/session", json={"code": code})

    assert (refused.status_code, wrong.status_code, right.status_code) == (403, 401, 201)
    with served.client(token=right.json()["token"]) as grace:
        assert grace.get("/session").json()["actor"] == "grace"


def test_serve_opens_a_browser_that_is_logged_in(tmp_path):
    omnigraph.init(tmp_path / "world", "node Person { name: String @key }")
    browser = tmp_path / "browser"
    # What a browser is started with is visible to others; it keeps a copy of the page it is given.
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/address\n'
        f'cp -p "${{1#file://}}" {tmp_path}/page.new && mv {tmp_path}/page.new {tmp_path}/page\n'
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "omnigraph", "serve", "world", "--port", "0", "--open"]
    variables = {
        **os.environ,
        "BROWSER": f"{browser} %s",
        "OMNIGRAPH_ACTOR": "ada",
    }
    process = subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.DEVNULL)
    try:
        give_up = time.monotonic() + 60
        while not (tmp_path / "page").exists():
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.02)
        [target] = re.findall(r"url=([^\"]+)", (tmp_path / "page").read_text())
        address, _, place = unescape(target).partition("/#/")
        code = unquote(place.removeprefix("login?code="))
        answer = httpx.post(f"{address}/session", json={"code": code}, timeout=10)
    finally:
        process.terminate()
        process.wait(30)

    assert answer.json()["actor"] == "ada"
    given = (tmp_path / "address").read_text()
    assert code not in given
    assert urlsplit(address).hostname == "127.0.0.1"
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o600
