"""The review of a proposal in a browser, by an author, a reviewer and one who may only look."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

import omnigraph
from tests.support.browser import DESK, PHONE, Visit, screenshot, visiting
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = """
node Person { name: String @key  born: I64?  note: String?  mail: String? @unique }
node Place { name: String @key  people: I64? }
edge Knows: Person -> Person { since: I64? }
"""
RULES: Final = """
@id("all read") permit(principal, action == Action::"read", resource);
@id("all draft") permit(principal, action in [Action::"mutate", Action::"branch_create"], resource);
@id("reviewers") permit(principal in Group::"reviewers", action == Action::"merge", resource);
"""
POLICY: Final = (
    'rules = "rules.cedar"\n[groups]\nreviewers = ["ada", "grace"]\n[protected]\nmain = 1\n'
)
NOTES: Final = (
    "Wrote the first program for a machine that was never built.",
    "Wrote the first published program for an engine that was never finished.",
)


EDITS: Final = (
    f'update Person set {{ note: "{NOTES[1]}"  born: 1816 }} where name = "Ada"',
    'update Person set { note: "Found a moth in a relay." } where name = "Grace"',
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("review")
    (folder / "rules.cedar").write_text(RULES)
    (folder / "policy.toml").write_text(POLICY)
    graph = omnigraph.init(folder / "world", SCHEMA, actor="ada")
    people = [
        {"name": "Ada", "born": 1815, "note": NOTES[0]},
        {"name": "Grace", "born": 1906, "note": "Found a moth."},
        {"name": "Alan", "born": 1912},
    ]
    graph.load(
        {
            "Person": people,
            "Place": [{"name": "London", "people": 1}],
            "Knows": [{"from": "Ada", "to": "Grace"}],
        },
        index=False,
    )
    graphs = {"world": str(folder / "world")}
    with serving(settings_for(folder, graphs, policy=folder / "policy.toml")) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(served: Served) -> dict[str, str]:
    return {name: served.tokens().create(name)[0] for name in ("ada", "grace", "eve")}


@contextmanager
def acting(browser: Browser, served: Served, token: str, **context: Any) -> Iterator[Visit]:
    """A tab that is logged in by a token."""
    with visiting(browser, served.url, timezone_id="UTC", locale="en-GB", **context) as visit:
        visit.hold(token)
        yield visit


def change(served: Served, branch: str, *statements: str) -> None:
    """Writes of the owner of the graph, whom no policy binds."""
    graph = served.service.own_graph("world")
    if branch not in graph.branches.list():
        graph.branches.create(branch)
    for statement in statements:
        graph.mutate(f"query q() {{ {statement} }}", branch=branch, actor="ada")


def propose(served: Served, branch: str, title: str) -> int:
    graph = served.service.own_graph("world")
    return graph.proposals.create(branch, title, actor="ada").number


def choose_row(page: Page, row: str) -> None:
    page.get_by_role("list", name="Changed rows").get_by_text(row, exact=True).first.click()


def test_a_conflict_is_met_decided_approved_and_merged(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    with acting(browser, served, tokens["ada"]) as visit:
        page = visit.page
        visit.go("graphs", "world", "history")
        page.get_by_role("searchbox").fill("Ad")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Ada").click()
        neighbours = page.get_by_role("group", name="Neighbours of Ada")
        expect(neighbours.get_by_role("link", name="Person Grace")).to_be_visible()
        page.get_by_role("tab", name="History").click()
        expect(page.locator("ol.changes > li")).to_have_count(1)

        visit.go("graphs", "world", "branches")
        page.get_by_label("Name").fill("draft")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("status")).to_contain_text("The branch draft was made")
        visit.go("graphs", "world", "query", branch="draft")
        for edit in EDITS:
            page.get_by_label("Query", exact=True).fill(f"query q() {{ {edit} }}")
            page.get_by_role("button", name="Write to draft").click()
            expect(page.get_by_role("status")).to_contain_text("1 updated")

        visit.go("graphs", "world", "proposals")
        page.get_by_role("link", name="New proposal").click()
        page.get_by_label("Merge the branch").select_option("draft")
        page.get_by_label("Title").fill("Say what Ada wrote")
        page.get_by_label("Why, for the reviewers").fill("The engine was never finished.")
        page.get_by_role("button", name="Propose").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Say what Ada wrote")
        # Authors do not approve their own proposals, and the branch is protected.
        expect(page.get_by_text("no conflicts")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        expect(page.get_by_role("button", name="Merge")).to_be_disabled()
        expect(page.get_by_text("needs 1 approval; approved by nobody")).to_be_visible()
    change(served, "main", 'update Person set { born: 1814 } where name = "Ada"')

    with acting(browser, served, tokens["grace"]) as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals")
        expect(page.get_by_role("link", name="Say what Ada wrote")).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="1 conflict to decide")).to_be_visible()
        choose_row(page, "Ada")
        detail = page.get_by_role("region", name="Person Ada")
        assert detail.locator("ins").all_inner_texts() == [
            "1816",
            "published ",
            "an engine",
            "finished",
        ]
        assert detail.locator("del").all_inner_texts() == ["1815", "a machine", "built"]
        page.keyboard.press("c")
        page.get_by_label("Comment on the row").press("Escape")
        detail.get_by_role("button", name="Comment on born").click()
        page.get_by_label("Comment on born").fill("Her birth was in December 1815.")
        screenshot(visit, "proposal-changes.png")
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(detail.get_by_text("Her birth was in December 1815.")).to_be_visible()
        assert visit.findings() == []

        page.keyboard.press("2")
        card = page.get_by_role("region", name="Conflict in Person Ada born")
        assert card.locator("ins").all_inner_texts() == ["1814", "1816"]
        expect(page.get_by_role("button", name="Merge")).to_be_disabled()
        card.get_by_label("write another value").check()
        card.get_by_label("Value for Person Ada born").fill("1815")
        expect(page.get_by_text("every conflict is decided")).to_be_visible()
        assert visit.findings() == []

        # Keys are those of the page again once nobody types.
        page.get_by_role("heading", level=1).click()
        page.keyboard.press("a")
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("approved by grace")).to_be_visible()
        expect(page.get_by_role("button", name="Merge")).to_be_enabled()
        page.keyboard.press("m")
        assert visit.findings() == []
        dialog.get_by_role("button", name="Merge").click()
        expect(page.get_by_text("merged by grace")).to_be_visible()
        expect(page.get_by_text("approved by grace")).to_be_visible()
        page.get_by_role("tab", name="Conversation 1").click()
        page.get_by_role("button", name="on Person Ada born").click()
        expect(detail.get_by_text("Her birth was in December 1815.")).to_be_visible()
        page.get_by_role("link", name="history of main").click()
        newest = page.locator(".history li").first
        expect(newest).to_contain_text("merge proposal 1: Say what Ada wrote")
        expect(page.locator(".history circle.merge")).to_have_count(1)
    row = served.service.own_graph("world").entity("Person", "Ada")
    assert row is not None
    assert (row["born"], row["note"]) == (1815, NOTES[1])


def test_conflicts_and_broken_rules_stand_side_by_side(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    graph = served.service.own_graph("world")
    fresh = [
        {"name": name, "note": f"A long text about {name}."}
        for name in ("Ann", "Ben", "Cat", "Dan")
    ]
    knows = [{"from": "Ben", "to": "Dan"}]
    graph.load({"Person": fresh, "Knows": knows}, index=False, actor="ada")
    change(
        served,
        "rival",
        'update Person set { note: "A long text on the subject of Ann." } where name = "Ann"',
        'delete Person where name = "Ben"',
        'update Person set { mail: "one@example.org" } where name = "Cat"',
    )
    change(
        served,
        "main",
        'update Person set { note: "A short text about Ann." } where name = "Ann"',
        'update Person set { note: "Another text about Ben." } where name = "Ben"',
        'update Person set { mail: "one@example.org" } where name = "Dan"',
    )
    number = propose(served, "rival", "Change what main changed, too")
    with acting(browser, served, tokens["grace"]) as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", str(number))
        page.get_by_role("button", name="3 conflicts to decide").click()
        texts = page.get_by_role("region", name="Conflict in Person Ann note")
        assert texts.locator("ins").all_inner_texts() == ["short", "on the subject of"]
        texts.get_by_label("take rival").check()
        row = page.get_by_role("region", name="Conflict in Person Ben")
        expect(row.get_by_text("deleted", exact=True)).to_be_visible()
        expect(row).to_contain_text("1 edge was deleted along with the node.")
        rule = page.get_by_role("region", name="Conflict in Person Cat mail")
        expect(rule).to_contain_text("share mail")
        expect(rule.get_by_label("take rival")).to_have_count(0)
        rule.get_by_label("write another value").check()
        rule.get_by_label("Value for Person Cat mail").fill("two@example.org")
        expect(page.get_by_role("button", name="1 conflict to decide")).to_be_visible()
        screenshot(visit, "proposal-conflicts.png")
        assert visit.findings() == []
        page.get_by_label("All other conflicts").select_option("ours")
        expect(page.get_by_text("every conflict is decided")).to_be_visible()
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("button", name="Merge").click()
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
        expect(page.get_by_text("merged by grace")).to_be_visible()
    merged = [graph.entity("Person", name) or {} for name in ("Ann", "Ben", "Cat")]
    assert merged[0]["note"] == "A long text on the subject of Ann."
    assert merged[1]["note"] == "Another text about Ben."
    kept = "query q() { match { $p: Person $p knows $q $p.name = 'Ben' } return { $q.name } }"
    assert graph.query(kept.replace("'", '"')).rows() == [{"q.name": "Dan"}]
    assert merged[2]["mail"] == "two@example.org"


def test_an_actor_who_may_not_merge_is_told_so_and_refused(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    change(served, "look", 'insert Place { name: "Paris" }')
    number = propose(served, "look", "Paris")
    with acting(browser, served, tokens["eve"]) as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", str(number))
        expect(page.get_by_text("no conflicts")).to_be_visible()
        expect(page.get_by_text("eve cannot merge branch main")).to_be_visible()
        expect(page.get_by_role("button", name="Merge")).to_be_disabled()
        for name in ("Approve", "Close"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
        page.keyboard.press("a")
        page.keyboard.press("m")
        expect(page.get_by_role("dialog")).to_have_count(0)
    with served.client(tokens["eve"]) as eve:
        for action in ("approval", "merge", "close"):
            body: dict[str, str] | None = None if action == "close" else {}
            answer = eve.post(f"/graphs/world/proposals/{number}/{action}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), action
    assert served.service.own_graph("world").proposals.show(number).proposal.approvals == ()


def test_a_write_after_an_approval_is_seen_and_the_approval_is_void(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    change(served, "later", 'insert Place { name: "Oslo" }')
    number = propose(served, "later", "Oslo")
    with acting(browser, served, tokens["grace"]) as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", str(number))
        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("button", name="Merge")).to_be_enabled()
        change(served, "later", 'insert Place { name: "Rome" }')
        page.get_by_role("button", name="Merge").click()
        page.get_by_role("dialog").get_by_role("button", name="Merge").click()
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("was reviewed")
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("grace approved an earlier state")).to_be_visible()
        expect(page.get_by_role("button", name="Merge")).to_be_disabled()
        page.get_by_role("button", name="Close", exact=True).click()
        expect(page.get_by_text("closed by grace")).to_be_visible()


HOSTILE: Final = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>\"'`",
    "\u202egnp.exe",
    "long" * 200,
    "\u0007bell\u0000nul",
    "مرحبا بالعالم",
)


def test_hostile_content_is_shown_as_text(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    graph = served.service.own_graph("world")
    draft = graph.branches.create("hostile")
    rows = [{"name": text, "note": f"{text} {text}"} for text in HOSTILE]
    draft.load({"Person": rows}, index=False, actor="ada")
    number = graph.proposals.create(
        "hostile", HOSTILE[0] + HOSTILE[5], description="\n".join(HOSTILE), actor="ada"
    ).number
    for text in HOSTILE:
        graph.proposals.comment(
            number, text, type_name="Person", id=text, property="note", actor="ada"
        )
    for viewport in (PHONE, DESK):
        with acting(
            browser, served, tokens["grace"], viewport=viewport, color_scheme="dark"
        ) as visit:
            page = visit.page
            visit.go("graphs", "world", "proposals")
            expect(page.get_by_text(HOSTILE[0])).to_be_visible()
            visit.go("graphs", "world", "proposals", str(number))
            expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE[0])
            choose_row(page, HOSTILE[1])
            expect(page.get_by_role("region", name=f"Person {HOSTILE[1]}")).to_be_visible()
            expect(page.get_by_text("⟨U+202E⟩gnp.exe").first).to_be_visible()
            page.get_by_role("tab", name="Conversation 6").click()
            expect(page.locator(".comments")).to_contain_text("␇bell␀nul")
            assert page.locator("main img, main script").count() == 0
            assert visit.overflow() <= 0


def test_a_phone_in_the_dark_shows_all_of_it(
    browser: Browser, served: Served, tokens: dict[str, str]
) -> None:
    change(
        served,
        "phone",
        'update Person set { note: "Found a moth in a big relay." } where name = "Grace"',
        'insert Person { name: "Barbara"  born: 1939 }',
    )
    number = propose(served, "phone", "A moth, and where it was")
    with acting(browser, served, tokens["grace"], viewport=PHONE, color_scheme="dark") as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals")
        expect(page.get_by_text("A moth, and where it was")).to_be_visible()
        assert visit.findings() == []
        visit.go("graphs", "world", "proposals", str(number))
        page.get_by_role("button", name="updated 1", exact=True).click()
        page.keyboard.press("j")
        detail = page.get_by_role("region", name="Person Grace")
        expect(detail.locator("ins")).to_have_text(["big "])
        screenshot(visit, "proposal-phone.png")
        assert visit.findings() == []
        assert visit.overflow() <= 0
