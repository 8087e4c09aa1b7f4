"""Stories of the web app, told to a real browser: log in, look around, query, branch, edit."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import BIG
from tests.support.browser import DESK, PHONE, Visit, screenshot, visiting
from tests.support.served import Served

ADA = "Ada Lovelace"
TEAM = """query team($company: String) {
  match {
    $p: Person
    $p knows $q
    $p worksAt $c
    $c.name = $company
  }
  return { $p.name, $q.name as knows, $p.steps }
  order { knows }
}"""

# Addresses by the heading of their page; those of a commit are added where it is known.
PAGES = {
    "Graphs": "",
    "History": "graphs/world/history",
    "Schema": "graphs/world/schema",
    "Query": "graphs/world/query",
    "Branches": "graphs/world/branches",
    "Proposals": "graphs/world/proposals",
    "Search for machine": "graphs/world/search?q=machine",
    ADA: "graphs/world/entities/Person?id=Ada+Lovelace",
}


def heading(page: Page, name: str | re.Pattern[str]):
    return page.get_by_role("heading", name=name, level=1)


def settle(visit: Visit, name: str) -> None:
    """Wait until a page has loaded what it shows."""
    expect(heading(visit.page, name)).to_be_visible()
    expect(visit.page.locator(".loading, [aria-busy=true]")).to_have_count(0)


def test_a_token_is_asked_for_and_stays_in_the_tab(browser: Browser, world: Served):
    with visiting(browser, world.url) as visit:
        page = visit.page
        page.goto(world.url)
        page.get_by_label("Token").fill("omni_wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("unknown, expired or revoked")
        assert visit.findings() == []

        visit.log_in(world.token)

        # There is one graph, so its history is shown.
        expect(heading(page, "History")).to_be_visible()
        assert world.token not in page.url
        assert page.evaluate("() => document.cookie + JSON.stringify(localStorage)") == "{}"
        page.reload()
        expect(page.get_by_text("ada", exact=True)).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        assert page.evaluate("() => sessionStorage.length") == 0


def test_a_code_logs_in_once_and_leaves_the_address(browser: Browser, world: Served):
    code = world.service.logins.offer("grace")
    for expected in ("Log out", "Log in"):
        with visiting(browser, world.url) as visit:
            visit.page.goto(f"{world.url}/#/login?code={code}")
            expect(visit.page.get_by_role("button", name=expected)).to_be_visible()
            assert "code" not in visit.page.url
            if expected == "Log out":
                expect(visit.page.get_by_text("grace", exact=True)).to_be_visible()


def test_an_entity_is_found_with_its_neighbours_and_its_history(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "history")
    page.get_by_role("searchbox").fill("never built machine")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=ADA).click()

    expect(heading(page, ADA)).to_be_visible()
    expect(page.get_by_text(str(BIG))).to_be_visible()
    picture = page.get_by_role("group", name=f"Neighbours of {ADA}")
    # A link in a picture has the title of its node as its name.
    for name in ("Person Charles Babbage", "City London", "Company Analytical Engines"):
        expect(picture.get_by_role("link", name=name)).to_be_visible()
    settle(visit, ADA)
    screenshot(visit, "app-entity.png")

    page.get_by_role("tab", name="History").click()
    changes = page.locator("ol.changes > li")
    expect(changes).to_have_count(2)
    expect(changes.nth(1)).to_contain_text("Merge the corrected height")
    expect(changes.nth(1).locator("del")).to_have_text("1.7")
    expect(changes.nth(1).locator("ins")).to_have_text("1.65")

    page.get_by_role("tab", name="Neighbours").click()
    picture.get_by_role("link", name="Person Mary Somerville").locator("circle").click()
    expect(heading(page, "Mary Somerville")).to_be_visible()


def test_search_finds_keys_by_their_beginning(visit: Visit):
    visit.go("graphs", "world", "search", q="Gr")
    expect(visit.page.get_by_role("link", name="Grace Hopper")).to_be_visible()
    visit.go("graphs", "world", "search", q="zzz")
    expect(visit.page.get_by_text("No key begins with it")).to_be_visible()


def test_the_history_is_drawn_and_leads_to_commits(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "history")
    commits = page.locator(".history li")
    expect(commits).to_have_count(7)
    expect(page.locator(".history circle.merge")).to_have_count(1)
    expect(commits.first.locator(".badge.branch")).to_have_text("notes")
    screenshot(visit, "app-history.png")

    page.get_by_label("Branch").select_option("heights")
    expect(commits).to_have_count(4)
    page.locator("main").focus()
    for key in ("j", "Enter"):
        page.keyboard.press(key)

    expect(heading(page, "Correct a height")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Load the first people").focus()
    page.keyboard.press("Enter")
    expect(heading(page, "Load the first people")).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    page.go_back()
    page.get_by_role("link", name="Correct a height").click()
    expect(page.locator("ul.changes del")).to_have_text("1.7")
    expect(page.locator("ul.changes ins")).to_have_text("1.65")
    settle(visit, "Correct a height")
    screenshot(visit, "app-commit.png")
    # The row as the commit left it, though its branch has moved on, or is deleted.
    page.get_by_role("link", name=ADA).click()
    expect(page.locator("dl.values")).to_contain_text("1.65")
    page.get_by_role("link", name="as it is on main").click()
    expect(page.get_by_text("as it was at")).to_have_count(0)


def test_the_console_shows_rows_pictures_and_mistakes(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "query")
    page.get_by_label("Query", exact=True).fill(TEAM)
    page.get_by_label("$company").fill("Analytical Engines")
    page.keyboard.press("Control+Enter")

    cells = page.locator("tbody td")
    expect(cells).to_have_text([ADA, "Charles Babbage", str(BIG), ADA, "Mary Somerville", str(BIG)])
    page.get_by_role("tab", name="Picture").click()
    expect(page.locator(".picture a.node")).to_have_count(4)
    expect(page.locator(".picture .edge")).to_have_count(3)
    settle(visit, "Query")
    page.locator("figcaption").scroll_into_view_if_needed()
    screenshot(visit, "app-query.png")

    page.get_by_label("Query", exact=True).fill("query q() { match { $p: Persn } return { $p } }")
    page.get_by_role("button", name="Run").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("^^^^^ did you mean Person?")


def test_a_branch_is_made_edited_and_deleted(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "branches")
    page.get_by_label("Name").fill("taller")
    page.get_by_label("From").select_option("heights")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("status")).to_contain_text("The branch taller was made")

    visit.go("graphs", "world", "query", branch="taller")
    edit = 'query q() { update Person set { height: 1.8 } where name = "Grace Hopper" }'
    page.get_by_label("Query", exact=True).fill(edit)
    page.get_by_role("button", name="Write to taller").click()
    expect(page.get_by_role("status")).to_contain_text("Person: 0 inserted, 1 updated, 0 deleted")
    page.get_by_role("status").get_by_role("link").click()
    expect(page.locator("ul.changes ins")).to_have_text("1.8")

    visit.go("graphs", "world", "entities", "Person", id="Kurt Gödel", branch="taller")
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit on taller")
    dialog.get_by_label("born").fill("1906-04-29")
    dialog.get_by_label("height").fill("")
    dialog.get_by_label("Message of the commit").fill("Correct a day")
    assert visit.findings() == []
    dialog.get_by_role("button", name="Save to taller").click()
    page.get_by_role("status").get_by_role("link").click()
    expect(heading(page, "Correct a day")).to_be_visible()
    expect(page.locator("ul.changes ins")).to_have_text(["1906-04-29", "null"])

    visit.go("graphs", "world", "branches")
    page.get_by_role("button", name="Delete taller").click()
    dialog = page.get_by_role("dialog", name="Delete a branch")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("The branch taller was deleted")
    expect(page.get_by_role("button", name="Delete taller")).to_have_count(0)


def test_the_keyboard_leads_everywhere(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "history")
    expect(page.locator(".history li").first).to_be_visible()
    for keys, name in (("gs", "Schema"), ("gq", "Query"), ("gb", "Branches"), ("gh", "History")):
        page.keyboard.type(keys)
        expect(heading(page, name)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("search for an entity")
    assert visit.findings() == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    # Letters that a person types are no shortcuts.
    page.keyboard.type("gs")
    expect(page.get_by_role("searchbox")).to_have_value("gs")
    expect(heading(page, "History")).to_be_visible()


def test_the_schema_is_drawn(visit: Visit):
    page = visit.page
    visit.go("graphs", "world", "schema")
    picture = page.get_by_role("region", name="Picture of the schema")
    for name in ("Person", "WorksAt"):
        expect(picture).to_contain_text(name)
    screenshot(visit, "app-schema.png")
    page.get_by_role("tab", name="Types").click()
    expect(page.get_by_role("table", name="Properties of WorksAt")).to_contain_text("role")
    page.get_by_role("tab", name="Text").click()
    expect(page.get_by_role("region", name="Text of the schema")).to_contain_text("node Person {")


def test_the_pages_are_accessible_in_light_and_dark_and_fit_a_phone(visit: Visit, world: Served):
    page = visit.page
    commit = world.service.graph("world", None).snapshot().head
    pages = {str(commit.message): f"graphs/world/commits/{commit.commit_id}", **PAGES}
    for name, address in pages.items():
        page.goto(f"{world.url}/#/{address}")
        settle(visit, name)
        assert visit.findings() == [], name
        # Themes differ in nothing but colours.
        page.emulate_media(color_scheme="dark")
        assert visit.findings("color-contrast") == [], f"{name} in the dark"
        if name == ADA:
            screenshot(visit, "app-entity-dark.png")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        assert visit.overflow() <= 0, f"{name} is wider than a phone"
        page.set_viewport_size(DESK)


HOSTILE = {
    "markup": "<img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;",
    "template": "${alert(1)} {{7*7}} javascript:alert(1)",
    "long word": "W" * 3_000,
    "right to left": "abc \u202e fdp.exe \u2066 \u05d0\u05d1\u05d2 \u0627\u0644\u0639\u0631",
    "controls": "bell\u0007 escape\u001b[31m delete\u007f zero\u200bwidth next\u0085line",
    "path": "../../etc/passwd?x=1#y%2F%00",
}


def test_hostile_content_is_shown_as_text(browser: Browser, world: Served):
    graph = world.service.graph("world", None)
    rows = [{"name": text, "bio": text} for text in HOSTILE.values()]
    branch = graph.branches.create("hostile")
    edges = [{"from": ADA, "to": text} for text in HOSTILE.values()]
    branch.load(
        {"Person": rows, "Knows": edges}, message=HOSTILE["markup"], actor="ada<b>", index=False
    )
    try:
        with visiting(browser, world.url, viewport=PHONE) as visit:
            visit.hold(world.token)
            page = visit.page
            for kind, text in HOSTILE.items():
                visit.go("graphs", "world", "entities", "Person", id=text, branch="hostile")
                expect(page.locator("dl.values dd").nth(1)).to_be_visible()
                expect(page.locator(".loading")).to_have_count(0)
                assert visit.overflow() <= 0, kind
                shown = page.locator("dl.values dd").nth(1).inner_text()
                # No character hides, and none turns the direction of the others.
                assert not re.search(
                    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b]",
                    shown,
                )
                page.get_by_role("tab", name="History").click()
                expect(page.locator("ol.changes")).to_contain_text("<img src=x")
            visit.go(
                "graphs", "world", "entities", "Person", id=HOSTILE["markup"], branch="hostile"
            )
            expect(heading(page, HOSTILE["markup"])).to_be_visible()
            visit.go(
                "graphs",
                "world",
                "entities",
                "Person",
                id=HOSTILE["right to left"],
                branch="hostile",
            )
            expect(heading(page, re.compile("⟨U\\+202E⟩ fdp.exe"))).to_be_visible()
            visit.go("graphs", "world", "entities", "Person", id=ADA, branch="hostile")
            expect(page.locator(".picture a.node")).to_have_count(1 + 4 + len(HOSTILE))
            assert visit.overflow() <= 0
            for name in ("history", "branches"):
                visit.go("graphs", "world", name)
                expect(page.get_by_text("<img src=x onerror=alert(1)>").first).to_be_visible()
                assert visit.overflow() <= 0
            # What would have run has not, and no element was made from a text.
            assert page.locator("main img, main script").count() == 0
    finally:
        graph.branches.delete("hostile")
