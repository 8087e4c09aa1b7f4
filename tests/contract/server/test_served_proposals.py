"""Proposals over HTTP: a whole review, by the actors of two tokens, and its refusals."""

from typing import Any

import omnigraph
from omnigraph.backends.local import LocalBackend
from omnigraph.schema.catalog import SchemaType
from omnigraph.server.settings import read_settings
from tests.contract.server.test_http import ADD, mutate, problem
from tests.support.served import serving

PLACE = "/graphs/world/proposals"


def test_a_branch_is_proposed_reviewed_and_merged(client, served):
    client.post("/graphs/world/branches", json={"name": "draft"})
    mutate(client, ADD, {"n": "Proposed"}, branch="draft")
    made = client.post(PLACE, json={"source": "draft", "title": "Add one"})
    assert (made.status_code, made.json()["author"]) == (201, "ada"), made.text
    own = f"{PLACE}/{made.json()['number']}"

    refused = client.post(f"{own}/approval", json={})
    assert "cannot approve" in problem(refused, 403, "own_proposal")["detail"]
    token, _ = served.tokens().create("grace")
    with served.client(token) as grace:
        row = {"text": "<b>who?</b>", "type": "Person", "id": "Proposed"}
        remarked = grace.post(f"{own}/comments", json=row)
        assert remarked.json()["comments"][0]["text"] == "<b>who?</b>"
        assert grace.post(f"{own}/approval", json={}).status_code == 200
        assert grace.get(own).json()["approved_by"] == ["grace"]
        assert grace.delete(f"{own}/approval").status_code == 200
        stale = grace.post(f"{own}/approval", json={"commit": "0" * 26})
        problem(stale, 412, "stale_head")
        may = grace.get(own).json()["may"]
        assert (may["approve"], may["withdraw_approval"], may["merge"]) == (True, False, True)
    shown = client.get(own).json()
    assert (shown["approved_by"], shown["actor"], shown["may"]["approve"]) == ([], "ada", False)
    assert "cannot approve" in shown["refusals"]["approve"]
    preview = client.post(f"{own}/preview", json={}).json()
    assert preview["changes"]["Person"]["inserted"] == 1
    assert client.get(PLACE, params={"state": "open"}).json()["proposals"][0]["number"] == 1
    stale = client.post(f"{own}/merge", json={"commit": "0" * 26})
    problem(stale, 412, "stale_head")
    seen = {"commit": shown["source_commit"], "delete_branch": True}
    merged = client.post(f"{own}/merge", json=seen)
    assert merged.json()["deleted_source"], merged.text
    ended = client.get(own).json()
    points = {"before": ended["base_commit"], "after": ended["source_commit"]}
    changed = client.get("/graphs/world/diff/rows", params=points).json()
    assert [row["id"] for row in changed["rows"]] == ["Proposed"], "its changes outlive its branch"
    again = client.post(f"{own}/merge", json={})
    problem(again, 400, "proposal_ended")
    assert client.get("/graphs/world/entities/Person/Proposed").status_code == 200
    problem(client.get(f"{PLACE}/99"), 404, "proposal_not_found")


def test_proposals_are_listed_page_by_page(client):
    client.post("/graphs/world/branches", json={"name": "pages"})
    mutate(client, ADD, {"n": "Paged"}, branch="pages")
    for index in range(3):
        client.post(PLACE, json={"source": "pages", "title": f"Page {index}"})
    numbers, cursor = [], None
    for _ in range(2):
        options = {"state": "open", "limit": "2", **({"cursor": cursor} if cursor else {})}
        page = client.get(PLACE, params=options).json()
        numbers += [each["number"] for each in page["proposals"]]
        cursor = page["cursor"]
    assert (len(numbers), numbers) == (3, sorted(numbers, reverse=True))
    assert cursor is None
    closed = client.post(f"{PLACE}/{numbers[0]}/close")
    assert closed.json()["state"] == "closed"
    problem(client.get(PLACE, params={"state": "done"}), 400, "invalid_input")


def test_changed_rows_are_read_by_position_and_compared_once(client, monkeypatch):
    client.post("/graphs/world/branches", json={"name": "wide"})
    for index in range(3):
        mutate(client, ADD, {"n": f"Row {index}"}, branch="wide")
    mutate(client, "query q() { insert Badge { number: 900 } }", branch="wide")
    made = client.post(PLACE, json={"source": "wide", "title": "Three rows"}).json()
    review = client.get(f"{PLACE}/{made['number']}").json()
    points = {"before": review["base_commit"], "after": review["source_commit"]}

    compared: list[str] = []
    compare = LocalBackend.compare

    def count(backend: LocalBackend, type_: SchemaType, *given: Any) -> Any:
        compared.append(type_.name)
        return compare(backend, type_, *given)

    monkeypatch.setattr(LocalBackend, "compare", count)
    counts = client.get("/graphs/world/diff", params=points).json()["changes"]
    assert (counts["Person"]["inserted"], counts["Badge"]["inserted"]) == (3, 1)
    ids = []
    for offset in (0, 2, 4):
        page = client.get(
            "/graphs/world/diff/rows",
            params={**points, "types": "Person", "offset": offset, "limit": 2},
        ).json()
        assert (page["total"], page["offset"], page["before"]) == (3, offset, points["before"])
        ids += [row["id"] for row in page["rows"]]
    assert ids == ["Row 0", "Row 1", "Row 2"]
    every = client.get("/graphs/world/diff/rows", params={**points, "offset": 1}).json()["rows"]
    assert [(row["type"], row["op"]) for row in every] == [("Person", "insert")] * 3
    assert sorted(compared) == ["Badge", "Person"]
    none = client.get("/graphs/world/diff/rows", params={**points, "ops": "delete"}).json()
    assert (none["total"], none["rows"]) == (0, [])


def test_a_conflict_is_listed_decided_by_a_value_and_merged(client):
    mutate(client, ADD, {"n": "Contested"})
    client.post("/graphs/world/branches", json={"name": "rival"})
    older = 'query q($a: I64) { update Person set { age: $a } where name = "Contested" }'
    mutate(client, older, {"a": 1}, branch="rival")
    mutate(client, older, {"a": 2**60})
    number = client.post(PLACE, json={"source": "rival", "title": "Rival"}).json()["number"]
    preview = client.post(f"{PLACE}/{number}/preview", json={}).json()
    [conflict] = preview["merge_conflicts"]
    assert (conflict["kind"], conflict["property"]) == ("divergent_update", "age")
    assert (conflict["base"], conflict["ours"], conflict["theirs"]) == (None, 2**60, 1)
    bounded = client.post(f"{PLACE}/{number}/preview", json={"limit": 0}).json()
    assert (bounded["merge_conflicts"], bounded["conflict_count"]) == ([], 1)
    problem(client.post(f"{PLACE}/{number}/merge", json={}), 409, "conflict")

    cell = {"type": "Person", "id": "Contested", "property": "age", "value": 2**61}
    decided = client.post(f"{PLACE}/{number}/preview", json={"resolve": [cell]}).json()
    assert (decided["conflict_count"], decided["changes"]["Person"]["updated"]) == (0, 1)
    merged = client.post(f"{PLACE}/{number}/merge", json={"resolve": [cell]})
    assert merged.status_code == 200, merged.text
    assert client.get("/graphs/world/entities/Person/Contested").json()["age"] == 2**61


def test_refusals_do_not_say_where_the_graph_is_stored(tmp_path):
    graph = omnigraph.init(tmp_path / "world", "node Person { name: String @key }", actor="ada")
    graph.branches.create("draft").mutate('query q() { insert Person { name: "x" } }')
    graph.proposals.create("draft", "A person", actor="ada")
    section = {"uri": str(tmp_path / "world"), "read_only": True}
    settings = read_settings(None, state=tmp_path / "state", graphs={"world": section})
    with serving(settings) as read_only, read_only.client() as ada:
        shown = [
            ada.get(f"{PLACE}/1"),
            ada.post("/graphs/world/calls/proposals.show", json={"arguments": {"number": 1}}),
        ]
    for answer in shown:
        assert answer.status_code == 200, answer.text
        assert b"the graph world was opened read-only" in answer.content
        assert str(tmp_path).encode() not in answer.content
