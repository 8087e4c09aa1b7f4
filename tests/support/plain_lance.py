"""A graph as plain Lance reads it: its rows at a commit, and the files that they need.

Nothing here is taken from the code under test but names of folders and columns: a version of the
manifest is read row by row, and the version of a table file by file.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

import lance
from lance.lance import _Session as Session

MANIFEST: Final = "__manifest"
RECOVERIES: Final = "_graph_commit_recoveries.lance"
HINT: Final = "latest_version_hint.json"
_VERSION_MAX: Final = (1 << 64) - 1

Place: TypeAlias = tuple[str | None, int]
"""A ref of the manifest, and a version of it."""

Pin: TypeAlias = tuple[str, str | None, int]
"""The location of a table, a ref of it, and a version of that."""


@dataclass(frozen=True)
class PlainGraph:
    """The files of a graph on this disk, as they are while this object is used."""

    uri: str
    _session: Session = field(default_factory=Session, repr=False)
    _digests: dict[Pin, str] = field(default_factory=dict, repr=False)
    _tables: dict[str, lance.LanceDataset] = field(default_factory=dict, repr=False)

    @cached_property
    def root(self) -> Path:
        return Path(self.uri)

    def open(self, location: str, ref: str | None, version: int | None) -> lance.LanceDataset:
        if location not in self._tables:
            self._tables[location] = lance.dataset(str(self.root / location), session=self._session)
        main = self._tables[location]
        if ref is None:
            return main if version is None else main.checkout_version(version)
        return main.checkout_version((ref, version))

    def head(self, place: Place) -> str:
        """The commit that a version of the manifest shows."""
        rows = self._rows(place, "graph_head")
        (head,) = (json.loads(row["metadata"])["commit"] for row in rows)
        return str(head)

    def pins(self, place: Place) -> dict[str, Pin]:
        """By type, the version of its table that a version of the manifest names."""
        return {
            row["table_key"]: (row["location"], row["table_branch"], row["table_version"])
            for row in self._rows(place, "table")
        }

    def _rows(self, place: Place, object_type: str) -> list[dict[str, Any]]:
        manifest = self.open(MANIFEST, *place)
        rows: list[dict[str, Any]] = manifest.to_table(
            filter=f"object_type = '{object_type}'"
        ).to_pylist()
        return rows

    def ids(self, place: Place) -> set[tuple[str, str]]:
        """The types and ids of all rows."""
        return {
            (key.partition(":")[2], row_id)
            for key, pin in self.pins(place).items()
            for row_id in self.open(*pin).to_table(["id"])["id"].to_pylist()
        }

    def digest(self, place: Place) -> str:
        """A digest of all values of all rows."""
        parts = (f"{key} {self._table_digest(pin)}" for key, pin in self.pins(place).items())
        return sha256("\n".join(sorted(parts)).encode()).hexdigest()

    def _table_digest(self, pin: Pin) -> str:
        if pin not in self._digests:
            rows = self.open(*pin).to_table().to_pylist()
            lines = sorted(repr(sorted(row.items())) for row in rows)
            self._digests[pin] = sha256("\n".join(lines).encode()).hexdigest()
        return self._digests[pin]

    def refs(self, location: str) -> Iterator[str | None]:
        """The refs of a table that have a version."""
        yield None
        folder = self.root / location / "tree"
        for versions in folder.rglob("_versions"):
            if any(versions.glob("*.manifest")):
                yield str(versions.parent.relative_to(folder))

    def versions(self, location: str, ref: str | None) -> list[int]:
        """The versions of a ref, by the names of their files: Lance counts down."""
        folder = self._folder(location, ref) / "_versions"
        stems = (path.stem for path in folder.glob("*.manifest"))
        return sorted(_VERSION_MAX - int(stem) for stem in stems if stem.isdigit())

    def _folder(self, location: str, ref: str | None) -> Path:
        return self.root / location if ref is None else self.root / location / "tree" / ref

    def needed_files(self, pin: Pin) -> Iterator[str]:
        """The paths below the root of what a version consists of.

        Files of an index, and large values, are named by their folder.
        """
        location, ref, version = pin
        table = self.open(*pin)
        own = self._folder(location, ref)
        bases: dict[int | None, Path] = {None: own}
        bases |= {number: Path(base.path) for number, base in table.base_paths().items()}
        yield self._path(own / "_versions" / f"{_VERSION_MAX - version:020}.manifest")
        for fragment in table.get_fragments():
            for file in fragment.metadata.files:
                path = bases[file.base_id] / "data" / file.path
                yield self._path(path)
                yield self._path(path.with_suffix(""))
            deletion = fragment.metadata.deletion_file
            if deletion is not None:
                folder = bases[deletion.base_id]
                yield self._path(folder / deletion.path(fragment.fragment_id))
        for index in table.describe_indices():
            for segment in index.segments:
                yield self._path(bases[segment.base_id] / "_indices" / segment.uuid)
        yield from self._transaction(table, own)
        # Arrays that were made of a version go with it.
        for path in (own / "_arrays").glob(f"{version}-*.arrays"):
            yield self._path(path)

    def _transaction(self, table: lance.LanceDataset, own: Path) -> Iterator[str]:
        try:
            transaction = table.read_transaction(table.version)
        except TypeError:
            # A transaction of a kind that Lance does not show to Python: by its number then.
            for path in (own / "_transactions").glob(f"{table.version - 1}-*.txn"):
                yield self._path(path)
            return
        if transaction is not None:
            name = f"{transaction.read_version}-{transaction.uuid}.txn"
            yield self._path(own / "_transactions" / name)

    def _path(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def files(self) -> dict[str, int]:
        """Every file, and its size."""
        return {
            self._path(path): path.stat().st_size for path in self.root.rglob("*") if path.is_file()
        }
