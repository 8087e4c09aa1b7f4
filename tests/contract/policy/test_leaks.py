"""Every operation, as every kind of actor, in a graph with planted values: none of them gets out.

An operation, a route, a tool or a kind of schema step that has no call here fails the test.
"""

# ruff: noqa: ARG005, E501  # the tables have one line for each operation

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import omnigraph
from omnigraph.agents.tools import find_tool, list_tools
from omnigraph.agents.workspace import Workspace
from omnigraph.documents.operations import OPERATIONS
from omnigraph.documents.values import to_document
from omnigraph.errors import OmnigraphError
from omnigraph.lang.source import Source
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.policy.authority import Authority
from omnigraph.policy.policies import AccessPolicy
from omnigraph.policy.sight import EVERYTHING, Sight
from omnigraph.schema.steps import StepKind
from omnigraph.server.app import _ROUTERS
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.view import View, view_at
from omnigraph.transaction.writes import WriteRequest
from tests.contract.policy.hidden_worlds import (
    ACTORS,
    HIDDEN,
    KEEPER,
    MARK,
    SCHEMA,
    STEPS,
    HiddenWorld,
    changed_schema,
    leaks,
    make_hidden_world,
)
from tests.support.served import Served, serving, settings_for

Arguments = dict[str, Any]

SALARIES: Final = "query q() { match { $s: Salary } return { $s.key, $s.amount } }"
PEOPLE: Final = "query q() { match { $p: Person } return { $p.name } }"
COUNT: Final = "query q() { match { $s: Salary } return { count($s) as n } }"
EARNERS: Final = "query q() { match { $p earns $s } return { $p.name, count($s) as n } }"
RAISE: Final = "query q() { update Salary set { maybe: 3 } where grade < 1091 }"
FIRE: Final = 'query q() { delete Person where name = "cara" }'
DROP: Final = "query q() { delete Salary where grade >= 0 }"
CLASH: Final = (
    'query q() { insert Salary { key: "mine" amount: 1 grade: 1 badge: "b5" note: "x" '
    'state: "open" tags: [1] } }'
)
GREET: Final = 'query q() { insert Person { name: "new" } }'
ROW: Final = {
    "key": "mine", "amount": 1, "grade": 1, "badge": "b5", "note": "x", "state": "open", "tags": [1],
}  # fmt: skip
LINE: Final = json.dumps({"type": "Salary", "data": ROW}).encode()
EVENTS: Final = 5
"""The commits of main that are no maintenance."""
MERGES: Final = (
    {"source": "draft/hidden"},
    {"source": "draft/visible"},
    {"source": "draft/empty"},
    {"source": "draft/hidden", "resolve": "ours"},
    {"source": "draft/hidden", "resolve": "theirs"},
)


def source(text: str) -> Source:
    return Source(text=text, name="sent")


def each(*texts: str) -> list[Arguments]:
    return [{"source": source(text)} for text in texts]


# fmt: off
CALLS: Final[dict[str, Callable[[HiddenWorld], list[Arguments]]]] = {
    "at": lambda w: [{"branch": "draft/hidden"}, {"commit": "v1"}],
    "algorithms.components": lambda w: [{}, {"edges": "Earns"}],
    "algorithms.degrees": lambda w: [{}, {"edges": "Earns"}],
    "algorithms.label_propagation": lambda w: [{}, {"edges": "Earns"}],
    "algorithms.pagerank": lambda w: [{}, {"edges": "Earns"}],
    "algorithms.shortest_paths": lambda w: [{"sources": {"Person": ["ada"]}}, {"sources": {"Person": ["ada"]}, "edges": "Knows"}],
    "algorithms.triangles": lambda w: [{}, {"edges": "Earns"}],
    "baseline": lambda w: [{}],
    "branches.list": lambda w: [{}],
    "changes": lambda w: [{}, {"branch": "draft/hidden"}, {"types": "Salary"}, {"kinds": "edge"}],
    "check": lambda w: [{"branch": "draft/hidden"}, {"branch": "main", "history": True}],
    "commits.changes": lambda w: [{"commit_id": w.head()}, {"commit_id": w.head("draft/hidden")}],
    "commits.every": lambda w: [{}],
    "commits.let_go": lambda w: [{"commits": list(w.graph.commits.list())}],
    "commits.list": lambda w: [{}],
    "commits.show": lambda w: [{"commit_id": w.head()}],
    "diff": lambda w: [{"before": "main", "after": "draft/hidden"}, {"before": "v1", "after": "draft/hidden", "types": "Salary"}],
    "embeddings.status": lambda w: [{}, {"types": "Salary"}],
    "entity": lambda w: [{"type_name": "Salary", "id": "x-5"}, {"type_name": "Person", "id": "ada"}],
    "indexes.list": lambda w: [{}],
    "point": lambda w: [{"text": "main"}, {"text": "v1"}],
    "proposals.diff": lambda w: [{"number": 1}, {"number": 2}, {"number": 1, "types": "Salary"}],
    "proposals.list": lambda w: [{}, {"state": None}],
    "proposals.preview": lambda w: [{"number": 1}, {"number": 2}, {"number": 1, "resolve": "ours"}],
    "proposals.show": lambda w: [{"number": 1}, {"number": 2}],
    "queries.list": lambda w: [{}],
    "queries.show": lambda w: [{"name": "paid"}],
    "recoveries.list": lambda w: [{}],
    "recoveries.pending": lambda w: [{}],
    "require_writable": lambda w: [{}],
    "schema.history": lambda w: [{}],
    "schema.show": lambda w: [{}],
    "settings.get": lambda w: [{"key": "query.timeout"}],
    "settings.list": lambda w: [{}],
    "snapshot": lambda w: [{}, {"branch": "draft/hidden"}, {"commit": "v1"}],
    "streams.list": lambda w: [{}],
    "tags.list": lambda w: [{}],
    "tags.show": lambda w: [{"name": "v1"}],
    "branches.create": lambda w: [{"name": w.name()}],
    "branches.delete": lambda w: [{"name": w.branch()}],
    "cleanup": lambda w: [{"dry_run": True}, {}],
    "embeddings.run": lambda w: [{"branch": w.branch(), "types": "Salary"}],
    "ensure_indices": lambda w: [{"branch": w.branch(), "rebuild": True}],
    "merge": lambda w: [{"into": w.branch(), "dry_run": dry, **how} for how in MERGES for dry in (True, False)],
    "optimize": lambda w: [{"branch": w.branch("draft/hidden")}],
    "proposals.approve": lambda w: [{"number": w.proposal("draft/visible")}, {"number": 1}],
    "proposals.close": lambda w: [{"number": w.proposal("draft/visible")}],
    "proposals.comment": lambda w: [{"number": 1, "text": "hm", "type_name": "Salary", "id": "x"}],
    "proposals.create": lambda w: [{"source": w.branch("draft/visible"), "title": "t"}],
    "proposals.merge": lambda w: [{"number": w.proposal("draft/hidden")}, {"number": w.proposal("draft/visible")}],
    "proposals.withdraw_approval": lambda w: [{"number": 1}],
    "queries.delete": lambda w: [{"name": w.query()}],
    "refresh": lambda w: [{}],
    "repair": lambda w: [{"dry_run": True}, {}],
    "settings.set": lambda w: [{"key": "query.timeout", "value": "50s"}],
    "settings.unset": lambda w: [{"key": "query.timeout"}],
    "streams.forget": lambda w: [{"name": "none"}],
    "tags.create": lambda w: [{"name": f"t-{w.name()[7:]}"}],
    "tags.delete": lambda w: [{"name": w.tag()}],
    "query": lambda w: each(SALARIES, PEOPLE, COUNT, EARNERS),
    "explain": lambda w: each(SALARIES, PEOPLE, COUNT, EARNERS),
    "mutate": lambda w: [{**one, "branch": w.branch()} for one in each(RAISE, FIRE, DROP, CLASH, GREET)],
    "queries.run": lambda w: [{"name": "paid"}],
    "queries.put": lambda w: [{"source": source(f"{SALARIES}")}, {"source": source(SALARIES), "branch": w.branch()}],
    "schema.plan": lambda w: [{"schema": source(changed_schema(edit))} for edits in STEPS.values() for edit in edits],
    "schema.apply": lambda w: [{"schema": source(changed_schema(edit)), "branch": w.branch()}
                               for edits in STEPS.values() for edit in edits],
    "schema.purge": lambda w: [{"dry_run": True}, {"schema": source(changed_schema(STEPS[StepKind.DROP_PROPERTY][0])), "dry_run": True}],
    "schema.diff": lambda w: [{"before": "main", "after": "draft/hidden"}],
}
"""By operation, arguments that reach for hidden rows."""


def get(path: str) -> Callable[[HiddenWorld], list[Arguments]]:
    return lambda _: [{"path": path}]


def post(path: str, *bodies: Arguments) -> Callable[[HiddenWorld], list[Arguments]]:
    return lambda _: [{"path": path, "json": body} for body in bodies]


ROUTES: Final[dict[str, Callable[[HiddenWorld], list[Arguments]]]] = {
    "GET /snapshot": lambda w: [{"path": "snapshot"}, {"path": "snapshot?branch=draft/hidden"}],
    "GET /commits": get("commits"),
    "GET /history": get("history"),
    "GET /commits/{commit}": lambda w: [{"path": f"commits/{w.head()}"}],
    "GET /commits/{commit}/changes": lambda w: [
        {"path": f"commits/{w.head(name)}/changes?rows=true", "headers": {"Accept": accept}}
        for name in ("main", "draft/hidden") for accept in ("application/json", "application/x-ndjson")],
    "GET /diff": lambda w: [
        {"path": "diff?before=main&after=draft/hidden&rows=true", "headers": {"Accept": accept}}
        for accept in ("application/json", "application/x-ndjson")],
    "GET /diff/rows": get("diff/rows?before=main&after=draft/hidden"),
    "GET /changes": lambda w: [{"path": "changes?rows=true"}, {"path": "changes?rows=true&branch=draft/hidden"},
                               {"path": "changes?types=Salary"}, {"path": "changes?rows=true", "events": True}],
    "POST /mcp": lambda w: [{"path": "mcp", "json": {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                                                      "params": {"name": "schema", "arguments": {}}},
                             "headers": {"Accept": "application/json, text/event-stream"}}],
    "GET /schema": get("schema"),
    "GET /schema/catalog": get("schema/catalog"),
    "POST /schema/plan": lambda w: [{"path": "schema/plan", "json": {"schema": changed_schema(edit)}}
                                    for edits in STEPS.values() for edit in edits],
    "POST /schema/apply": lambda w: [{"path": "schema/apply", "json": {"schema": changed_schema(edit), "branch": w.branch()}}
                                     for edits in STEPS.values() for edit in edits[-1:]],
    "POST /query": post("query", {"query": SALARIES}, {"query": PEOPLE}, {"query": COUNT}),
    "POST /explain": post("explain", {"query": SALARIES}, {"query": COUNT}),
    "POST /mutate": lambda w: [{"path": "mutate", "json": {"query": text, "branch": w.branch()}}
                               for text in (RAISE, FIRE, DROP, CLASH, GREET)],
    "GET /queries": get("queries"),
    "POST /queries": lambda w: [{"path": "queries", "json": {"query": SALARIES, "branch": w.branch()}}],
    "GET /queries/{name}": get("queries/paid"),
    "POST /queries/{name}": post("queries/paid", {}),
    "DELETE /queries/{name}": lambda w: [{"path": f"queries/{w.query()}"}],
    "GET /branches": get("branches"),
    "GET /branches/{branch:path}": get("branches/draft/hidden"),
    "GET /permissions": lambda w: [{"path": f"permissions?{asked}"} for asked in (
        "action=mutate&type=Salary", f"action=mutate&branch={w.branch()}&type=Salary",
        "action=branch_create&branch=new&source=draft/hidden", "action=branch_delete&branch=draft/hidden",
        "action=propose&branch=draft/hidden")],
    "POST /branches": lambda w: [{"path": "branches", "json": {"name": w.name()}}],
    "DELETE /branches/{branch:path}": lambda w: [{"path": f"branches/{w.branch()}"}],
    "POST /merge": lambda w: [{"path": "merge", "json": {"into": w.branch(), "dry_run": dry, **how}}
                              for how in MERGES for dry in (True, False)],
    "GET /tags": get("tags"),
    "GET /tags/{tag:path}": get("tags/v1"),
    "POST /tags": lambda w: [{"path": "tags", "json": {"name": f"t-{w.name()[7:]}"}}],
    "DELETE /tags/{tag:path}": lambda w: [{"path": f"tags/{w.tag()}"}],
    "GET /entities/{type_name}": get("entities/Salary?id=x-5"),
    "GET /entities/{type_name}/{entity_id:path}/history": lambda w: [
        {"path": "entities/Salary/x-5/history"}, {"path": "entities/Person/cara/history"}],
    "GET /entities/{type_name}/{entity_id:path}": lambda w: [{"path": "entities/Salary/x-5"}, {"path": "entities/Person/ada"}],
    "GET /blobs/{type_name}/{property_name}/{entity_id:path}": get("blobs/Salary/note/x-5"),
    "GET /export": lambda w: [{"path": "export"}, {"path": "export?types=Salary"}, {"path": "export?branch=draft/hidden"}],
    "GET /recovery": get("recovery"),
    "GET /proposals": get("proposals"),
    "POST /proposals": lambda w: [{"path": "proposals", "json": {"source": w.branch("draft/visible"), "title": "t"}}],
    "GET /proposals/{number}": lambda w: [{"path": "proposals/1"}, {"path": "proposals/2"}],
    "POST /proposals/{number}/preview": lambda w: [
        {"path": f"proposals/{number}/preview", "json": body} for number in (1, 2)
        for body in ({}, {"resolve": "theirs"}, {"resolve": [{"type": "Salary", "id": "x-5", "take": "ours"}]})],
    "POST /proposals/{number}/approval": lambda w: [{"path": "proposals/2/approval", "json": {}}],
    "DELETE /proposals/{number}/approval": get("proposals/2/approval"),
    "POST /proposals/{number}/comments": post("proposals/1/comments", {"text": "hm"}),
    "POST /proposals/{number}/close": lambda w: [{"path": f"proposals/{w.proposal('draft/visible')}/close"}],
    "POST /proposals/{number}/merge": lambda w: [
        {"path": f"proposals/{w.proposal(name)}/merge", "json": {}} for name in ("draft/hidden", "draft/visible")],
    "POST /load": lambda w: [
        {"path": f"load?mode={mode}&branch={w.branch()}&on_error={on_error}", "content": LINE, "job": on_error == "quarantine"}
        for mode in ("append", "merge", "overwrite") for on_error in ("fail", "quarantine")],
    "GET /jobs": get("jobs"),
    "GET /jobs/{job_id}": get("jobs/{job}"),
    "GET /jobs/{job_id}/rejects": get("jobs/{job}/rejects"),
    "POST /jobs/{job_id}/cancel": get("jobs/{job}/cancel"),
    "POST /calls/load": lambda w: [],  # test_a_remote_load_tells_nothing
    "POST /calls/export": post("calls/export", {"arguments": {"target": "x.jsonl"}}, {"arguments": {"target": "x.jsonl", "types": ["Salary"]}}),
    "POST /calls/changed_rows": post("calls/changed_rows", {"arguments": {"before": "main", "after": "draft/hidden", "type_name": "Salary"}}),
    "POST /calls/{operation}": lambda w: [],  # the operations above
}
"""By route of a graph, requests that reach for hidden rows."""
TOOLS: Final[dict[str, Callable[[HiddenWorld], list[Arguments]]]] = {
    "schema": lambda w: [{}, {"at": "draft/hidden"}],
    "query": lambda w: [{"query": text} for text in (SALARIES, PEOPLE, COUNT, EARNERS)],
    "explain": lambda w: [{"query": SALARIES}],
    "search": lambda w: [{"type": "Salary", "property": "note", "text": "note"}],
    "entity": lambda w: [{"type": "Salary", "id": "x-5"}],
    "history": lambda w: [{}],
    "diff": lambda w: [{"before": "main", "after": "draft/hidden"}],
    "branches": lambda w: [{}],
    "mutate": lambda w: [{"query": text} for text in (RAISE, DROP, CLASH, GREET)],
    "review": lambda w: [{}],
    "propose": lambda w: [{"title": "t"}],
    "stored_paid": lambda w: [{}],
}
"""By tool of an agent, arguments that reach for hidden rows."""
# fmt: on


class Log(logging.Handler):
    """What anybody logs, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@dataclass(slots=True)
class Walk:
    """The answers to one actor, and what was found in them."""

    served: Served
    actor: str
    world: HiddenWorld
    job: str
    found: dict[str, list[str]] = field(default_factory=dict)
    misfits: list[str] = field(default_factory=list)
    answers: int = 0

    @property
    def folder(self) -> Path:
        policy = self.served.service.settings.policy
        assert policy is not None
        return policy.parent

    def look(self, place: str, text: str | bytes) -> None:
        self.answers += 1
        if seen := leaks(text):
            self.found.setdefault(place, []).extend(seen[:2])

    def operations(self, names: Iterator[str]) -> None:
        with self.client() as client:
            for name in names:
                for arguments in CALLS[name](self.world):
                    sent = {"arguments": to_document(arguments)}
                    answer = client.post(f"/graphs/world/calls/{name}", json=sent)
                    if answer.status_code == 400:
                        self.misfits.append(f"{name} {arguments}: {answer.json()['detail']}")
                    assert answer.status_code != 500, (name, arguments, answer.text)
                    self.see(f"calls/{name}", answer)

    def routes(self, names: Iterator[str]) -> None:
        with self.client() as client:
            for name in names:
                for given in ROUTES[name](self.world):
                    self.request(client, name, dict(given))

    def request(self, client: httpx.Client, name: str, given: Arguments) -> None:
        method = name.partition(" ")[0]
        path = f"/graphs/world/{given.pop('path').replace('{job}', self.job)}"
        if given.pop("events", False):
            headers = {"Accept": "text/event-stream"}
            with client.stream(method, path, headers=headers) as events:
                if events.status_code != 200:
                    self.look(f"{name} (events)", events.read())
                    return
                seen = 0
                for line in events.iter_lines():
                    self.look(f"{name} (events)", line)
                    seen += line.startswith("data")
                    # Those of the world are the first; others would have to be waited for.
                    if seen == EVENTS:
                        break
            return
        is_job = given.pop("job", False)
        answer = client.request(method, path, **given)
        assert answer.status_code != 500, (name, given, answer.text)
        self.see(name, answer)
        if is_job and answer.status_code == 202:
            self.follow(client, answer.json()["job_id"])

    def follow(self, client: httpx.Client, job: str) -> None:
        """See what a job of one's own leaves: its record, here and on disk, and its rejects."""
        for _ in range(200):
            answer = client.get(f"/graphs/world/jobs/{job}")
            if answer.json()["state"] not in ("queued", "running"):
                break
            time.sleep(0.05)
        self.see("own job", answer)
        self.see("own rejects", client.get(f"/graphs/world/jobs/{job}/rejects"))
        for file in self.served.service.settings.state.rglob(f"*{job}*"):
            if file.is_file():
                self.look(f"file {file.suffix}", file.read_bytes())

    def tools(self, names: Iterator[str]) -> None:
        policy = AccessPolicy.read(self.folder / "policy.toml")
        graph = self.world.graph.acting_as(self.actor, policy, "world")
        try:
            workspace = Workspace.open(graph, f"draft/agent-{self.actor}")
        except OmnigraphError as error:
            self.look("agent", f"{error} {error.details}")
            return
        for name in names:
            for arguments in TOOLS[name](self.world):
                try:
                    told: Any = find_tool(workspace, name).call(arguments)
                except OmnigraphError as error:
                    told = f"{error} {error.hint} {error.details} {getattr(error, '__notes__', '')}"
                self.look(f"tool {name}", str(told))

    def client(self) -> httpx.Client:
        client = self.served.client(self.served.tokens().create(self.actor)[0])
        # Each call leaves a branch, and some look at all of them.
        client.timeout = httpx.Timeout(120)
        return client

    def see(self, place: str, answer: httpx.Response) -> None:
        self.look(place, f"{dict(answer.headers)}")
        self.look(place, answer.content)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HiddenWorld]:
    folder = tmp_path_factory.mktemp("leaks")
    make_hidden_world(folder)
    return folder, HiddenWorld(omnigraph.open(folder / "world.omni", actor=KEEPER))


@pytest.fixture(scope="module")
def served(world: tuple[Path, HiddenWorld]) -> Iterator[Served]:
    folder, _ = world
    places = {"world": str(folder / "world.omni")}
    with serving(settings_for(folder, places, policy=folder / "policy.toml")) as running:
        yield running


@pytest.fixture(scope="module")
def job(served: Served) -> str:
    """A job of the keeper that failed: its record has ids and values."""
    with served.client(served.tokens().create(KEEPER)[0]) as client:
        sent = json.dumps({"type": "Salary", "data": {**ROW, "key": f"{MARK}-5"}})
        headers = {"Prefer": "respond-async"}
        answer = client.post("/graphs/world/load", content=sent.encode(), headers=headers)
        name = str(answer.json()["job_id"])
        for _ in range(200):
            told = client.get(f"/graphs/world/jobs/{name}")
            if told.json()["state"] == "failed":
                break
            time.sleep(0.05)
        assert leaks(told.text)
        return name


@pytest.fixture
def walk(served: Served, world: tuple[Path, HiddenWorld], job: str) -> Callable[[str], Walk]:
    return lambda actor: Walk(served, actor, world[1], job)


@pytest.fixture
def log() -> Iterator[Log]:
    handler, root = Log(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def routes_of_graphs() -> set[str]:
    """Every route below a graph, as `METHOD /path`."""
    found = set()
    for route in (route for router in _ROUTERS for route in router.routes):
        path, methods = getattr(route, "path", ""), getattr(route, "methods", None) or ()
        if path.startswith("/graphs/{graph}/"):
            found |= {f"{method} {path[15:]}" for method in methods if method != "HEAD"}
    return found


def test_every_operation_route_tool_and_step_has_a_call(world):
    assert CALLS.keys() == OPERATIONS.keys()
    assert ROUTES.keys() == routes_of_graphs()
    workspace = Workspace.open(world[1].graph, "draft/agent")
    # Other tests store queries of their own.
    listed = {tool.name for tool in list_tools(workspace) if not tool.name.startswith("stored_q")}
    assert TOOLS.keys() == listed
    assert STEPS.keys() == set(StepKind)


@pytest.mark.parametrize("actor", ACTORS)
def test_operations_tell_nothing_of_hidden_rows(walk, log, actor):
    walking = walk(actor)
    walking.operations(iter(CALLS))
    for line in log.lines:
        walking.look("log", line)
    assert walking.found == {}


@pytest.mark.parametrize("actor", ACTORS)
def test_routes_tell_nothing_of_hidden_rows(walk, log, actor):
    walking = walk(actor)
    walking.routes(iter(ROUTES))
    for line in log.lines:
        walking.look("log", line)
    assert walking.found == {}


@pytest.mark.parametrize("actor", ACTORS)
def test_tools_tell_nothing_of_hidden_rows(walk, log, actor):
    walking = walk(actor)
    walking.tools(iter(TOOLS))
    for line in log.lines:
        walking.look("log", line)
    assert walking.found == {}


@pytest.mark.parametrize("actor", ["ada", "wes"])
def test_remote_loads_tell_nothing_of_hidden_rows(walk, served, tmp_path, actor):
    walking = walk(actor)
    token = served.tokens().create(actor)[0]
    with omnigraph.connect(f"{served.url}/graphs/world", token) as remote:
        for mode in ("append", "merge", "overwrite"):
            for more in ({}, {"on_error": "quarantine", "rejects": tmp_path / f"{mode}.jsonl"}):
                branch = walking.world.branch()
                try:
                    told: Any = remote.load({"Salary": [ROW]}, mode=mode, branch=branch, **more)
                except OmnigraphError as error:
                    told = f"{error} {error.hint} {error.details} {vars(error)}"
                walking.look(f"load {mode}", str(told))
        for file in tmp_path.iterdir():
            walking.look("rejects", file.read_bytes())
    assert walking.found == {}
    assert walking.answers >= 6


def test_the_keeper_is_told_everything(walk):
    walking = walk(KEEPER)
    walking.operations(iter(CALLS))
    # Every call is one that makes sense: others are refused by the policy alone.
    assert [each for each in walking.misfits if "has not approved" not in each] == []
    walking.routes(iter(["GET /export", "GET /changes", "POST /merge", "GET /jobs"]))
    walking.tools(iter(["schema", "diff"]))
    places = {"calls/snapshot", "calls/diff", "calls/merge", "calls/schema.apply"}
    places |= {"calls/query", "calls/mutate", "calls/schema.plan", "calls/check", "calls/changes"}
    places |= {"calls/embeddings.status", "GET /export", "GET /changes", "GET /changes (events)"}
    assert walking.found.keys() >= places | {"POST /merge", "GET /jobs", "tool schema", "tool diff"}


def no_sight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Authority, "sight", lambda *_: EVERYTHING)


def no_plans(patch: pytest.MonkeyPatch) -> None:
    def unlimited(self: Transactions, _: WriteRequest, snapshot: Snapshot) -> View:
        return view_at(self._store, self._catalogs, snapshot)

    patch.setattr(Transactions, "_view_at", unlimited)


def no_conflicts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sight, "conflicts", lambda _, conflicts: tuple(conflicts))


@pytest.mark.parametrize(
    ("plant", "operation"),
    [
        (no_sight, "snapshot"),
        (no_sight, "embeddings.status"),
        (no_sight, "merge"),
        (no_sight, "proposals.show"),
        (no_plans, "schema.apply"),
        (no_conflicts, "merge"),
    ],
)
def test_a_planted_leak_is_found(walk, monkeypatch, plant, operation):
    plant(monkeypatch)
    walking = walk("wes")
    walking.operations(iter([operation]))
    assert walking.found


def test_a_world_hides_its_types_and_says_so(walk):
    with walk("ada").client() as client:
        shown = client.get("/graphs/world/snapshot").json()
        exported = client.get("/graphs/world/export")
    assert shown["hidden"] == list(HIDDEN)
    assert exported.headers["Omnigraph-Hidden"] == ", ".join(HIDDEN)
    assert exported.text.count('"Person"') == 3
    assert SCHEMA
