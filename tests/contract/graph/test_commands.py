"""Every command prints the same for a graph in its storage and for one that a server has."""

import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.cli.main import main, whole_command
from tests.support.served import Served, serving, settings_for

SCHEMA: Final = """
node Person { name: String @key  age: I64?  note: String? @index }
node Badge { number: I32 @unique }
edge Knows: Person -> Person
"""
NEXT: Final = SCHEMA.replace("age: I64?", "age: I64?  seen: Date?")
ROWS: Final = (
    '{"type": "Person", "data": {"name": "Ada", "age": 1152921504606846976}}\n'
    '{"type": "Person", "data": {"name": "Bob", "note": "likes tea"}}\n'
    '{"type": "Badge", "data": {"number": 1}}\n'
    '{"edge": "Knows", "from": "Ada", "to": "Bob"}\n'
)
WRONG: Final = '{"type": "Person", "data": {"name": "Ada"}}\n{"type": "Badge", "data": {}}\n'
STORED: Final = (
    'query older($age: I64) @description("who is older") '
    "{ match { $p: Person  $p.age > $age } return { $p.name } }\n"
    "query add($name: String) { insert Person { name: $name } }\n"
)
ALL: Final = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
RAISE: Final = 'query q() { update Person set { age: 5 } where name = "Bob" }'
LOWER: Final = 'query q() { update Person set { age: 6 } where name = "Bob" }'

COMMANDS: Final = (
    "load --data rows.jsonl --mode append -m first",
    "load --data rows.jsonl --mode append",
    "load --data wrong.jsonl --mode merge --json",
    "load --data wrong.jsonl --mode merge --on-error quarantine --rejects rejects-WAY.jsonl",
    "load --data 'nothing-*.jsonl' --mode append",
    f"query -e '{ALL}'",
    f"query -e '{ALL}' --json",
    f"query -e '{ALL}' --format csv",
    f"query -e '{ALL}' --format jsonl",
    f"query -e '{ALL}' --format arrow",
    f"query -e '{ALL}' --explain",
    f"query -e '{ALL}' -v --engine local",
    f"query -e '{ALL}' --max-rows 1",
    "query -e 'query q() { match { $p: Persn } return { $p.name } }'",
    "query older --query stored.gq --param age=3 --json",
    f"query -e '{ALL}' --branch nothing --json",
    "lint stored.gq",
    "lint wrong.gq --json",
    "mutate -e 'query q() { insert Badge { number: 1 } }'",
    "mutate -e 'query q($n: I32) { insert Badge { number: $n } }' --param n=7 -m seven --json",
    "mutate -e 'query q() { delete Person where name = \"nobody\" }'",
    "tag create v1 -m one",
    "tag list",
    "tag list --json",
    "tag show v1",
    "tag create v2 --json",
    "tag delete v2",
    "tag delete v2 --confirm",
    "branch create draft",
    "branch create draft --json",
    f"mutate -e '{RAISE}' --branch draft -m five",
    "branch list --json",
    "branch list",
    "diff main draft",
    "entity Person ada",
    "entity Person ada --at draft --json",
    "diff main draft --rows --json",
    "diff v1 draft --rows --format csv",
    "branch merge draft --dry-run --json",
    f"mutate -e '{LOWER}'",
    "branch merge draft --dry-run",
    "branch merge draft",
    "branch merge draft --resolve theirs",
    "branch create gone",
    "branch delete gone",
    "branch delete gone --confirm --json",
    "queries put --query stored.gq",
    "queries list",
    "queries list --json",
    "queries show older",
    "queries run older --param age=3 --json",
    "queries run add --param name=Eve",
    "queries delete older",
    "queries delete older --confirm",
    "branch create idea",
    "mutate -e 'query q() { insert Person { name: \"Ida\" } }' --branch idea",
    "proposal create idea --title idea --description why",
    "proposal list",
    "proposal show 1",
    "proposal show 1 --json",
    "proposal comment 1 hm --type Person --id Ida",
    "proposal approve 1",
    "proposal merge 1",
    "proposal create draft --title none",
    "branch create other",
    "mutate -e 'query q() { insert Person { name: \"Oda\" } }' --branch other",
    "proposal create other --title other --json",
    "proposal close 2",
    "schema show",
    "schema show --format mermaid",
    "schema plan --schema next.pg",
    "schema apply --schema next.pg -m seen",
    "schema apply --schema next.pg --json",
    "schema diff v1 main",
    "schema diff world.pg main --json",
    "schema history",
    "schema purge --json",
    "schema purge --confirm --json",
    "commit list",
    "commit list --branch draft --json",
    "commit show v1 --json",
    "commit changes main --rows --json",
    "log",
    "log --graph",
    "log --json -n 3",
    "changes baseline --json",
    "changes poll --json",
    "snapshot",
    "snapshot --commit v1 --json",
    "export out-WAY.jsonl",
    "export out-WAY.jsonl",
    "export - --type Person",
    "export out-WAY --format parquet --json",
    "index --json",
    "index list",
    "embed --status",
    "embed --json",
    *(
        f"algorithm {name} --json"
        for name in ("degrees", "pagerank", "components", "label-propagation", "triangles")
    ),
    "algorithm shortest-paths --from Person/Ada",
    "optimize --json",
    "cleanup",
    "cleanup --keep-commits 3 --confirm",
    "check",
    "check --history --json",
    "repair",
    "repair --confirm --json",
    "recovery list",
    "recovery list --json",
    "recovery show nothing",
    "settings list",
    "settings get maintenance.keep_days",
    "settings set maintenance.keep_days 30",
    "settings get maintenance.keep_days --json",
    "settings unset maintenance.keep_days",
    "settings get nothing",
    "stream list",
    "stream forget nothing",
)
"""In this order, on a graph that is new."""

STORED_ONLY: Final = {
    "init": "a server creates no graphs",
    "serve": "it is what serves a graph",
}
"""Commands that take a graph, and no address of one, each with the reason."""
OWN_TESTS: Final = {"mcp": "tests/contract/agents/test_mcp.py"}
"""Commands that are compared elsewhere."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a command reaches its graph."""

    name: str
    store: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command said, without what differs from run to run."""

    code: int
    out: str
    err: str


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something."""
    below = getattr(command, "commands", None)
    if below is None or command.invoke_without_command:
        yield " ".join(path), command
    for name, each in (below or {}).items():
        yield from leaves(each, (*path, name))


def commands_with_a_graph() -> set[str]:
    return {
        name
        for name, command in leaves(whole_command())
        if any(parameter.name == "store" for parameter in command.params)
    }


def test_every_command_is_compared_or_listed_with_its_reason() -> None:
    named = commands_with_a_graph()
    compared = {
        name
        for name in named
        for command in COMMANDS
        if command.split()[: len(name.split())] == name.split()
    }

    assert compared | STORED_ONLY.keys() | OWN_TESTS.keys() == named
    assert compared & STORED_ONLY.keys() == set()


def test_every_command_with_a_graph_takes_a_profile() -> None:
    for name, command in leaves(whole_command()):
        options = {parameter.name for parameter in command.params}
        assert ("profile" in options) is ("store" in options or name == "login"), name


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("commands")
    for name in ("here", "afar"):
        (folder / name).mkdir()
        omnigraph.init(folder / name / "world.omni", SCHEMA)
    with serving(settings_for(folder, {"world": str(folder / "afar" / "world.omni")})) as running:
        yield running


@pytest.fixture
def run(
    served: Served, tmp_path: Path, capsysbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Way], Ran]:
    for name, text in (
        ("rows.jsonl", ROWS),
        ("wrong.jsonl", WRONG),
        ("stored.gq", STORED),
        ("wrong.gq", "query q() { match { $p: Persn } return { $p.name } }"),
        ("world.pg", SCHEMA),
        ("next.pg", NEXT),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_TOKEN", served.token)
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ada")
    monkeypatch.setenv("OMNIGRAPH_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("OMNIGRAPH_STORE", raising=False)

    def run_command(line: str, way: Way) -> Ran:
        monkeypatch.setenv("OMNIGRAPH_STORE", way.store)
        capsysbinary.readouterr()
        code = main(shlex.split(line.replace("WAY", way.name)))
        out, err = capsysbinary.readouterr()
        return Ran(code, plain(out.decode(errors="replace"), way), plain(err.decode(), way))

    return run_command


def plain(text: str, way: Way) -> str:
    """A text without the ids, times, places and durations that no two runs share."""
    for place in (way.store, Path(way.store).as_posix()):
        text = text.replace(place, "GRAPH")
    # A server says how it calls a graph, and not where it stores it.
    text = text.replace("the graph GRAPH ", "the graph world ").replace(f"-{way.name}", "-WAY")
    text = re.sub(r"\b[\d.]+ (KB|MB|bytes)", "SIZE", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?", "TIME", text)
    text = re.sub(r'("\w*(?:seconds|age|size|bytes)\w*": )[\d.e+-]+', r"\1N", text)
    text = re.sub(r" +\d+[smh] +complete", " AGE complete", text)
    numbers, names = count(), dict[str, str]()
    return re.sub(
        r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f-]{36}\b|\b[0-9a-f]{32,64}\b",
        lambda found: names.setdefault(found.group(), f"ID{next(numbers)}"),
        text,
    )


def without_address(ran: Ran) -> Ran:
    return Ran(ran.code, ran.out, ran.err.replace("sent to GRAPH\n", ""))


def ways(served: Served) -> tuple[Way, Way]:
    """The graph of this module in its storage, and another one like it at its address."""
    folder = Path(served.service.settings.graphs["world"].uri).parents[1]
    here = Way("here", str(folder / "here" / "world.omni"))
    return here, Way("afar", f"{served.url}/graphs/world")


def test_every_command_prints_the_same_by_both_ways(
    served: Served, run: Callable[[str, Way], Ran]
) -> None:
    here, there = ways(served)
    differences = []
    for line in COMMANDS:
        expected, found = run(line, here), run(line, there)
        if without_address(found) != expected:
            differences.append((line, expected, found))
    for line, expected, found in differences:
        sys.stderr.write(f"\n{line}\n  here  {expected}\n  there {found}\n")
    assert [line for line, *_ in differences] == []


def test_only_a_write_says_where_it_went(served: Served, run: Callable[[str, Way], Ran]) -> None:
    here, there = ways(served)
    write = "tag create where-it-went"

    assert run("tag list", there).err == ""
    assert "sent to" not in run(write, here).err
    assert run(write, there).err.endswith("sent to GRAPH\n")
    assert "sent to" not in run(write, there).err
    assert "sent to" not in run("tag delete where-it-went", there).err


@pytest.mark.parametrize("name", STORED_ONLY)
def test_commands_for_stored_graphs_refuse_addresses(
    name: str, served: Served, run: Callable[[str, Way], Ran]
) -> None:
    more = " --schema world.pg" if name == "init" else ""
    refused = run(f"{name}{more}", ways(served)[1])

    assert refused.code == 2
    assert "is served: this command runs where the graph is stored" in refused.err


def test_another_actor_than_that_of_the_token_is_refused(
    served: Served, run: Callable[[str, Way], Ran]
) -> None:
    refused = run("tag create other --actor bob", ways(served)[1])

    assert refused.code == 1
    assert "acts as ada, and not as 'bob'" in refused.err
    master = run("load --data rows.jsonl --mode merge --master local[1]", ways(served)[1])
    assert (master.code, "--master has no effect" in master.err) == (2, True)


class Terminal(io.StringIO):
    """A person who types these lines."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "line",
    [
        "tag delete v-doomed --confirm",
        "branch delete doomed --confirm",
        "queries delete doomed --confirm",
        "cleanup --confirm",
        "repair --confirm",
        "schema purge --confirm",
        "schema apply --schema next.pg --purge --confirm",
        "stream forget doomed",
        "load --data rows.jsonl --mode overwrite",
    ],
)
def test_a_person_is_asked_before_something_served_is_destroyed(
    line: str, served: Served, run: Callable[[str, Way], Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = ways(served)
    graph = omnigraph.open(served.service.settings.graphs["world"].uri)
    if "doomed" not in graph.branches.list():
        graph.branches.create("doomed")
        graph.tags.create("v-doomed")
        graph.queries.put("query doomed() { match { $p: Person } return { $p.name } }")
    before = graph.commits.every(), graph.branches.list(), graph.tags.list()

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    asked = run(line, there)
    assert asked.code == 1
    assert "GRAPH? [y/N]\nnothing was changed\n" in asked.err
    assert (graph.commits.every(), graph.branches.list(), graph.tags.list()) == before
    if line.startswith("tag"):
        monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
        assert run(line, there).code == 0
        graph.tags.create("v-doomed")
    if line.startswith("branch"):
        monkeypatch.setattr(sys, "stdin", Terminal(""))
        assert run(f"{line} --yes", there).code == 0
        graph.branches.create("doomed")
    if line.startswith("cleanup"):
        monkeypatch.setattr(sys, "stdin", Terminal(""))
        assert "[y/N]" not in run(line, here).err


def test_a_profile_names_a_graph_and_a_branch(
    served: Served,
    run: Callable[[str, Way], Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, there = ways(served)
    config = tmp_path / "config.toml"
    monkeypatch.delenv("OMNIGRAPH_TOKEN")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{served.token}\n"))
    assert run(f"login {there.store} --profile work", here).code == 0
    assert config.stat().st_mode & 0o777 == 0o600
    text = config.read_text()
    config.write_text(f'{text}\n[profiles.here]\nstore = "{here.store}"\nbranch = "of-a-profile"\n')
    omnigraph.open(here.store).branches.create("of-a-profile")

    add = "mutate -e 'query q() { insert Badge { number: 77 } }' --profile here --json"
    assert '"branch": "of-a-profile"' in run(add, there).out
    assert "of-a-profile" not in run("branch list --profile work", here).out
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "here")
    # A graph of the environment comes before a profile of the environment.
    assert "of-a-profile" not in run("branch list", there).out
    both = run(f"branch list --profile work --store {here.store}", here)
    assert (both.code, "give one of them" in both.err) == (2, True)
    absent = run("branch list --profile wrok", here)
    assert (absent.code, "work" in absent.err) == (5, True)
