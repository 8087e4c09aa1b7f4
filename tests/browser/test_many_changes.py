"""A proposal of a hundred thousand changed rows: usable at once, with few of them in memory."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

import omnigraph
from tests.support.browser import visiting
from tests.support.served import Served, serving, settings_for

ROWS = 100_000
SECONDS_MAX = 2.0
HEAP_MAX = 64 << 20
NODES_MAX = 5_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("many")
    schema = "node Person { name: String @key  age: I64?  bio: String? }"
    graph = omnigraph.init(folder / "world", schema, actor="ada")
    people = [
        {"name": f"p{index:06}", "age": index, "bio": f"Some words about person {index}."}
        for index in range(ROWS)
    ]
    graph.load({"Person": people}, index=False)
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { bio: "Other words." } where age >= 0 }')
    graph.proposals.create("draft", "Other words about everybody", actor="ada")
    graph.mutate('query q() { update Person set { bio: "Ours." } where age < 3000 }')
    with serving(settings_for(folder, {"world": str(folder / "world")})) as running:
        yield running


@pytest.mark.soak
def test_a_hundred_thousand_changes_are_reviewed_without_freezing(
    browser: Browser, served: Served
) -> None:
    with visiting(browser, served.url) as visit:
        page = visit.page
        visit.hold(served.token)
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable")

        def measure(name: str) -> float:
            found = metrics.send("Performance.getMetrics")["metrics"]
            return float(next(each["value"] for each in found if each["name"] == name))

        visit.go("graphs", "world", "proposals", "1")
        rows = page.get_by_role("list", name="Changed rows")
        expect(rows.get_by_text("p000000", exact=True)).to_be_visible()
        page.keyboard.press("j")
        expect(page.get_by_role("region", name="Person p000000")).to_be_visible()
        started = measure("ScriptDuration") + measure("LayoutDuration")
        assert started < SECONDS_MAX

        for share in (0.25, 0.5, 0.75, 1.0):
            rows.evaluate(f"list => list.scrollTop = list.scrollHeight * {share}")
            index = min(ROWS - 1, int(ROWS * share))
            expect(rows.get_by_text(f"p{index:06}", exact=True)).to_be_visible()
        for _ in range(60):
            rows.evaluate("list => list.scrollTop -= 20_000")
            page.wait_for_timeout(20)
        expect(page.get_by_role("button", name="3,000 conflicts to decide")).to_be_visible()
        page.keyboard.press("2")
        page.get_by_label("All other conflicts").select_option("theirs")
        expect(page.get_by_text("every conflict is decided")).to_be_visible(timeout=30_000)
        page.keyboard.press("1")
        metrics.send("HeapProfiler.collectGarbage")
        heap, nodes = measure("JSHeapUsedSize"), measure("Nodes")
        assert heap < HEAP_MAX
        assert nodes < NODES_MAX
