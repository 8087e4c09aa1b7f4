"""Foreign files: files in the graph's own folders that no release of ours wrote.

Every reader and writer ignores them. A check notes them, so that they are not mistaken for part of
the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from omnigraph.errors import InvalidNameError, OmnigraphError
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.manifest.layout import BRANCHES, RECOVERY, RETENTION, SCHEMAS, TAGS
from omnigraph.manifest.let_go import is_let_go_path
from omnigraph.manifest.schemas import is_schema_path
from omnigraph.manifest.tags import tag_of
from omnigraph.model.names import BranchName
from omnigraph.recovery.scratch import SCRATCH, is_scratch_path
from omnigraph.recovery.sidecars import is_sidecar_path
from omnigraph.storage.objects import Objects


def note_foreign_files(objects: Objects, notebook: Notebook) -> None:
    """Note every foreign file of the graph. Reads names only."""
    for folder, (invariant, _) in _FOLDERS.items():
        try:
            paths = objects.list(folder)
        except OmnigraphError as failure:
            notebook.fail(invariant, folder, folder, failure)
            continue
        for path in filter(is_foreign, paths):
            problem = "it is not a file of the graph, and is ignored"
            step = "nothing, or move it elsewhere"
            notebook.note(Finding(invariant, path, path, problem, step))


def is_foreign(path: str) -> bool:
    """Whether a file in one of the graph's own folders is not of the graph.

    >>> is_foreign("__branches/review=1.json"), is_foreign("__recovery/notes.txt")
    (False, True)
    """
    _, is_own = _FOLDERS[path.partition("/")[0]]
    return not is_own(path)


def _is_branch_path(path: str) -> bool:
    # A '/' of a name is stored as '='; older graphs have a folder for each part.
    name = path.removeprefix(f"{BRANCHES}/").removesuffix(_SUFFIX).replace("=", "/")
    try:
        return path.endswith(_SUFFIX) and not BranchName.parse(name).is_main
    except InvalidNameError:
        return False


_SUFFIX: Final = ".json"
_FOLDERS: Final[Mapping[str, tuple[Invariant, Callable[[str], bool]]]] = {
    BRANCHES: (Invariant.BRANCH, _is_branch_path),
    RECOVERY: (Invariant.SIDECAR, is_sidecar_path),
    RETENTION: (Invariant.PAST, is_let_go_path),
    SCHEMAS: (Invariant.SCHEMA, is_schema_path),
    TAGS: (Invariant.TAG, lambda path: tag_of(path) is not None),
    SCRATCH: (Invariant.SIDECAR, is_scratch_path),
}
"""By folder, the invariant that its files concern, and a test for files of our own."""
