"""Each rule is broken in turn, and all together, in a large file of good rows, on both engines.

Such a load is refused with the rule's count and the offenders' lines; sifted, it loads exactly the
rest. The rows are written by hand: neither engine is asked what the other one should say.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.integrity.violations import IntegrityError, IntegrityReport, Rule
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.load import planning
from tests.contract.load.loading import Loaded, edge, lines_of, loaded, node

SCHEMA: Final = """
node Person {
  name: String @key
  nick: String
  age: I32?
  mail: String? @unique
  mood: enum(glad, sad)?
  spot: Vector(3)?
  @range(age, 0..150)
  @check(mail, "@")
  @length(nick, 1..9)
}
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(0..1)
"""
BEFORE: Final = (
    node("Person", name="ada", nick="a", mail="a@x"),
    node("Person", name="bob", nick="b"),
    node("Person", name="cy", nick="c", mail="c@x"),
    node("City", name="Oslo"),
    {**edge("LivesIn", "ada", "Oslo"), "id": "l-ada"},
    {**edge("Knows", "ada", "bob"), "id": "k-ada"},
)
SMALL: Final = 3_000
LARGE: Final = 1_000_000


def person(name: str, **data: Any) -> dict[str, Any]:
    return node("Person", **{"name": name, "nick": "n", **data})


def lives(id_: str, source: str, target: str) -> dict[str, Any]:
    return {**edge("LivesIn", source, target), "id": id_}


def knows(id_: str, source: str, target: str) -> dict[str, Any]:
    return {**edge("Knows", source, target), "id": id_}


Lines = Sequence["dict[str, Any] | str"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """Lines that break a rule.

    Attributes:
        groups: Lines that break it together; each group is one violation.
        helpers: Lines that are as good as any other, for those to speak of.
    """

    rule: Rule
    groups: Sequence[Lines]
    helpers: Sequence[dict[str, Any]] = ()

    @property
    def lines(self) -> list[Any]:
        return [line for group in self.groups for line in group]


def each_alone(lines: Iterable[Any]) -> list[Lines]:
    return [(line,) for line in lines]


# More than are shown of one rule; the others break theirs three times.
MANY: Final = OFFENDERS_SHOWN_MAX + 5

CASES: Final[Mapping[str, Wrong]] = {
    "required": Wrong(
        Rule.REQUIRED, each_alone(node("Person", name=f"r{n}", age=n) for n in range(3))
    ),
    "type": Wrong(Rule.TYPE, each_alone(person(f"t{n}", age="old") for n in range(3))),
    "enum": Wrong(Rule.ENUM, each_alone(person(f"e{n}", mood="angry") for n in range(3))),
    "range": Wrong(Rule.RANGE, each_alone(person(f"a{n}", age=151 + n) for n in range(MANY))),
    "check": Wrong(Rule.CHECK, each_alone(person(f"c{n}", mail=f"nowhere{n}") for n in range(3))),
    "length": Wrong(
        Rule.LENGTH, each_alone(person(f"l{n}", nick="" if n else "x" * 10) for n in range(3))
    ),
    "key twice": Wrong(Rule.KEY, [(person(f"d{n}"), person(f"d{n}", age=1)) for n in range(3)]),
    "key exists": Wrong(Rule.EXISTS, each_alone([person("ada"), person("bob", age=3)])),
    "unique among themselves": Wrong(
        Rule.UNIQUE,
        [(person(f"u{n}", mail=f"u{n}@y"), person(f"v{n}", mail=f"u{n}@y")) for n in range(3)],
    ),
    "unique among others": Wrong(Rule.UNIQUE, each_alone([person("w", mail="c@x")])),
    "no such node": Wrong(
        Rule.ENDPOINT, each_alone(knows(f"n{n}", "ada", f"nobody{n}") for n in range(MANY))
    ),
    "too many edges": Wrong(
        Rule.CARDINALITY,
        [(lives(f"x{n}", f"m{n}", "Oslo"), lives(f"y{n}", f"m{n}", "Oslo")) for n in range(3)],
        helpers=tuple(person(f"m{n}") for n in range(3)),
    ),
    "one edge too many": Wrong(Rule.CARDINALITY, each_alone([lives("z", "ada", "Oslo")])),
    "unknown property": Wrong(Rule.TYPE, each_alone(person(f"p{n}", size=n) for n in range(3))),
    "unknown type": Wrong(Rule.TYPE, each_alone(node("Persn", name=f"q{n}") for n in range(3))),
    "no JSON": Wrong(Rule.TYPE, each_alone(['{"type": "Person", "data": {"name": "x"'] * 3)),
    "short vector": Wrong(Rule.TYPE, each_alone(person(f"s{n}", spot=[1, 2]) for n in range(3))),
    "no number in a vector": Wrong(
        Rule.TYPE,
        each_alone(
            json.dumps(person(f"f{n}", spot=[1, 2, 3])).replace("[1, 2, 3]", f"[1, {bad}, 3]")
            for n, bad in enumerate(("NaN", "Infinity", "null"))
        ),
    ),
}  # fmt: skip

_numbers = count()


@dataclass(frozen=True, slots=True)
class Good:
    """So many good rows, as one text and as what a graph then holds."""

    text: str
    people: int
    edges: int
    offsets: Sequence[int] = field(repr=False)

    @classmethod
    def of(cls, size: int) -> Good:
        """Of ten rows, six are people, two live somewhere and two know somebody."""
        lines = []
        for n in range(size // 10):
            mine = [f"g{n * 6 + k}" for k in range(6)]
            lines += [
                *(json.dumps(person(each, mail=f"{each}@x", age=n % 99)) for each in mine),
                json.dumps(lives(f"l{n}a", mine[0], "Oslo")),
                json.dumps(lives(f"l{n}b", mine[1], "Oslo")),
                json.dumps(knows(f"k{n}a", mine[2], mine[3])),
                json.dumps(knows(f"k{n}b", mine[4], "ada")),
            ]
        offsets, at = [], 0
        for line in lines:
            offsets.append(at)
            at += len(line) + 1
        text = "".join(f"{line}\n" for line in lines)
        return cls(text, size // 10 * 6, size // 10 * 2, offsets)

    def mixed(self, path: Path, wrong: Sequence[Wrong]) -> dict[int, Any]:
        """Write a file with bad lines here and there; each of them by its number."""
        bad = [line for each in wrong for line in (*each.helpers, *each.lines)]
        # Not one behind the other: lines that break a rule together are far apart.
        bad = [*bad[::2], *bad[1::2]]
        step = len(self.offsets) // (len(bad) + 1)
        found: dict[int, Any] = {}
        with path.open("w") as file:
            start = 0
            for place, line in enumerate(bad, 1):
                end = self.offsets[place * step]
                file.write(self.text[start:end])
                file.write(f"{line if isinstance(line, str) else json.dumps(line)}\n")
                found[place * step + place] = line
                start = end
            file.write(self.text[start:])
        return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = loaded(tmp_path_factory.mktemp("rules"), SCHEMA)
    found.put(*BEFORE, engine="local")
    return found.graph.uri


@pytest.fixture(scope="module")
def goods() -> dict[int, Good]:
    return {}


@dataclass(frozen=True, slots=True)
class Bench:
    """Where one file is loaded by one engine."""

    base: str
    folder: Path
    good: Good
    engine: str

    def place(self) -> Loaded:
        """A fresh graph."""
        uri = shutil.copytree(self.base, self.folder / f"{next(_numbers)}.omni")
        return Loaded(omnigraph.open(uri), self.folder)


@pytest.fixture
def bench(request: pytest.FixtureRequest, base: str, goods: dict[int, Good], tmp_path: Path):
    engine, size = request.param
    if engine == "spark":
        request.getfixturevalue("spark")
    if size not in goods:
        goods.clear()
        goods[size] = Good.of(size)
    with pytest.MonkeyPatch.context() as patch:
        if size == SMALL:
            # Even a small file is read by several tasks.
            patch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 60_000)
        yield Bench(base, tmp_path, goods[size], engine)
    shutil.rmtree(tmp_path)


SOAK: Final = pytest.mark.soak
LONG: Final = (SOAK, pytest.mark.timeout(3_600))


def sizes(*, gates: tuple[str, ...] = ()) -> Any:
    """On both engines, few rows and a million; the engines named here are asked by the gate."""
    few = [
        pytest.param((name, SMALL), id=name, marks=() if name in gates else SOAK)
        for name in ("local", "spark")
    ]
    many = [
        pytest.param((name, LARGE), id=f"{name}, a million", marks=LONG)
        for name in ("local", "spark")
    ]
    return pytest.mark.parametrize("bench", [*few, *many], indirect=True)


def numbers_of(group: Lines, placed: Mapping[int, Any]) -> set[int]:
    """The lines that a group stands on."""
    return {number for number, line in placed.items() if line in group}


def assert_told(report: IntegrityReport, wrong: Sequence[Wrong], placed: Mapping[int, Any]) -> None:
    """A report must count every rule, and point to lines that break it, and to no others."""
    wanted: dict[Rule, int] = {}
    for each in wrong:
        wanted[each.rule] = wanted.get(each.rule, 0) + len(each.groups)
    assert report.counts_by_rule() == wanted
    assert all(Path(each.origin).name.startswith("mixed.jsonl:") for each in report.violations)
    for rule in wanted:
        told = [
            int(each.origin.rpartition(":")[2]) for each in report.violations if each.rule is rule
        ]
        groups = [
            numbers_of(group, placed)
            for each in wrong
            if each.rule is rule
            for group in (each.groups if len(each.groups[0]) > 1 else each_alone(each.lines))
        ]
        # Lines that are alike are one group here, and each of them an offender.
        at = {number: place for place, group in enumerate(groups) for number in group}
        assert set(told) <= set(at), rule
        breaches = [breach for breach in report.counts if breach.rule is rule]
        most = sum(min(report.counts[breach], OFFENDERS_SHOWN_MAX) for breach in breaches)
        assert len(told) == most, rule


def refuse(bench: Bench, wrong: Sequence[Wrong]) -> None:
    path = bench.folder / "mixed.jsonl"
    placed = bench.good.mixed(path, wrong)
    found = bench.place()
    before, pins = found.head(), found.graph.snapshot().pins

    with pytest.raises(IntegrityError) as refusal:
        found.load(str(path), engine=bench.engine)

    assert_told(refusal.value.report, wrong, placed)
    reader = omnigraph.open(found.graph.uri, read_only=True)
    assert str(reader.snapshot().head.commit_id) == before
    assert reader.snapshot().pins == pins
    assert found.ids("Person") == {"ada", "bob", "cy"}


def sift(bench: Bench, wrong: Sequence[Wrong]) -> None:
    path, rejects = bench.folder / "mixed.jsonl", bench.folder / "rejects.jsonl"
    placed = bench.good.mixed(path, wrong)
    helpers = [line for each in wrong for line in each.helpers]
    bad = {number: line for number, line in placed.items() if line not in helpers}
    found = bench.place()

    result = found.load(str(path), engine=bench.engine, on_error="quarantine", rejects=rejects)

    told = lines_of(rejects)
    assert [int(each["origin"].rpartition(":")[2]) for each in told] == sorted(bad)
    by_rule = {
        number: {str(each.rule) for each in wrong if line in each.lines}
        for number, line in bad.items()
    }
    for each in told:
        number = int(each["origin"].rpartition(":")[2])
        assert {why["rule"] for why in each["violations"]} == by_rule[number], each
        assert name_in(each["row"]) == name_in(bad[number])
    assert result.rejected == len(bad)
    good = bench.good
    people = {"ada", "bob", "cy", *(f"g{n}" for n in range(good.people))}
    assert found.ids("Person") == people | {each["data"]["name"] for each in helpers}
    assert found.ids("City") == {"Oslo"}
    for type_name, mark in (("LivesIn", "l"), ("Knows", "k")):
        ids = {f"{mark}{n}{side}" for n in range(good.edges // 2) for side in "ab"}
        assert found.ids(type_name) == {f"{mark}-ada", *ids}


def name_in(row: Any) -> Any:
    """By what a line of the file, or of the rejects, can be known again."""
    if isinstance(row, str):
        try:
            row = json.loads(row)
        except ValueError:
            return row
    return row.get("id") or row["data"]["name"]


@sizes()
@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_told_and_nothing_is_loaded(bench: Bench, case: str) -> None:
    refuse(bench, [CASES[case]])


@sizes()
@pytest.mark.parametrize("case", CASES)
def test_rows_that_break_a_rule_are_left_out_and_no_others(bench: Bench, case: str) -> None:
    sift(bench, [CASES[case]])


@sizes(gates=("local", "spark"))
def test_all_broken_rules_are_told_at_once(bench: Bench) -> None:
    refuse(bench, list(CASES.values()))


@sizes(gates=("local",))
def test_rows_that_break_any_rule_are_left_out_and_no_others(bench: Bench) -> None:
    sift(bench, list(CASES.values()))


@sizes(gates=("local",))
def test_an_overwrite_that_leaves_edges_behind_is_refused(bench: Bench) -> None:
    path = bench.folder / "people.jsonl"
    people = (f"{json.dumps(person(f'g{n}'))}\n" for n in range(bench.good.people))
    path.write_text("".join(people))
    found = bench.place()
    before = found.head()

    for more in ({}, {"on_error": "quarantine", "rejects": bench.folder / "rejects.jsonl"}):
        with pytest.raises(IntegrityError) as refusal:
            found.load(str(path), "overwrite", engine=bench.engine, **more)

        # Both ends of Ada's edge to Bob, and the one end of hers to Oslo.
        assert refusal.value.report.counts_by_rule() == {Rule.STRANDED: 3}
        assert {each.id for each in refusal.value.violations} == {"k-ada", "l-ada"}
        assert found.head() == before
        assert found.ids("Person") == {"ada", "bob", "cy"}


def test_these_tests_notice_an_offender_that_gets_through(base: str, tmp_path: Path) -> None:
    bench = Bench(base, tmp_path, Good.of(100), "local")
    silent = Wrong(Rule.ENUM, each_alone([person("e0", mood="glad")]))
    with pytest.raises(AssertionError):
        sift(bench, [CASES["range"], silent])
    with pytest.raises(AssertionError):
        refuse(bench, [CASES["range"], silent])
