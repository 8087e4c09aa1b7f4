"""The web app as the server answers it: headers, caching, and what is not there; and its routes."""

import pytest

from omnigraph.server.routes import pages


@pytest.fixture
def built(tmp_path, monkeypatch):
    """An app as the build leaves it."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Omnigraph</title>")
    (tmp_path / "icon.svg").write_text("<svg/>")
    (tmp_path / "assets" / "index-abc.js").write_text("1")
    (tmp_path / "secret.txt").write_text("no")
    monkeypatch.setattr(pages, "FOLDER", tmp_path)


@pytest.mark.usefixtures("built")
def test_the_page_needs_no_token_and_may_run_nothing_of_others(served):
    with served.client(token=None) as anyone:
        answer = anyone.get("/")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers.get_list("content-security-policy") == [
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.usefixtures("built")
def test_the_page_is_asked_for_again_and_its_files_are_kept(client):
    page, file = client.get("/"), client.get("/assets/index-abc.js")

    assert page.headers.get_list("cache-control") == ["no-cache"]
    assert file.headers.get_list("cache-control") == ["public, max-age=31536000, immutable"]
    assert "javascript" in file.headers["content-type"]
    again = client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path",
    [
        "/assets/other.js",
        "/assets/..%2fsecret.txt",
        "/assets/%2e%2e/secret.txt",
        "/assets/.hidden",
        "/assets/",
        "/secret.txt",
        "/index.html/..",
    ],
)
def test_no_other_file_is_answered(client, path):
    answer = client.get(path)

    assert answer.status_code == 404 or answer.headers["content-type"].startswith("text/html")
    assert answer.text != "no"


def test_an_app_that_was_not_built_is_reported(client, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "FOLDER", tmp_path)

    answer = client.get("/")

    assert answer.status_code == 404
    assert "was not built" in answer.text
    assert client.get("/icon.svg").json()["code"] == "not_found"


def test_a_session_says_who_asks(client, served):
    assert client.get("/session").json()["actor"] == "ada"
    assert client.get("/session").json()["graphs"] == ["world"]
    with served.client(token=None) as anyone:
        assert anyone.get("/session").status_code == 401


def test_the_history_has_every_branch_and_comes_in_pages(client, graph):
    head = graph.snapshot().head.commit_id
    side = graph.branches.create("side")
    side.mutate('query q() { insert Person { name: "Side" } }')
    graph.tags.create("here")
    try:
        every = client.get("/graphs/world/history").json()
        ids, more = [], {"limit": "1"}
        while more:
            page = client.get("/graphs/world/history", params=more).json()
            ids += [commit["commit_id"] for commit in page["commits"]]
            more = {"limit": "1", "cursor": page["cursor"]} if page["cursor"] else {}
        own = client.get("/graphs/world/history", params={"branch": "main"}).json()
    finally:
        graph.branches.delete("side")
        graph.tags.delete("here")

    assert every["cursor"] is None
    assert ids == [commit["commit_id"] for commit in every["commits"]]
    assert every["commits"][0]["branches"] == ["side"]
    assert every["commits"][1]["commit_id"] == head
    assert (every["commits"][1]["branches"], every["commits"][1]["tags"]) == (["main"], ["here"])
    assert own["commits"][0]["commit_id"] == head


def test_the_schema_is_a_document(client):
    catalog = client.get("/graphs/world/schema/catalog").json()

    assert [each["name"] for each in catalog["node_types"]] == ["Badge", "Person"]
    assert catalog["edge_types"][0]["source"] == "Person"
