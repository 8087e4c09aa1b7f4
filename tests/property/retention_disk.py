"""What has to be on the disk of a graph under retention, by its model and by plain Lance."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from omnigraph.maintenance.cleanup.results import CleanupResult
from tests.property.retention_model import Dropped, KnownCommit, Model
from tests.support.plain_lance import HINT, MANIFEST, RECOVERIES, Pin, PlainGraph


def find_leftovers(uri: Path, model: Model, schemas: Mapping[str, str]) -> set[str]:
    """The files that no commit needs which can be read.

    Args:
        schemas: By commit, the digest of its schema.
    """
    plain = PlainGraph(str(uri))
    needed: set[str] = {"_schema.pg", "__settings.json"}
    for pin in _needed_versions(uri, model, plain):
        needed.update(plain.needed_files(pin))
    refs = set(plain.refs(MANIFEST))
    needed |= {f"__schemas/{schemas[each]}.json" for each in model.readable()}
    return {
        path
        for path in plain.files()
        if path not in needed
        and str(Path(path).parent) not in needed
        and not path.startswith(("__branches/", "__tags/", "__retention/"))
        and not path.endswith((HINT, "_removed_versions"))
        and not (path.startswith("__retired/") and _ref_of_retired(path) in refs)
    }


def _needed_versions(uri: Path, model: Model, plain: PlainGraph) -> Iterator[Pin]:
    readable = model.readable()
    places = {model.commits[each].place for each in readable}
    living = {None, *map(_ref_of_branch, (uri / "__branches").glob("*.json"))}
    for ref in plain.refs(MANIFEST):
        versions = plain.versions(MANIFEST, ref)
        if ref in living:
            # A branch starts with a version that shows the commit it was made at.
            places |= {(ref, each) for each in versions if plain.head((ref, each)) in readable}
        elif {(ref, each) for each in versions} & places:
            # It says where the deleted branch ended.
            places.add((ref, max(versions)))
    pins = {
        pin
        for place in places
        if place[0] in living or place in {model.commits[each].place for each in readable}
        for pin in plain.pins(place).values()
    }
    yield from ((MANIFEST, *place) for place in sorted(places, key=str))
    yield from pins
    for location in {location for location, _, _ in pins}:
        # Lance opens the refs of a table through main.
        yield location, None, max(plain.versions(location, None))
    if (uri / RECOVERIES).exists():
        yield RECOVERIES, None, max(plain.versions(RECOVERIES, None))


def is_of_refs(path: str, planned: CleanupResult) -> bool:
    """Whether a file belongs to a ref that is removed whole."""
    folders = (f"{orphan.location}/tree/{orphan.ref}/" for orphan in planned.refs)
    return path.startswith(tuple(folders))


def purged_in(uri: Path, dropped: Dropped, commits: Iterable[KnownCommit]) -> set[str]:
    """Those of the commits that have rows with something of what was dropped."""
    plain = PlainGraph(str(uri))
    names = {name for _, name in dropped.properties}
    types = {f"node:{name}" for name in dropped.types}
    return {
        commit.commit_id
        for commit in commits
        for key, pin in plain.pins(commit.place).items()
        if (key in types or names & set(plain.open(*pin).schema.names))
        and plain.open(*pin).count_rows()
    }


def _ref_of_branch(path: Path) -> str:
    return str(json.loads(path.read_text())["ref"])


def _ref_of_retired(path: str) -> str:
    return path.rpartition("@")[2].removesuffix(".json")
