"""What Lance holds, in the process that commits, for each row that a commit adds."""

import dataclasses
import pickle
import subprocess
import sys

from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata

from tests.contract.lance.builders import append, commit, create, fragments_of, mixed, staged

ROWS = 4_000_000
ID_BYTES = 8

COMMIT = """
import pickle, sys
from pathlib import Path
import lance
from lance.dataset import Transaction

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("VmHWM:"))

base, operation = lance.dataset(sys.argv[1]), pickle.load(sys.stdin.buffer)
before = peak()
lance.LanceDataset.commit(base, Transaction(read_version=1, operation=operation), max_retries=0)
print(peak() - before)
"""


def of_many_rows(base: LanceDataset) -> list[FragmentMetadata]:
    """A file that is said to have many rows: for a commit, Lance takes our word for it."""
    [file] = staged(base, "b")
    return [dataclasses.replace(file, physical_rows=ROWS)]


def bytes_held_per_row(base: LanceDataset, operation: LanceOperation.BaseOperation) -> float:
    """How far the memory of a process rises while it commits, by each row that is added."""
    command = [sys.executable, "-c", COMMIT, base.uri]
    given = pickle.dumps(operation)
    told = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True)
    base.checkout_latest()
    assert base.count_rows() == 1 + ROWS
    return int(told.stdout) / ROWS


def test_an_append_holds_less_than_an_id_for_each_row(uri):
    base = create(uri, "a")

    assert bytes_held_per_row(base, LanceOperation.Append(of_many_rows(base))) < ID_BYTES


def test_an_update_holds_an_id_for_each_new_row(uri):
    base = create(uri, "a")
    adding = dataclasses.replace(mixed(base, value=0), new_fragments=of_many_rows(base))

    assert bytes_held_per_row(base, adding) > ID_BYTES


def test_an_append_adds_rows_as_an_update_does(uri):
    added = []
    for kind in ("append", "update"):
        base = create(f"{uri}-{kind}", "a")
        new = ("b", "c")
        adding = append(base, *new) if kind == "append" else mixed(base, insert=new, value=0)
        [_, fragment] = fragments_of(commit(base, adding))
        added.append(fragment.to_json() | {"files": ["of another name"]})

    assert added[0] == added[1]
    assert added[0]["row_id_meta"]
