"""A graph of a million nodes in the app: a neighbourhood is drawn, and little is read for it."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser, expect

import omnigraph
from tests.support.browser import visiting
from tests.support.served import serving, settings_for

pytestmark = pytest.mark.soak

NODES = 1_000_000
HUB = "n0000000"
HUB_EDGES = 200_000
SCHEMA = """
node Node { name: String @key  text: String? @index }
edge Leads: Node -> Node
"""


def make_large(place) -> None:
    numbers = pa.array(range(NODES))
    names = pc.binary_join_element_wise(
        "n", pc.utf8_lpad(pc.cast(numbers, pa.string()), 7, "0"), ""
    )
    texts = pc.binary_join_element_wise("the text of", names, " ")
    nodes = pa.table({"name": names, "text": texts})
    hub = pa.array([HUB] * HUB_EDGES)
    edges = pa.table(
        {
            "from": pa.concat_arrays([hub, names[:-1]]),
            "to": pa.concat_arrays([names[1 : HUB_EDGES + 1], names[1:]]),
        }
    )
    omnigraph.init(place, SCHEMA).load({"Node": nodes, "Leads": edges})


def test_a_million_nodes_are_shown_by_their_neighbourhoods(browser: Browser, tmp_path):
    make_large(tmp_path / "large")
    settings = settings_for(tmp_path, {"large": str(tmp_path / "large")})
    with serving(settings) as served, visiting(browser, served.url) as visit:
        visit.hold(served.token)
        page = visit.page
        sizes: list[int] = []
        page.on("response", lambda got: sizes.append(int(got.headers.get("content-length", 0))))
        visit.go("graphs", "large", "search", q=HUB)
        page.get_by_role("link", name=HUB).first.click()
        nodes = page.locator(".picture a.node")
        expect(nodes).to_have_count(1 + 12, timeout=60_000)
        expect(page.get_by_role("link", name="and more")).to_be_visible()
        # Of 200,000 edges, a few were sent: the whole visit is smaller than one large picture.
        assert sum(sizes) < 300_000

        page.get_by_role("link", name="and more").click()
        page.get_by_role("button", name="Run").click()
        expect(page.locator("tbody tr")).to_have_count(100, timeout=60_000)
        page.get_by_role("tab", name="Picture").click()
        expect(nodes).to_have_count(150, timeout=60_000)
        heap = page.evaluate("() => performance.memory.usedJSHeapSize")
        assert heap < 100 << 20

        visit.go("graphs", "large", "entities", "Node", id="n0999998")
        expect(nodes).to_have_count(3, timeout=60_000)
        assert page.locator("*").count() < 1_000
