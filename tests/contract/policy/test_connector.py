"""What a policy lets each actor do through sources and sinks, called as Spark calls them."""

import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any, Final

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.connector.datasource import OmnigraphSource
from omnigraph.errors import IntegrityError, NotAllowedError
from tests.contract.policy.worlds import ABSENT, NO, OK, outcome

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

from pyspark.sql.types import StringType, StructField, StructType

SALARIES: Final = "query q() { match { $p earns $s } return { $p.name, $s.amount } }"
PEOPLE: Final = "query q() { match { $p: Person } return { $p.name } }"
NAMES: Final = StructType([StructField("name", StringType())])
KEYS: Final = StructType([StructField("key", StringType())])
Operation = Callable[[Path, str | None], object]


def source(place: Path, actor: str | None, options: dict[str, str]) -> OmnigraphSource:
    given = {"graph": str(place / "world.omni"), "policy": str(place / "policy.toml"), **options}
    return OmnigraphSource(given if actor is None else {**given, "actor": actor})


def read(**options: str) -> Operation:
    """A read by `spark.read`."""

    def operation(place: Path, actor: str | None) -> None:
        asked = pickle.loads(pickle.dumps(source(place, actor, options)))
        reader = asked.reader(asked.schema())
        rules = place / "rules.cedar"
        # Executors do not have them.
        text = rules.read_text()
        rules.unlink()
        for part in reader.partitions():
            list(reader.read(part))
        rules.write_text(text)

    return operation


def follow(**options: str) -> Operation:
    """A read of all changes by `spark.readStream`."""

    def operation(place: Path, actor: str | None) -> None:
        asked = source(place, actor, {"changes": "true", **options})
        reader: Any = asked.streamReader(asked.schema())
        start = reader.initialOffset()
        for part in reader.partitions(
            start, reader.latestOffset(start, reader.getDefaultReadLimit())
        ):
            list(reader.read(part))

    return operation


def write(columns: StructType = NAMES, /, **options: str) -> Operation:
    """A write of a row by `df.write`."""

    def operation(place: Path, actor: str | None) -> None:
        writer: Any = source(place, actor, options).writer(columns, overwrite=False)
        batch = pa.record_batch({columns.names[0]: ["x"]})
        writer.commit([writer.write(iter([batch]))])

    return operation


def stream(columns: StructType = NAMES, /, **options: str) -> Operation:
    """A batch of `df.writeStream`."""

    def operation(place: Path, actor: str | None) -> None:
        checkpoint = place / "checkpoint"
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": "mine"}))
        (checkpoint / "offsets" / "0").write_text("first")
        given = {"checkpointLocation": str(checkpoint), **options}
        writer: Any = source(place, actor, given).streamWriter(columns, overwrite=False)
        batch = pa.record_batch({columns.names[0]: ["x"]})
        writer.commit([writer.write(iter([batch]))], 0)

    return operation


PERSON, SALARY = {"path": "Person"}, {"path": "Salary"}
DRAFT, SECRET, NOWHERE = ({"branch": name} for name in ("draft/1", "secret/1", "secret/2"))
BAD: Final = "bad rows"
"""Allowed; the row lacks its amount."""
# fmt: off
EXPECTED: Final[dict[str, tuple[Operation, str, str, str]]] = {
    #                                                           ada      hal     nobody
    "read":                   (read(**PERSON),                  OK,      OK,     ABSENT),
    "read a secret type":     (read(**SALARY),                  NO,      OK,     ABSENT),
    "read a hidden branch":   (read(**PERSON, **SECRET),        ABSENT,  OK,     ABSENT),
    "read no branch":         (read(**PERSON, **NOWHERE),       ABSENT,  ABSENT, ABSENT),
    "read a hidden tag":      (read(**PERSON, commit="hidden"), ABSENT,  OK,     ABSENT),
    "query":                  (read(query=PEOPLE),              OK,      OK,     ABSENT),
    "query a secret type":    (read(query=SALARIES),            NO,      OK,     ABSENT),
    "follow":                 (follow(**PERSON),                OK,      OK,     ABSENT),
    "follow all types":       (follow(),                        NO,      OK,     ABSENT),
    "follow a secret type":   (follow(**SALARY),                NO,      OK,     ABSENT),
    "follow a hidden branch": (follow(**PERSON, **SECRET),      ABSENT,  OK,     ABSENT),
    "write main":             (write(**PERSON),                 NO,      OK,     NO),
    "write a draft":          (write(**PERSON, **DRAFT),        OK,      OK,     NO),
    "write a secret type":    (write(KEYS, **SALARY, **DRAFT),  NO,      BAD,    NO),
    "write a hidden branch":  (write(**PERSON, **SECRET),       NO,      OK,     NO),
    "write no branch":        (write(**PERSON, **NOWHERE),      NO,      ABSENT, NO),
    "stream to main":         (stream(**PERSON),                NO,      OK,     NO),
    "stream to a draft":      (stream(**PERSON, **DRAFT),       OK,      OK,     NO),
    "stream a secret type":   (stream(KEYS, **SALARY, **DRAFT), NO,      BAD,    NO),
    "stream to no branch":    (stream(**PERSON, **NOWHERE),     NO,      ABSENT, NO),
}
# fmt: on
ACTORS: Final = ("ada", "hal", None)


def end_of(operation: Callable[[], object]) -> str:
    try:
        return outcome(operation)
    except IntegrityError:
        return BAD


@pytest.mark.parametrize("actor", ACTORS)
def test_each_actor_may_do_what_the_table_says(place: Path, actor: str | None) -> None:
    before = omnigraph.open(place / "world.omni").commits.every()
    expected = {name: row[1 + ACTORS.index(actor)] for name, row in EXPECTED.items()}
    answers = {}
    for name, (operation, *_) in EXPECTED.items():
        # What is allowed changes the graph; what is refused must not, and shares one.
        where = place
        if expected[name] in (OK, BAD):
            where = place.with_name(name)
            copytree(place, where)
        answers[name] = end_of(partial(operation, where, actor))
    assert answers == expected
    assert omnigraph.open(place / "world.omni").commits.every() == before


def test_the_policy_of_the_environment_holds_for_sources_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_POLICY", str(place / "policy.toml"))
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ada")
    graph = {"graph": str(place / "world.omni")}
    assert OmnigraphSource({**graph, "path": "Person"}).schema().names == ["id", "name"]
    with pytest.raises(NotAllowedError, match="ada cannot read type Salary on branch main"):
        OmnigraphSource({**graph, "path": "Salary"}).schema()
    # The one that is named, and not that of the environment.
    (place / "all.cedar").write_text("permit(principal, action, resource);")
    named = {**graph, "path": "Salary", "policy": str(place / "all.cedar")}
    assert "amount" in OmnigraphSource(named).schema().names
