"""Proposals over HTTP: a whole review, by the actors of two tokens, and its refusals."""

from tests.contract.server.test_http import ADD, mutate, problem

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
    assert client.get(own).json()["approved_by"] == []
    preview = client.post(f"{own}/preview", json={}).json()
    assert preview["changes"]["Person"]["inserted"] == 1
    assert client.get(PLACE, params={"state": "open"}).json()["proposals"][0]["number"] == 1
    merged = client.post(f"{own}/merge", json={"delete_branch": True})
    assert merged.json()["deleted_source"], merged.text
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
