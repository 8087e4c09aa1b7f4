"""The server over HTTP: what is asked is answered, in each form, and problems say what is wrong."""

import gzip
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
import zstandard

PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age, $p.score } order { $p.name } }"
ADD = "query add($n: String) { insert Person { name: $n } }"
BADGE = "query add($n: I32) { insert Badge { number: $n } }"
BADGES = "query q($n: I32) { match { $b: Badge {number: $n} } return { count($b) as n } }"


def ask(client, query, params=None, **more):
    answer = client.post("/graphs/world/query", json={"query": query, "params": params, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def mutate(client, query, params=None, headers=None, **more):
    body = {"query": query, "params": params, **more}
    return client.post("/graphs/world/mutate", json=body, headers=headers or {})


def problem(answer, status, code):
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = answer.json()
    assert (answer.status_code, found["status"], found["code"]) == (status, status, code)
    assert found["request_id"] == answer.headers["x-request-id"]
    return found


def test_rows_are_the_same_in_every_form(client, graph):
    expected = graph.query(PEOPLE).rows()

    def rows(media_type):
        headers = {"Accept": media_type}
        return client.post("/graphs/world/query", json={"query": PEOPLE}, headers=headers)

    assert rows("application/json").json()["rows"] == expected
    lines = rows("application/x-ndjson").text.splitlines()
    assert list(map(json.loads, lines)) == expected
    assert rows("text/csv").text.splitlines()[1].startswith("Ada,1152921504606846976,")
    arrow = rows("application/vnd.apache.arrow.stream")
    assert pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all().to_pylist() == expected
    assert json.loads(arrow.headers["omnigraph-result"])["engine"] == "local"


def test_a_write_is_of_the_actor_of_its_token_and_no_header_changes_that(client, graph):
    headers = {"X-Actor": "eve", "X-Forwarded-User": "eve", "Actor": "eve", "From": "eve"}
    done = mutate(client, ADD, {"n": "Bob"}, headers, message="hello").json()

    commit = graph.commits.show(done["commit_id"])
    assert (commit.actor, commit.message) == ("ada", "hello")
    assert done["changes"] == {"Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    refused = client.post("/graphs/world/mutate", json={"query": ADD, "actor": "eve"})
    assert "actor: Extra inputs" in problem(refused, 400, "invalid_input")["detail"]


def test_a_condition_is_the_tag_of_the_branch(client):
    tag = client.get("/graphs/world/branches/main").headers["etag"]
    assert mutate(client, ADD, {"n": "Cy"}, {"If-Match": tag}).status_code == 200

    late = mutate(client, ADD, {"n": "Dee"}, {"If-Match": tag})

    assert problem(late, 412, "stale_head")["hint"]
    assert client.get("/graphs/world/entities/Person/Dee").status_code == 404


def test_other_writes_heed_a_condition_or_refuse_it(client):
    client.post("/graphs/world/branches", json={"name": "condition"})
    place = "/graphs/world/branches/condition"
    old = {"If-Match": client.get(place).headers["etag"]}
    row = '{"type": "Badge", "data": {"number": 31}}'
    load = "/graphs/world/load?branch=condition&index=false"
    assert client.post(load, content=row, headers=old).status_code == 200
    problem(client.post(load, content=row, headers=old), 412, "stale_head")
    problem(client.delete(place, headers=old), 412, "stale_head")
    new = {"If-Match": client.get(place).headers["etag"]}
    merge = {"source": "condition", "into": "main"}
    problem(client.post("/graphs/world/merge", json=merge, headers=new), 412, "stale_head")
    tag = {"name": "conditional"}
    problem(client.post("/graphs/world/tags", json=tag, headers=new), 400, "invalid_input")
    assert client.delete(place, headers=new).status_code == 200


def test_a_request_with_a_key_lands_once(client):
    key = {"Idempotency-Key": "badge-1"}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: mutate(client, BADGE, {"n": 1}, key), range(4)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["commit_id"] for answer in answers}) == 1
    assert ask(client, BADGES, {"n": 1})["rows"] == [{"n": 1}]
    problem(mutate(client, BADGE, {"n": 2}, key), 422, "request_mismatch")
    problem(mutate(client, BADGE, {"n": 1}), 422, "integrity")
    refused = client.post("/graphs/world/branches", json={"name": "x"}, headers=key)
    problem(refused, 400, "invalid_input")


def test_branches_merge_and_conflicts_are_told(client, graph):
    assert client.post("/graphs/world/branches", json={"name": "side/1"}).status_code == 201
    problem(client.post("/graphs/world/branches", json={"name": "side/1"}), 409, "branch_exists")
    update = 'query u($a: I64) { update Person set { age: $a } where name = "Ada" }'
    assert mutate(client, update, {"a": 1}, branch="side/1").status_code == 200
    assert mutate(client, update, {"a": 2}).status_code == 200
    merge = {"source": "side/1", "into": "main"}

    found = problem(client.post("/graphs/world/merge", json=merge), 409, "conflict")
    assert [each["property"] for each in found["merge_conflicts"]] == ["age"]
    preview = client.post("/graphs/world/merge", json={**merge, "dry_run": True}).json()
    assert (preview["conflict_count"], preview["commit_id"]) == (1, None)
    decision = [{"type": "Person", "id": "Ada", "property": "age", "take": "theirs"}]
    merged = client.post("/graphs/world/merge", json={**merge, "resolve": decision}).json()
    assert merged["outcome"] == "merged"
    assert (graph.entity("Person", "Ada") or {})["age"] == 1
    gone = client.delete("/graphs/world/branches/side/1")
    assert gone.json() == {"branch": "side/1", "deleted": True}
    problem(client.get("/graphs/world/branches/side/1"), 404, "branch_not_found")


def test_lists_are_read_page_by_page(client, graph):
    for name in ("a", "b", "c"):
        client.post("/graphs/world/tags", json={"name": f"v/{name}"})
    pages, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = client.get("/graphs/world/tags", params=query).json()
        pages.append([tag["tag"] for tag in page["tags"]])
        if (cursor := page["cursor"]) is None:
            break
    assert pages == [["v/a", "v/b"], ["v/c"]]

    ids, cursor = [], None
    while True:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = client.get("/graphs/world/commits", params=query).json()
        ids += [commit["commit_id"] for commit in page["commits"]]
        if (cursor := page["cursor"]) is None:
            break
    assert ids == [commit.commit_id for commit in graph.commits.list()]
    problem(client.get("/graphs/world/tags", params={"cursor": "ö"}), 400, "invalid_parameter")


@pytest.mark.parametrize("compress", [bytes, gzip.compress, zstandard.compress])
def test_a_small_load_is_answered_at_once_however_it_is_compressed(client, compress):
    name = f"L {compress.__name__} {compress.__module__}"
    line = json.dumps({"type": "Person", "data": {"name": name}}).encode()
    encoding = {bytes: {}, gzip.compress: {"Content-Encoding": "gzip"}}.get(
        compress, {"Content-Encoding": "zstd"}
    )
    answer = client.post("/graphs/world/load", content=compress(line), headers=encoding)

    assert answer.status_code == 200, answer.text
    assert answer.json()["changes"]["Person"]["inserted"] == 1
    assert client.get(f"/graphs/world/entities/Person/{name}").json()["name"] == name


def test_load_chooses_one_of_several_rows_of_a_key(client):
    lines = [{"type": "Person", "data": {"name": "twice", "age": age}} for age in (1, 2)]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    where = "/graphs/world/load?mode=append"
    problem(client.post(where, content=body), 422, "integrity")
    problem(client.post(f"{where}&on_duplicate=best", content=body), 400, "invalid_input")

    answer = client.post(f"{where}&on_duplicate=first", content=body)

    assert answer.json()["superseded"] == 1
    assert client.get("/graphs/world/entities/Person/twice").json()["age"] == 1


def test_a_large_load_is_a_job_and_a_key_makes_it_one(client):
    rows = [{"type": "Person", "data": {"name": f"job {number}"}} for number in range(200)]
    body = "\n".join(map(json.dumps, rows))
    key = {"Idempotency-Key": "large"}
    first = client.post("/graphs/world/load", content=body, headers=key)
    again = client.post("/graphs/world/load", content=body, headers=key)

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json()["job_id"] == first.json()["job_id"]
    job = wait_for(client, first.headers["location"])
    assert (job["state"], job["actor"]) == ("done", "ada")
    assert job["result"]["changes"]["Person"] == {"inserted": 200, "updated": 0, "deleted": 0}
    broken = '{"type": "Person", "data": {"name": 7}}\n' * 100
    failed = client.post("/graphs/world/load", content=broken)
    job = wait_for(client, failed.headers["location"])
    assert (job["state"], job["problem"]["code"]) == ("failed", "integrity")
    problem(client.get("/graphs/world/jobs/nothing"), 404, "not_found")


def test_rows_that_break_rules_are_left_out_and_can_be_fetched(client):
    rows = '{"type": "Badge", "data": {"number": 4711}}\n{"type": "Badge", "data": {}}\n'
    started = client.post("/graphs/world/load?on_error=quarantine", content=rows)

    assert started.status_code == 202
    job = wait_for(client, started.headers["location"])
    assert (job["state"], job["result"]["rejected"]) == ("done", 1)
    left_out = client.get(f"{started.headers['location']}/rejects")
    assert left_out.status_code == 200
    assert len(left_out.text.splitlines()) == 1
    problem(client.post("/graphs/world/load?engine=steam", content=rows), 400, "invalid_input")


def wait_for(client, place):
    for _ in range(600):
        job = client.get(place).json()
        if job["state"] not in ("queued", "running"):
            return job
        time.sleep(0.05)
    raise AssertionError(job)


def test_changes_are_polled_awaited_and_streamed(client, graph):
    cursor = graph.baseline()
    empty = client.get("/graphs/world/changes", params={"after": cursor}).json()
    assert (empty["commits"], empty["is_newest"]) == ([], True)
    with ThreadPoolExecutor(1) as pool:
        query = {"after": cursor, "wait": 20, "rows": True}
        waiting = pool.submit(client.get, "/graphs/world/changes", params=query)
        done = mutate(client, ADD, {"n": "Fay"}).json()
        [commit] = waiting.result().json()["commits"]
    assert commit["commit"]["commit_id"] == done["commit_id"]
    assert [row["id"] for row in commit["rows"]] == ["Fay"]

    headers = {"Accept": "text/event-stream"}
    with client.stream(
        "GET", "/graphs/world/changes", params={"after": cursor}, headers=headers
    ) as events:
        lines = events.iter_lines()
        assert next(lines) == f"id: {done['commit_id']}"
    problem(
        client.get("/graphs/world/changes", params={"after": "0" * 26}, headers=headers),
        410,
        "feed_gap",
    )


def test_a_blob_is_read_in_ranges(client, graph):
    graph.load({"Person": [{"name": "Pic", "picture": b"0123456789"}]})
    place = "/graphs/world/blobs/Person/picture/Pic"
    whole = client.get(place)
    assert whole.content == b"0123456789"
    part = client.get(place, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    tag = whole.headers["etag"]
    assert client.get(place, headers={"If-None-Match": tag}).status_code == 304
    beyond = client.get(place, headers={"Range": "bytes=99-"})
    problem(beyond, 416, "range_not_satisfiable")
    assert beyond.headers["content-range"] == "bytes */10"


def test_an_id_may_have_any_characters(client, graph):
    for name in ("a/history", ".", "..", "a?b#c%", "x/../y"):
        graph.load({"Person": [{"name": name}]}, index=False)
        found = client.get("/graphs/world/entities/Person", params={"id": name})
        assert found.json()["name"] == name


def test_an_export_loads_again(client, graph, tmp_path):
    import omnigraph

    export = client.get("/graphs/world/export", params={"types": "Person"})
    copy = omnigraph.init(tmp_path / "copy", graph.schema.show().text)
    (tmp_path / "people.jsonl").write_bytes(export.content)
    copy.load(tmp_path / "people.jsonl")
    assert copy.query(PEOPLE).rows() == graph.query(PEOPLE).rows()


def test_a_schema_is_planned_applied_and_shown(client):
    client.post("/graphs/world/branches", json={"name": "schema"})
    text = client.get("/graphs/world/schema").json()["schema"].replace("@unique", "")
    body = {"schema": text, "branch": "schema"}
    plan = client.post("/graphs/world/schema/plan", json=body).json()
    assert [step["step"] for step in plan["steps"]] == ["drop_unique"]
    applied = client.post("/graphs/world/schema/apply", json=body).json()
    assert applied["commit_id"]
    shown = client.get("/graphs/world/schema", params={"branch": "schema"}).json()
    assert "@unique" not in shown["schema"]


def test_operators_see_life_readiness_and_counters(client, served):
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").status_code == 200
    text = client.get("/metrics").text
    assert 'omnigraph_requests_total{method="POST",route="/graphs/{graph}/query"' in text
    assert served.token not in text
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")
