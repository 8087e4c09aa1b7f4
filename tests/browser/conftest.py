"""One browser, and one server with a world that has branches, merges, tags and searchable texts."""

import datetime as dt
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

import omnigraph
from tests.support.browser import Visit, lacking, launch, visiting
from tests.support.served import Served, serving, settings_for

SCHEMA = """
node Person {
  name: String @key
  born: Date?
  bio: String? @index
  height: F64?
  steps: I64?
}
node City { name: String @key  country: String? }
node Company { name: String @key  pitch: String? @index }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> City @card(0..1)
edge WorksAt: Person -> Company { role: String? }
"""

PEOPLE = {
    "Ada Lovelace": ("1815-12-10", "Wrote the first program for a machine that was never built."),
    "Charles Babbage": ("1791-12-26", "Designed engines that calculate."),
    "Mary Somerville": ("1780-12-26", "Explained the mechanism of the heavens."),
    "Grace Hopper": ("1906-12-09", "Made compilers, and found a moth in a relay."),
    "Alan Turing": ("1912-06-23", "Described a machine that computes what can be computed."),
    "Kurt Gödel": ("1906-04-28", "Proved that arithmetic does not prove everything."),
    "Emmy Noether": ("1882-03-23", "Found what symmetries have to do with conservation."),
}
KNOWS = (
    ("Ada Lovelace", "Charles Babbage"),
    ("Ada Lovelace", "Mary Somerville"),
    ("Mary Somerville", "Charles Babbage"),
    ("Alan Turing", "Kurt Gödel"),
    ("Grace Hopper", "Alan Turing"),
    ("Emmy Noether", "Kurt Gödel"),
)
BIG = 2**60 + 1


def make_world(place) -> omnigraph.Graph:
    """A graph with a short history: two branches, one of them merged, and a tag."""
    graph = omnigraph.init(place, SCHEMA, actor="ada")
    date = dt.date.fromisoformat
    people = [
        {"name": name, "born": date(born), "bio": bio, "height": 1.7, "steps": BIG}
        for name, (born, bio) in PEOPLE.items()
    ]
    rows = {
        "Person": people,
        "City": [{"name": "London", "country": "England"}, {"name": "Göttingen"}],
        "Company": [{"name": "Analytical Engines", "pitch": "Engines that weave patterns"}],
        "Knows": [{"from": one, "to": other} for one, other in KNOWS],
        "LivesIn": [
            {"from": "Ada Lovelace", "to": "London"},
            {"from": "Charles Babbage", "to": "London"},
            {"from": "Emmy Noether", "to": "Göttingen"},
        ],
        "WorksAt": [
            {"from": "Ada Lovelace", "to": "Analytical Engines", "role": "programmer"},
            {"from": "Charles Babbage", "to": "Analytical Engines", "role": "founder"},
        ],
    }
    graph.load(rows, message="Load the first people", actor="ada")
    graph.tags.create("first-edition", message="As printed", actor="ada")
    draft = graph.branches.create("heights")
    draft.mutate(
        'query q() { update Person set { height: 1.65 } where name = "Ada Lovelace" }',
        actor="grace",
        message="Correct a height",
    )
    graph.mutate(
        'query q() { update City set { country: "United Kingdom" } where name = "London" }',
        actor="ada",
        message="London is in the United Kingdom",
    )
    graph.merge("heights", actor="ada", message="Merge the corrected height")
    graph.branches.create("notes").mutate(
        'query q() { update Person set { bio: "Wrote the first program, and its proof." }'
        ' where name = "Ada Lovelace" }',
        actor="grace",
        message="Say more about Ada",
    )
    return graph


# For a module and not for the run: while it is there, no other test can start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if (reason := lacking()) is not None:
        pytest.skip(f"BROWSER TESTS ARE SKIPPED: {reason}")
    with sync_playwright() as playwright:
        running = launch(playwright)
        yield running
        running.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder / "world")
    with serving(settings_for(folder, {"world": str(folder / "world")})) as served:
        yield served


@pytest.fixture
def visit(browser: Browser, world: Served) -> Iterator[Visit]:
    """A tab that is logged in as ada."""
    with visiting(browser, world.url) as own:
        own.hold(world.token)
        yield own
