"""Pages about several types show those that their visitor may read, and count the others."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

import omnigraph
from tests.support.browser import Visit, visiting
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = """
node Person { name: String @key  note: String? @index }
node Salary { name: String @key  note: String? @index }
edge Knows: Person -> Person
edge Earns: Person -> Salary
"""
RULES: Final = """
permit(principal, action, resource);
forbid(principal == Actor::"eve", action == Action::"read", resource == Type::"Salary");
forbid(principal == Actor::"eve", action == Action::"read", resource == Type::"Earns");
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("hidden")
    (folder / "rules.cedar").write_text(RULES)
    graph = omnigraph.init(folder / "world", SCHEMA, actor="ada")
    graph.load(
        {
            "Person": [{"name": "Grace", "note": "made compilers"}, {"name": "Ada"}],
            "Salary": [{"name": "Graded", "note": "for compilers"}],
            "Knows": [{"from": "Grace", "to": "Ada"}],
            "Earns": [{"from": "Grace", "to": "Graded"}],
        }
    )
    draft = graph.branches.create("draft")
    for handle, note in ((graph, "ours"), (draft, "theirs")):
        handle.mutate(
            f'query q() {{ update Salary set {{ note: "{note}" }} where name = "Graded" }}'
        )
    graph.proposals.create("draft", "Another note")
    settings = settings_for(folder, {"world": graph.uri}, policy=folder / "rules.cedar")
    with serving(settings) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, served: Served) -> Iterator[Visit]:
    with visiting(browser, served.url) as own:
        own.hold(served.tokens().create("eve")[0])
        yield own


@pytest.mark.parametrize("words", ["Gra", "compilers"])
def test_search_leaves_hidden_types_out_and_counts_them(visit: Visit, words: str):
    visit.go("graphs", "world", "search", q=words)
    hits = visit.page.locator("ul.hits li")
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("Grace")
    expect(visit.page.get_by_role("note")).to_have_text("1 type is hidden.")


def test_search_that_finds_only_hidden_rows_says_so(visit: Visit):
    visit.go("graphs", "world", "search", q="Graded")
    expect(visit.page.get_by_text("No key begins with it")).to_be_visible()
    expect(visit.page.get_by_role("note")).to_have_text("1 type is hidden.")


def test_neighbours_leave_hidden_types_out_and_count_them(visit: Visit):
    visit.go("graphs", "world", "entities", "Person", id="Grace")
    groups = visit.page.locator("section.group")
    expect(groups).to_have_count(1)
    expect(groups).to_contain_text("Ada")
    expect(visit.page.get_by_role("note")).to_have_text("1 type is hidden.")
    expect(visit.page.get_by_text("Graded")).to_have_count(0)


def test_a_merge_with_conflicts_of_hidden_types_alone_is_not_offered(visit: Visit):
    visit.go("graphs", "world", "proposals", "1")
    state = visit.page.get_by_role("region", name="State")
    expect(state).to_contain_text("conflicts of hidden types")
    expect(state.get_by_role("button", name="Merge")).to_be_disabled()
