"""Buttons: a page offers what the server would do for its visitor, and says why not."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import omnigraph
from omnigraph.server.settings import read_settings
from tests.support.browser import Visit, visiting
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = """
node Person { name: String @key  born: I64? }
node Place { name: String @key  people: I64? }
"""
RULES: Final = """
@id("all read") permit(principal, action == Action::"read", resource);
@id("all draft") permit(
  principal, action in [Action::"mutate", Action::"branch_create", Action::"branch_delete"],
  resource
) when {
  (resource is Branch && resource.name like "draft/*") ||
  (resource is Type && resource.branch like "draft/*")
};
@id("places are kept") forbid(principal, action == Action::"mutate", resource == Type::"Place")
unless { principal == Actor::"ada" };
@id("ada") permit(principal == Actor::"ada", action, resource);
@id("reviewers") permit(principal in Group::"reviewers", action == Action::"merge", resource);
"""
POLICY: Final = 'rules = "rules.cedar"\n[groups]\nreviewers = ["grace"]\n[protected]\nmain = 1\n'
ADD: Final = 'query q() { insert Person { name: "x" } }'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("offers")
    (folder / "rules.cedar").write_text(RULES)
    (folder / "policy.toml").write_text(POLICY)
    graph = omnigraph.init(folder / "world", SCHEMA, actor="ada")
    rows = {"Person": [{"name": "Grace", "born": 1907}], "Place": [{"name": "Rome"}]}
    graph.load(rows, index=False)
    for name, year in (("draft/1", 1906), ("draft/2", 1905)):
        change = f'update Person set {{ born: {year} }} where name = "Grace"'
        graph.branches.create(name).mutate(f"query q() {{ {change} }}", actor="ada")
    graph.branches.create("kept")
    graph.proposals.create("draft/1", "Correct a year", actor="ada")
    graph.proposals.create("draft/2", "Correct it otherwise", actor="ada")
    graph.mutate('query q() { update Person set { born: 1908 } where name = "Grace" }', actor="ada")
    settings = settings_for(folder, {"world": str(folder / "world")}, policy=folder / "policy.toml")
    with serving(settings) as running:
        yield running


@contextmanager
def acting(browser: Browser, served: Served, actor: str | None) -> Iterator[Visit]:
    """A tab that is logged in as an actor; one of nobody when None."""
    with visiting(browser, served.url) as visit:
        if actor is not None:
            visit.hold(served.tokens().create(actor)[0])
        yield visit


@contextmanager
def told(page: Page, action: str) -> Iterator[None]:
    """Wait until the page knows, after the block, whether its visitor may do something."""
    with page.expect_response(lambda each: f"permissions?action={action}" in each.url) as answer:
        yield
    answer.value.finished()
    page.wait_for_timeout(50)


def show_entity(visit: Visit, kind: str, name: str, branch: str) -> Locator:
    """Show an entity, and return its button Edit."""
    with told(visit.page, "mutate"):
        visit.go("graphs", "world", "entities", kind, id=name, branch=branch)
    expect(visit.page.locator("dl.values dd").first).to_have_text(name)
    return visit.page.get_by_role("button", name="Edit")


def described(page: Page, button: Locator) -> str:
    """What a screen reader says of a button besides its name."""
    place = button.get_attribute("aria-describedby")
    assert place is not None, "the button says no reason"
    return page.locator(f'[id="{place}"]').inner_text()


def test_edit_is_offered_where_the_actor_may_edit(browser: Browser, served: Served):
    with acting(browser, served, "eve") as visit:
        expect(show_entity(visit, "Person", "Grace", "draft/1")).to_be_visible()
        expect(show_entity(visit, "Person", "Grace", "main")).to_have_count(0)
        expect(show_entity(visit, "Place", "Rome", "draft/1")).to_have_count(0)
        expect(show_entity(visit, "Person", "Grace", "kept")).to_have_count(0)
    with acting(browser, served, "ada") as visit:
        expect(show_entity(visit, "Place", "Rome", "draft/1")).to_be_visible()
        # Even for who may do everything: main is protected.
        expect(show_entity(visit, "Person", "Grace", "main")).to_have_count(0)


def test_the_console_writes_where_the_actor_may_write(browser: Browser, served: Served):
    with acting(browser, served, "eve") as visit:
        page, sent = visit.page, []
        page.on("request", lambda each: sent.append(each.url) if "mutate" in each.url else None)
        visit.go("graphs", "world", "query")
        page.get_by_label("Query", exact=True).fill(ADD)
        button = page.get_by_role("button", name="Write to main")
        expect(button).to_be_disabled()
        assert "main is protected" in described(page, button)
        assert visit.findings() == []
        page.get_by_label("Query", exact=True).press("Control+Enter")
        page.get_by_label("Query", exact=True).fill(
            "query q() { match { $p: Person } return { $p } }"
        )
        expect(page.get_by_role("button", name="Run")).to_be_enabled()
        assert [url for url in sent if "permissions" not in url] == []

        visit.go("graphs", "world", "query", branch="draft/1")
        page.get_by_label("Query", exact=True).fill(ADD)
        expect(page.get_by_role("button", name="Write to draft/1")).to_be_enabled()


def test_branches_are_made_and_deleted_where_the_actor_may(browser: Browser, served: Served):
    with acting(browser, served, "eve") as visit:
        page = visit.page
        visit.go("graphs", "world", "branches")
        expect(page.get_by_role("button", name="Delete draft/1")).to_be_enabled()
        expect(page.get_by_role("link", name="Propose kept")).to_be_visible()
        kept = page.get_by_role("button", name="Delete kept")
        expect(kept).to_be_disabled()
        expect(kept).to_have_accessible_description(re.compile("eve cannot"))

        page.get_by_label("Name").fill("mine")
        create = page.get_by_role("button", name="Create")
        expect(create).to_be_disabled()
        assert "mine" in described(page, create)
        assert visit.findings() == []
        page.get_by_label("Name").fill("draft/mine")
        expect(create).to_be_enabled()
        create.click()
        expect(page.get_by_role("status")).to_contain_text("The branch draft/mine was made")
        page.get_by_role("button", name="Delete draft/mine").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_text("The branch draft/mine was deleted")).to_be_visible()


def test_a_branch_in_use_says_what_builds_on_it(browser: Browser, served: Served):
    graph = served.service.own_graph("world")
    graph.branches.create("draft/child", branch="draft/1")
    try:
        with acting(browser, served, "ada") as visit:
            visit.go("graphs", "world", "branches")
            button = visit.page.get_by_role("button", name="Delete draft/1")
            expect(button).to_have_accessible_description(re.compile("draft/child builds on it"))
            expect(button).to_be_disabled()
    finally:
        graph.branches.delete("draft/child")


def test_a_merge_says_which_approvals_are_missing(browser: Browser, served: Served):
    with acting(browser, served, "grace") as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", "1")
        page.get_by_role("button", name="1 conflict to decide").click()
        merge = page.get_by_role("button", name="Merge")
        expect(merge).to_be_disabled()
        said = described(page, merge)
        assert "needs 1 approval; approved by nobody" in said
        assert "1 conflict to decide" in said
        looks = "each => getComputedStyle(each).backgroundColor"
        disabled = merge.evaluate(looks)
        assert visit.findings() == []
        page.keyboard.press("m")
        expect(page.get_by_role("dialog")).to_have_count(0)

        page.get_by_role("button", name="Approve").click()
        expect(page.get_by_text("needs 1 approval; approved by grace")).to_be_visible()
        expect(merge).to_be_disabled()
        page.get_by_label("All other conflicts").select_option("theirs")
        expect(page.get_by_text("every conflict is decided")).to_be_visible()
        expect(merge).to_be_enabled()
        assert merge.get_attribute("aria-describedby") is None
        assert merge.evaluate(looks) != disabled
        page.get_by_role("button", name="Withdraw approval").click()
        expect(merge).to_be_disabled()


def test_a_merge_says_that_the_actor_may_not(browser: Browser, served: Served):
    with acting(browser, served, "eve") as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", "2")
        merge = page.get_by_role("button", name="Merge")
        expect(merge).to_be_disabled()
        expect(page.get_by_text("eve cannot merge branch main")).to_be_visible()
        assert "eve cannot merge branch main" in described(page, merge)
        for name in ("Approve", "Close"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


@pytest.mark.parametrize(("actor", "count"), [("ada", 1), ("grace", 0)])
def test_a_merge_deletes_the_branch_only_for_those_who_may(
    browser: Browser, tmp_path: Path, actor: str, count: int
):
    rules = RULES.replace('Action::"branch_create", Action::"branch_delete"', 'Action::"tag"')
    (tmp_path / "rules.cedar").write_text(rules)
    (tmp_path / "policy.toml").write_text(POLICY.partition("[protected]")[0])
    graph = omnigraph.init(tmp_path / "world", SCHEMA, actor="ada")
    graph.branches.create("draft/1").mutate(ADD, actor="hal")
    graph.proposals.create("draft/1", "Somebody", actor="hal")
    policy = tmp_path / "policy.toml"
    settings = settings_for(tmp_path, {"world": str(tmp_path / "world")}, policy=policy)
    with serving(settings) as served, acting(browser, served, actor) as visit:
        page = visit.page
        visit.go("graphs", "world", "proposals", "1")
        expect(page.get_by_text("needs no approval; approved by nobody")).to_be_visible()
        with told(page, "branch_delete"):
            page.get_by_role("button", name="Merge").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("delete the branch draft/1")).to_have_count(count)
        dialog.get_by_role("button", name="Merge").click()
        expect(page.get_by_text(f"merged by {actor}")).to_be_visible()


@contextmanager
def world_of(tmp_path: Path, **more: Any) -> Iterator[Served]:
    graph = omnigraph.init(tmp_path / "world", SCHEMA, actor="ada")
    graph.load({"Person": [{"name": "Grace", "born": 1907}]}, index=False)
    graph.branches.create("draft").mutate(ADD, actor="ada")
    section = {"uri": str(tmp_path / "world"), "read_only": more.pop("read_only", False)}
    settings = read_settings(None, state=tmp_path / "state", graphs={"world": section}, **more)
    with serving(settings) as served:
        yield served


def test_a_graph_that_is_served_read_only_offers_no_change(browser: Browser, tmp_path: Path):
    with world_of(tmp_path, read_only=True) as served, acting(browser, served, "ada") as visit:
        page = visit.page
        expect(show_entity(visit, "Person", "Grace", "draft")).to_have_count(0)
        with told(page, "branch_delete"), told(page, "propose"):
            visit.go("graphs", "world", "branches")
        expect(page.get_by_role("link", name="draft", exact=True)).to_be_visible()
        page.get_by_label("Name").fill("mine")
        expect(page.get_by_text("the graph world was opened read-only")).to_be_visible()
        expect(page.get_by_role("button", name="Create")).to_be_disabled()
        expect(page.get_by_role("button", name="Delete draft")).to_be_disabled()
        expect(page.get_by_role("link", name="Propose draft")).to_have_count(0)
        visit.go("graphs", "world", "proposals", new="1")
        expect(page.get_by_text("the graph world was opened read-only")).to_be_visible()
        expect(page.get_by_role("form", name="New proposal")).to_have_count(0)
        expect(page.get_by_role("link", name="New proposal")).to_have_count(0)


def test_somebody_without_a_name_proposes_nothing(browser: Browser, tmp_path: Path):
    with (
        world_of(tmp_path, allow_anonymous=True) as served,
        acting(browser, served, None) as visit,
    ):
        page = visit.page
        expect(show_entity(visit, "Person", "Grace", "draft")).to_be_visible()
        visit.go("graphs", "world", "branches")
        expect(page.get_by_role("button", name="Delete draft")).to_be_enabled()
        expect(page.get_by_role("link", name="Propose draft")).to_have_count(0)
        with told(page, "propose"):
            visit.go("graphs", "world", "proposals")
        expect(page.get_by_text("No proposal waits for review.")).to_be_visible()
        expect(page.get_by_role("link", name="New proposal")).to_have_count(0)
        page.keyboard.press("n")
        assert re.search("new", page.url) is None
