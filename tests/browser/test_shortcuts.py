"""Keyboard shortcuts: what opens a text field types into it, and no letter writes anything."""

import string
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Request, expect

import omnigraph
from tests.support.browser import Visit, visiting
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = "node Person { name: String @key  born: I64? }"
REMARK: Final = "was it 1906? a clerk may have made a mistake"
# `g` begins the keys that go to another page.
KEYS: Final = [key for key in string.printable.strip() if key != "g"]
ADDRESSES: Final = (
    ("proposals", "1"),
    ("proposals",),
    ("branches",),
    ("history",),
    ("query",),
    ("schema",),
    ("entities", "Person"),
)
READS: Final = ("/query", "/preview")
PRESS: Final = """keys => {
  for (const key of keys) dispatchEvent(new KeyboardEvent("keydown", {key, cancelable: true}));
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("shortcuts")
    graph = omnigraph.init(folder / "world", SCHEMA, actor="ada")
    graph.load({"Person": [{"name": "Grace", "born": 1907}]}, index=False)
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { born: 1906 } where name = "Grace" }')
    graph.proposals.create("draft", "Correct a year", actor="ada")
    with serving(settings_for(folder, {"world": str(folder / "world")})) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visit]:
    """A tab that is logged in as grace, who may approve and merge what ada proposed."""
    with visiting(browser, served.url) as own:
        own.hold(served.tokens().create("grace")[0])
        yield own


@pytest.fixture
def proposal(visit: Visit) -> Page:
    """The proposal, once everything may be done to it."""
    visit.go("graphs", "world", "proposals", "1")
    expect(visit.page.get_by_role("button", name="Merge")).to_be_enabled()
    rows = visit.page.get_by_role("list", name="Changed rows")
    expect(rows.get_by_text("Grace", exact=True)).to_be_visible()
    return visit.page


def require_untouched(served: Served) -> None:
    shown = served.service.own_graph("world").proposals.show(1).proposal
    assert (shown.state, shown.approvals, shown.comments) == ("open", (), ())


def test_letters_after_c_are_typed_into_the_comment(proposal, served):
    proposal.keyboard.press("j")
    expect(proposal.get_by_role("region", name="Person Grace")).to_be_visible()
    proposal.keyboard.type(f"c{REMARK}")

    box = proposal.get_by_role("textbox", name="Comment on the row")
    expect(box).to_have_value(REMARK)
    expect(box).to_be_focused()
    expect(proposal.get_by_role("dialog")).to_have_count(0)
    require_untouched(served)

    box.press("Escape")
    expect(proposal.get_by_role("button", name="Comment on the row")).to_be_focused()


def test_the_comment_has_the_focus_before_the_next_key_of_the_same_task(proposal):
    proposal.keyboard.press("j")
    expect(proposal.get_by_role("region", name="Person Grace")).to_be_visible()

    focused = f"() => {{ ({PRESS})(['c']); return document.activeElement.ariaLabel; }}"
    assert proposal.evaluate(focused) == "Comment on the row"


@pytest.mark.parametrize("tab", ["Changes", "Conflicts", "Conversation 0"])
def test_c_without_a_row_comments_on_the_proposal(proposal, served, tab):
    proposal.get_by_role("tab", name=tab).click()
    proposal.keyboard.type(f"c{REMARK}")

    box = proposal.get_by_role("textbox", name="Comment on the proposal")
    expect(box).to_have_value(REMARK)
    expect(proposal.get_by_role("dialog")).to_have_count(0)
    require_untouched(served)


def test_n_types_into_the_title_of_a_new_proposal(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "proposals")
    expect(page.get_by_role("link", name="New proposal")).to_be_visible()
    page.keyboard.type("nCorrect a name")
    expect(page.get_by_label("Title")).to_have_value("Correct a name")

    page.get_by_role("heading", level=1).click()
    page.keyboard.type("n too")
    expect(page.get_by_label("Title")).to_have_value("Correct a name too")


def test_approving_by_key_has_to_be_confirmed(proposal, served):
    # Neither the letters of a word nor the space or the line end after it confirm.
    for typed in ("a", "am", "a ", "a\n", "aa"):
        proposal.keyboard.type(typed)
        proposal.wait_for_timeout(100)
        proposal.keyboard.press("Escape")
        expect(proposal.get_by_role("dialog")).to_have_count(0)
    require_untouched(served)

    proposal.keyboard.press("a")
    dialog = proposal.get_by_role("dialog", name="Approve the proposal")
    expect(dialog).to_contain_text("merging draft into main, as this page shows it")
    dialog.get_by_role("button", name="Cancel").click()
    require_untouched(served)
    proposal.keyboard.press("a")
    dialog.get_by_role("button", name="Approve").press("Enter")
    expect(proposal.get_by_text("approved by grace")).to_be_visible()
    proposal.get_by_role("button", name="Withdraw approval").click()
    expect(proposal.get_by_text("approved by nobody")).to_be_visible()


def test_keys_of_the_same_task_do_not_reach_the_page_behind_a_dialog(proposal):
    proposal.evaluate(PRESS, ["a", "m", "?"])
    expect(proposal.get_by_role("dialog")).to_have_count(1)
    expect(proposal.get_by_role("dialog", name="Approve the proposal")).to_be_visible()


def test_the_dialogs_of_keys_are_accessible_and_give_the_focus_back(visit: Visit, proposal):
    heading = proposal.get_by_role("tab", name="Changes")
    for key in ("a", "m", "?"):
        heading.focus()
        proposal.keyboard.press(key)
        expect(proposal.get_by_role("dialog")).to_be_visible()
        assert visit.findings() == []
        proposal.keyboard.press("Escape")
        expect(proposal.get_by_role("dialog")).to_have_count(0)
        expect(heading).to_be_focused()


@pytest.mark.parametrize("address", ADDRESSES, ids="/".join)
def test_no_letter_writes(visit: Visit, served, address):
    page, writes = visit.page, []

    def see(request: Request) -> None:
        if request.method != "GET" and not request.url.endswith(READS):
            writes.append(f"{request.method} {request.url}")

    page.on("request", see)
    query = {"id": "Grace"} if address[0] == "entities" else {}
    visit.go("graphs", "world", *address, **query)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    page.keyboard.press("j")
    for key in KEYS:
        # In the page, and once more in what the key opened.
        page.keyboard.press(key)
        page.keyboard.press(key)
        page.keyboard.press("Escape")
        page.evaluate("() => document.activeElement?.blur()")
    page.wait_for_timeout(200)
    assert writes == []
    require_untouched(served)
