"""Messages of the pages are for a person: no header, no command line, no Python."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Visit, visiting
from tests.support.served import Served
from tests.support.sources import REPOSITORY, every_source

WEB: Final = REPOSITORY / "web"
NOT_FOR_A_PAGE: Final = re.compile(
    r"(^|\s)--[a-z]|Authorization|If-Match|Idempotency|openapi|in Python|graph\.\w+[(.]|curl"
    r"|OMNIGRAPH_|\bpip\b|omnigraph [a-z]+|=\.\.\.|the header|on_error="
)
OPERATOR: Final = "For the operator of this server: "
ELSEWHERE: Final = re.compile(
    r"^(cli|connector|streams|load|export|originals|remote|documents|algorithms|agents"
    r"|engine/spark|server/(settings|serve|state|tokens)\.py|embedding)\b"
)
"""Modules whose errors no route that the pages use can raise, or which only the operator sees."""

Hints = Callable[[list[tuple[str, str]]], list[str]]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Hints:
    """What a page shows for hints of the server, each with the cause of its problem."""
    bundler = WEB / "node_modules/.bin/rolldown"
    if shutil.which("node") is None or not bundler.exists():
        pytest.skip("BROWSER TESTS ARE SKIPPED: there is no Node, or the app was not built")
    bundle = tmp_path_factory.mktemp("hints") / "hints.mjs"
    options = ["--platform", "node", "--format", "esm", "--file", str(bundle), "--logLevel", "warn"]
    subprocess.run([bundler, WEB / "tests/hints.ts", *options], check=True)

    def run(hints: list[tuple[str, str]]) -> list[str]:
        problems = json.dumps([{"cause": cause, "hint": hint} for cause, hint in hints])
        done = subprocess.run(
            ["node", bundle], input=problems, capture_output=True, text=True, check=True
        )
        found: list[str] = json.loads(done.stdout)
        return found

    return run


def texts(value: ast.expr) -> Iterator[str]:
    """The texts that an expression may have, with `x` for what is only known at run time."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(next(texts(part), "x") for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from texts(one)
            yield from texts(other)
        case ast.Call(keywords=keywords):
            yield from (text for each in keywords for text in texts(each.value))
        case _:
            pass


def hints_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="hint", value=value):
                yield from texts(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "hint" in name.lower():
                yield from texts(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if (
                "hint" in name.lower()
            ):
                yield from texts(value)


def test_no_hint_of_the_server_is_shown_as_for_a_program(shown: Hints):
    found = [
        (source.path, hint)
        for source in every_source()
        if ELSEWHERE.match(source.path) is None
        for hint in hints_of(source.tree)
    ]
    raw = [hint for _, hint in found if NOT_FOR_A_PAGE.search(hint)]
    assert len(raw) > 30, "the server gives hints for programs"

    answers = shown([("invalid_input", hint) for _, hint in found])

    wrong = [
        (path, hint, answer)
        for (path, hint), answer in zip(found, answers, strict=True)
        if NOT_FOR_A_PAGE.search(answer) and not answer.startswith(OPERATOR)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("cause", "hint", "expected"),
    [
        ("unauthenticated", "send 'Authorization: Bearer TOKEN'; …", "Ask the operator"),
        ("commit_not_found", "see 'omnigraph commit list'", "see the page History"),
        (
            "tag_not_found",
            "see 'omnigraph commit list' and 'omnigraph tag list'",
            "see the page History",
        ),
        (
            "branch_not_found",
            "nothing was merged; see 'omnigraph branch list'",
            "nothing was merged; see the page Branches",
        ),
        (
            "branch_not_found",
            "'omnigraph proposal close 7' closes the proposal",
            "the button Close closes the proposal",
        ),
        ("merge_conflicts", "decide with --resolve ours|theirs or a file", "the tab Conflicts"),
        ("query_timeout", "narrow it; or give it more with --timeout", "Narrow the pattern"),
        ("invalid_parameter", "name one of them: a, b", "Leave one query in the text."),
        (
            "uncovered_drift",
            "run 'omnigraph repair', which compares both versions",
            f"{OPERATOR}run 'omnigraph repair'",
        ),
        ("embedding_key", "set OPENAI_API_KEY, or …", f"{OPERATOR}set OPENAI_API_KEY"),
        ("not_installed", "pip install 'omnigraph[spark]'", f"{OPERATOR}pip install"),
        ("forbidden", "the policy is rules.cedar: ask whoever keeps it", "ask whoever keeps it"),
        ("invalid_parameter", "open the graph with actor=…", "ask the operator of this server"),
        ("invalid_input", "name one of them with 'as'", "name one of them with 'as'"),
        ("invalid_input", "write $x: Type", "write $x: Type"),
    ],
)
def test_hints_name_what_a_person_at_the_page_can_do(
    shown: Hints, cause: str, hint: str, expected: str
):
    [answer] = shown([(cause, hint)])
    assert expected in answer


@pytest.mark.parametrize(
    ("cause", "hint"),
    [
        ("invalid_input", "see /openapi.json"),
        ("invalid_input", "make a branch: graph.branches.create(name)"),
        ("invalid_input", "run it with mutate"),
        ("invalid_parameter", "say which: --into BRANCH, or into='branch' in Python"),
    ],
)
def test_hints_for_programs_alone_are_left_out(shown: Hints, cause: str, hint: str):
    assert shown([(cause, hint)]) == [""]


def log_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


# The last ones cannot be sent in a header at all.
@pytest.mark.parametrize("token", ["omni_wrong", "x" * 9_000, "two words", "…", "\u202e\u200b"])
def test_a_wrong_token_is_explained_to_a_person(browser: Browser, world: Served, token: str):
    with visiting(browser, world.url) as visit:
        page = visit.page
        page.goto(world.url)
        expect(page.get_by_label("Token")).to_be_focused()
        log_in(page, token)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("does not accept this token")
        expect(alert).to_contain_text("ask the operator of this server for a new one")
        assert not NOT_FOR_A_PAGE.search(alert.inner_text())
        field = page.get_by_label("Token")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile("does not accept this token"))
        assert visit.findings() == []

        log_in(page, world.token)
        expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_a_token_that_ends_is_explained(browser: Browser, world: Served):
    token, _ = world.tokens().create("grace", lifetime=timedelta(days=1))
    with visiting(browser, world.url) as visit:
        visit.page.goto(world.url)
        log_in(visit.page, token)
        expect(visit.page.get_by_role("heading", name="History", level=1)).to_be_visible()
        revoke(world, "grace")
        visit.go("graphs", "world", "branches")
        expect(visit.page.get_by_role("status")).to_contain_text("it expired or was revoked")
        expect(visit.page.get_by_text("Ask the operator of the server")).to_be_visible()


def revoke(world: Served, actor: str) -> None:
    for token in world.tokens().list():
        if token.actor == actor:
            world.tokens().revoke(token.token_id)


def test_a_login_link_that_was_used_is_explained(browser: Browser, world: Served):
    code = world.service.logins.offer("grace")
    for expected in ("Log out", "Log in"):
        with visiting(browser, world.url) as visit:
            page = visit.page
            page.goto(f"{world.url}/#/login?code={code}")
            expect(page.get_by_role("button", name=expected)).to_be_visible()
            note = page.get_by_text("The login link has expired or was used before.")
            expect(note).to_have_count(1 if expected == "Log in" else 0)


def test_a_graph_that_does_not_exist_is_explained(visit: Visit):
    visit.go("graphs", "nowhere", "branches")
    alert = visit.page.get_by_role("alert").first
    expect(alert).to_contain_text("The page Graphs lists the graphs of this server.")


def test_a_server_that_stopped_is_explained(browser: Browser, tmp_path: Path):
    from tests.browser.conftest import make_world
    from tests.support.served import serving, settings_for

    make_world(tmp_path / "world")
    with (
        serving(settings_for(tmp_path, {"world": str(tmp_path / "world")})) as served,
        visiting(browser, served.url) as visit,
    ):
        visit.hold(served.token)
        visit.go("graphs", "world", "query")
        expect(visit.page.get_by_role("heading", name="Query", level=1)).to_be_visible()
        expect(visit.page.locator(".loading")).to_have_count(0)
        served.stop()
        visit.page.get_by_label("Query", exact=True).fill("query q() { match { $p: Person } }")
        visit.page.get_by_role("button", name="Run").click()
        expect(visit.page.get_by_role("alert")).to_contain_text("Check your connection")
