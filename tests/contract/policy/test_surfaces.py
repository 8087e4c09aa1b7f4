"""One table of decisions, asked in Python, by commands and over HTTP: the answers are the same.

Python and the commands ask twice: where the graph is stored, and where it is served.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import omnigraph
from omnigraph.cli.main import main
from omnigraph.errors import NotAllowedError, NotFoundError
from omnigraph.graph import Graph
from omnigraph.policy.actions import Action
from omnigraph.policy.policies import AccessPolicy
from omnigraph.policy.questions import AccessQuestion, Resource
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = "node Person { name: String @key }\nnode Salary { of: String @key }"
RULES: Final = """
@id("staff reads") permit(
  principal in Group::"staff", action == Action::"read", resource in Graph::"world"
);
@id("secrets") forbid(principal, action, resource) when {
  (resource is Branch && resource.name like "secret/*") ||
  (resource is Type && resource.branch like "secret/*")
} unless { principal == Actor::"hal" };
@id("salaries") forbid(principal, action, resource == Type::"Salary")
unless { principal == Actor::"hal" };
@id("drafts") permit(
  principal == Actor::"ada",
  action in [Action::"mutate", Action::"load", Action::"branch_create"],
  resource in Graph::"world"
) when {
  (resource is Branch && resource.name like "draft/*") ||
  (resource is Type && resource.branch like "draft/*")
};
@id("reviews") permit(
  principal == Actor::"rex", action == Action::"merge", resource in Branch::"main"
);
@id("hal") permit(principal == Actor::"hal", action, resource in Graph::"world");
@id("asks") permit(
  principal == Actor::"rex", action == Action::"invoke", resource in Graph::"world"
) when { resource is Query && resource.name == "paid" };
@id("archive") permit(
  principal == Actor::"ada", action == Action::"read", resource in Graph::"archive"
);
"""
POLICY: Final = 'rules = "rules.cedar"\n[groups]\nstaff = ["ada", "rex"]\n'
PEOPLE: Final = "query q() { match { $p: Person } return { $p.name } }"
PAID: Final = "query paid() { match { $s: Salary } return { $s.of } }"
LINE: Final = '{"type": "Person", "data": {"name": "new"}}'
ACTORS: Final = ("ada", "rex", "hal", "eve")
OK, NO, ABSENT = "ok", "no", "absent"


@dataclass(frozen=True, slots=True)
class Deed:
    """What is tried, in each form; the question that it comes down to; and who may do it.

    Files are in the working directory. Everything can be done again and again, once the branch
    `draft/gone` is there, and neither the branch `draft/new` nor the tag `v1` is.

    Attributes:
        is_read: Whether the command opens the graph to read, which needs the right to read main.
    """

    action: Action
    branch: str | None
    python: Callable[[Any], object]
    command: tuple[str, ...]
    request: tuple[str, str, Any]
    world: tuple[str, str, str, str]
    archive: tuple[str, str, str, str]
    type: str | None = None
    is_read: bool = False


def query(text: str, branch: str) -> dict[str, Any]:
    return {
        "python": lambda g: g.query(text, branch=branch),
        "command": ("query", "-e", text, "--branch", branch),
        "request": ("POST", "query", {"query": text, "branch": branch}),
    }


def delete(branch: str) -> dict[str, Any]:
    text = 'query q() { delete Person where name = "nobody" }'
    return {
        "python": lambda g: g.mutate(text, branch=branch),
        "command": ("mutate", "-e", text, "--branch", branch),
        "request": ("POST", "mutate", {"query": text, "branch": branch}),
    }


# fmt: off
#                                         ada     rex     hal    eve
DEEDS: Final = {
    "read main": Deed(
        Action.READ, "main", **query(PEOPLE, "main"),
        world=(                           OK,     OK,     OK,    ABSENT),
        archive=(                         OK,     ABSENT, ABSENT, ABSENT)),
    "read a secret": Deed(
        Action.READ, "secret/1", **query(PEOPLE, "secret/1"),
        world=(                           ABSENT, ABSENT, OK,    ABSENT),
        archive=(                         ABSENT, ABSENT, ABSENT, ABSENT)),
    "read salaries": Deed(
        Action.READ, "main", **query(PAID, "main"), type="Salary",
        world=(                           NO,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "write main": Deed(
        Action.MUTATE, "main", **delete("main"),
        world=(                           NO,     NO,     OK,    NO),
        archive=(                         NO,     NO,     NO,    NO)),
    "write a draft": Deed(
        Action.MUTATE, "draft/1", **delete("draft/1"),
        world=(                           OK,     NO,     OK,    NO),
        archive=(                         NO,     NO,     NO,    NO)),
    "preview a merge": Deed(
        Action.READ, "main",
        lambda g: g.merge("draft/1", dry_run=True),
        ("branch", "merge", "draft/1", "--dry-run"),
        ("POST", "merge", {"source": "draft/1", "into": "main", "dry_run": True}),
        world=(                           OK,     OK,     OK,    ABSENT),
        archive=(                         OK,     ABSENT, ABSENT, ABSENT)),
    "keep the graph": Deed(
        Action.MAINTAIN, None,
        lambda g: g.recoveries.list(),
        ("recovery", "list"),
        ("GET", "recovery", None),
        world=(                           NO,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT),
        is_read=True),
    "export": Deed(
        Action.EXPORT, "main",
        lambda g: g.export("out.jsonl", types=["Person"], replace=True),
        ("export", "out.jsonl", "--type", "Person", "--replace"),
        ("GET", "export?types=Person", None),
        world=(                           NO,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT),
        type="Person"),
    "load a draft": Deed(
        Action.LOAD, "draft/1",
        lambda g: g.load("new.jsonl", mode="merge", branch="draft/1", index=False),
        ("load", "--data", "new.jsonl", "--mode", "merge", "--branch", "draft/1", "--no-index"),
        ("POST", "load?mode=merge&branch=draft/1&index=false", LINE.encode()),
        world=(                           OK,     NO,     OK,    NO),
        archive=(                         NO,     NO,     NO,    NO),
        type="Person"),
    "merge a draft": Deed(
        Action.MERGE, "main",
        lambda g: g.merge("draft/1"),
        ("branch", "merge", "draft/1"),
        ("POST", "merge", {"source": "draft/1", "into": "main"}),
        world=(                           NO,     OK,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "create a draft": Deed(
        Action.BRANCH_CREATE, "draft/new",
        lambda g: g.branches.create("draft/new"),
        ("branch", "create", "draft/new"),
        ("POST", "branches", {"name": "draft/new"}),
        world=(                           OK,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "delete a draft": Deed(
        Action.BRANCH_DELETE, "draft/gone",
        lambda g: g.branches.delete("draft/gone"),
        ("branch", "delete", "draft/gone", "--confirm", "--yes"),
        ("DELETE", "branches/draft/gone", None),
        world=(                           NO,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "change the schema": Deed(
        Action.SCHEMA_APPLY, "main",
        lambda g: g.schema.apply("world.pg"),
        ("schema", "apply", "--schema", "world.pg"),
        ("POST", "schema/apply", {"schema": SCHEMA}),
        world=(                           NO,     NO,     OK,    NO),
        archive=(                         NO,     NO,     NO,    NO)),
    "tag main": Deed(
        Action.TAG, "main",
        lambda g: g.tags.create("v1"),
        ("tag", "create", "v1"),
        ("POST", "tags", {"name": "v1"}),
        world=(                           NO,     NO,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "invoke": Deed(
        Action.INVOKE, "main",
        lambda g: g.queries.run("paid"),
        ("queries", "run", "paid"),
        ("POST", "queries/paid", {}),
        world=(                           NO,     OK,     OK,    ABSENT),
        archive=(                         NO,     ABSENT, ABSENT, ABSENT)),
    "set a setting": Deed(
        Action.ADMIN, None,
        lambda g: g.settings.set("query.timeout", "50s"),
        ("settings", "set", "query.timeout", "50s"),
        # For clients in Python alone.
        ("POST", "calls/settings.set", {"arguments": {"key": "query.timeout", "value": "50s"}}),
        world=(                           NO,     NO,     OK,    NO),
        archive=(                         NO,     NO,     NO,    NO)),
}
# fmt: on


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("surfaces")
    (folder / "rules.cedar").write_text(RULES)
    (folder / "policy.toml").write_text(POLICY)
    places = {}
    for name in ("world", "archive"):
        graph = omnigraph.init(folder / f"{name}.omni", SCHEMA)
        graph.queries.put(PAID)
        for branch in ("draft/1", "secret/1"):
            graph.branches.create(branch)
        places[name] = graph.uri
    (folder / "new.jsonl").write_text(LINE)
    (folder / "world.pg").write_text(SCHEMA)
    with serving(settings_for(folder, places, policy=folder / "policy.toml")) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(served: Served) -> dict[str, str]:
    return {actor: served.tokens().create(actor)[0] for actor in ACTORS}


@pytest.fixture(scope="module")
def clients(served: Served, tokens: dict[str, str]) -> Iterator[dict[str, httpx.Client]]:
    made = {actor: served.client(token) for actor, token in tokens.items()}
    yield made
    for client in made.values():
        client.close()


@dataclass(frozen=True, slots=True)
class Case:
    """Where an actor tries what."""

    served: Served
    graph: str
    actor: str
    token: str

    @property
    def policy(self) -> Path:
        found = self.served.service.settings.policy
        assert found is not None
        return found

    @property
    def place(self) -> Path:
        return self.policy.parent / f"{self.graph}.omni"

    @property
    def address(self) -> str:
        return f"{self.served.url}/graphs/{self.graph}"


def in_python(deed: Deed, case: Case) -> str:
    def open_graph() -> Graph:
        reads, policy = deed.is_read, case.policy
        return omnigraph.open(case.place, actor=case.actor, policy=policy, read_only=reads)

    return answer_of(lambda: deed.python(open_graph()))


def from_afar(deed: Deed, case: Case) -> str:
    def run() -> None:
        with omnigraph.connect(case.address, case.token) as remote:
            deed.python(remote)

    return answer_of(run)


def answer_of(run: Callable[[], object]) -> str:
    try:
        run()
    except NotAllowedError:
        return NO
    except NotFoundError:
        return ABSENT
    return OK


def by_command(deed: Deed, case: Case, store: str, patch: Any, capsys: Any) -> str:
    patch.setenv("OMNIGRAPH_POLICY", str(case.policy))
    patch.setenv("OMNIGRAPH_ACTOR", case.actor)
    patch.setenv("OMNIGRAPH_TOKEN", case.token)
    patch.setenv("OMNIGRAPH_STORE", store)
    code = main(deed.command)
    told = str(capsys.readouterr().err)
    if code == 0:
        return OK
    [found] = re.findall(r"error\[(\w+)\]", told)
    absent = {"branch_not_found": ABSENT, "graph_not_found": ABSENT}
    return {"forbidden": NO, **absent}.get(found, told)


def over_http(deed: Deed, graph: str, client: httpx.Client) -> str:
    method, path, body = deed.request
    sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = client.request(method, f"/graphs/{graph}/{path}", **sent)
    return {200: OK, 201: OK, 403: NO, 404: ABSENT}.get(answer.status_code, answer.text)


def prepare(case: Case) -> None:
    """Make the graph again what deeds need it to be."""
    graph = case.served.service.own_graph(case.graph)
    names, tags = graph.branches.list(), [tag.name for tag in graph.tags.list()]
    if "draft/new" in names:
        graph.branches.delete("draft/new")
    if "draft/gone" not in names:
        graph.branches.create("draft/gone")
    if "v1" in tags:
        graph.tags.delete("v1")


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("graph", ["world", "archive"])
def test_the_answers_are_the_same_everywhere(
    graph, actor, served, tokens, clients, monkeypatch, capsys
):
    assert {deed.action for deed in DEEDS.values()} == set(Action)
    case = Case(served, graph, actor, tokens[actor])
    monkeypatch.chdir(case.policy.parent)
    found, expected = {}, {}
    for name, deed in DEEDS.items():
        answer = getattr(deed, graph)[ACTORS.index(actor)]
        # Over HTTP, a graph of which an actor may read nothing does not exist.
        reads = DEEDS["read main"]
        hidden = getattr(reads, graph)[ACTORS.index(actor)] == ABSENT
        afar = ABSENT if hidden else answer
        expected[name] = (answer, answer, afar, afar, afar)
        ways = (
            partial(in_python, deed, case),
            partial(by_command, deed, case, str(case.place), monkeypatch, capsys),
            partial(over_http, deed, graph, clients[actor]),
            partial(from_afar, deed, case),
            partial(by_command, deed, case, case.address, monkeypatch, capsys),
        )
        answers = []
        for way in ways:
            prepare(case)
            answers.append(way())
        found[name] = tuple(answers)
    assert found == expected


@pytest.mark.parametrize(
    ("deed", "actor", "rule"),
    [
        ("read a secret", "ada", "secrets"),
        ("read salaries", "rex", "salaries"),
        ("write a draft", "ada", "drafts"),
        ("merge a draft", "rex", "reviews"),
        ("write main", "hal", "hal"),
        ("write main", "ada", None),
    ],
)
def test_the_rule_behind_an_answer_is_named(deed, actor, rule, served):
    asked = DEEDS[deed]
    policy = AccessPolicy.read(served.service.settings.policy)
    resource = Resource("world", asked.branch, asked.type)
    answer = policy.answer(AccessQuestion(actor, asked.action, resource))
    named = [label.partition(" (line")[0] for label in answer.rules]
    assert answer.is_allowed is (asked.world[ACTORS.index(actor)] == OK)
    assert (rule in named) if rule else (answer.why == "no rule permits it")


def test_graphs_whose_places_end_alike_are_told_apart_by_their_served_names(tmp_path):
    places = {}
    for name in ("hr", "public"):
        (tmp_path / name).mkdir()
        places[name] = omnigraph.init(tmp_path / name / "world.omni", SCHEMA).uri
    (tmp_path / "rules.cedar").write_text(
        'permit(principal == Actor::"ada", action, resource in Graph::"public");'
        'permit(principal == Actor::"hal", action, resource in Graph::"hr");'
        'permit(principal, action, resource in Graph::"world");'
    )
    settings = settings_for(tmp_path, places, policy=tmp_path / "rules.cedar")
    with serving(settings) as running, running.client() as ada:
        assert ada.get("/graphs").json() == {"graphs": ["public"]}
        with running.client(running.tokens().create("hal")[0]) as hal:
            assert hal.get("/graphs").json() == {"graphs": ["hr"]}
            for client, own, other in ((ada, "public", "hr"), (hal, "hr", "public")):
                asked = {"query": PEOPLE}
                assert client.post(f"/graphs/{own}/query", json=asked).status_code == 200
                assert client.post(f"/graphs/{other}/query", json=asked).status_code == 404
    # Where it is opened by its place, that names it.
    opened = omnigraph.open(places["hr"], actor="eve", policy=tmp_path / "rules.cedar")
    assert len(opened.query(PEOPLE)) == 0
