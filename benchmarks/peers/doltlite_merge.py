"""Doltlite, a SQLite with branches: merges and compares them; runs in the peers' environment."""

import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

# It puts itself in the place of SQLite, so it comes first.
import doltlite  # noqa: F401  # isort: skip
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
from fingerprints import fingerprint

VERSION = f"doltlite {metadata.version('doltlite')}"

CREATE = """\
create table person(name text primary key, age integer, score real, city text) without rowid"""
UPSERT = """\
insert into person values (?, ?, ?, ?) on conflict(name)
do update set age = excluded.age, score = excluded.score, city = excluded.city"""
COMPARE = """\
select diff_type, from_name, from_age, from_score, from_city, to_name, to_age, to_score, to_city
from dolt_diff_person('main', 'draft')"""


def load(place: Path) -> Callable[[str, str], Any]:
    """Nothing yet; every merge is into a copy of the same database."""
    base, copy = place / "dolt-base.db", place / "dolt.db"
    state: dict[str, Any] = {}

    def run(task: str, text: str) -> pa.Table | None:
        match task:
            case "fill":
                _fill(_connected(base), Path(text))
            case "copy":
                shutil.copyfile(base, copy)
                state["open"] = _connected(copy)
            case "merge":
                state["open"].execute("select dolt_merge('draft')").fetchall()
            case "compare":
                state["rows"] = state["open"].execute(COMPARE).fetchall()
            case "merged":
                found = state["open"].execute("select name, age, score, city from person")
                return pa.table({"rows": [fingerprint(found)]})
            case "compared":
                return pa.table({"rows": [fingerprint(state["rows"])]})
        return None

    return run


def _connected(place: Path) -> sqlite3.Connection:
    return sqlite3.connect(place, isolation_level=None)


def _fill(database: sqlite3.Connection, files: Path) -> None:
    def ask(text: str, *values: object) -> None:
        database.execute(text, values).fetchall()

    def write(name: str, gone: int | None) -> None:
        rows = pq.read_table(files / name / "Person.parquet")
        ask("begin")
        values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
        database.executemany(UPSERT, values)
        if gone is not None:
            ask("delete from person where age = ?", gone)
        ask("commit")
        ask("select dolt_commit('-A', '-m', ?)", name)

    ask(CREATE)
    write("base", None)
    ask("select dolt_branch('draft')")
    ask("select dolt_checkout('draft')")
    leaving = {"draft": 201, "main": 202}
    write("draft", leaving["draft"])
    ask("select dolt_checkout('main')")
    write("main", leaving["main"])
    database.close()
