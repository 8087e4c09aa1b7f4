"""Files that the refs of a table share: found below the folder that the table is opened in.

Lance stores absolute paths of the folders that a branch shares files with. They are those of the
place where the branch was made, so after the graph was moved or copied they lead nowhere, or into
the original. A handle whose paths lead elsewhere is therefore replaced by one of the same version
with paths below this root. Nothing is written: the next version that is committed through it
stores these paths (docs/decisions/0038).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance import LanceDataset

from omnigraph.errors import StorageError
from omnigraph.storage.lance_messages import serialized_manifest, with_base_paths

if TYPE_CHECKING:
    # Lance has no public name for it.
    from lance import Session  # type: ignore[attr-defined]


def with_shared_files_in(
    handle: LanceDataset,
    *,
    uri: str,
    location: str,
    folder_uri: str,
    session: Session,
    block_size: int | None,
) -> LanceDataset:
    """A handle of the same version that looks for shared files below `uri`.

    It is the same handle where it does so already, which asks for nothing.

    Args:
        uri: The place of the table now.
        location: The path of the table below the graph's root.
        folder_uri: The folder of the handle's ref.
    """
    shared = [base.path for base in handle.base_paths().values()]
    if all(path == uri or path.startswith(f"{uri}/") for path in shared):
        return handle
    moved = with_base_paths(
        serialized_manifest(handle), lambda path: f"{uri}{path_inside(location, path)}"
    )
    return LanceDataset(
        folder_uri,
        serialized_manifest=moved,
        session=session,
        block_size=block_size,
    )


def path_inside(location: str, place: str) -> str:
    """The part of an absolute place below a table's own folder, with its slash; or nothing.

    The graph may have been in another place when the place was stored. The table's folder has an id
    that no other table of the graph has.

    >>> path_inside("nodes/01K", "/old/home/nodes/01K/tree/01A/01B")
    '/tree/01A/01B'
    """
    start = f"{place}/".rfind(f"/{location}/")
    if start < 0:
        message = f"a version of {location} names {place}, which is not of this table"
        raise StorageError(message, hint="see 'omnigraph check'")
    return place[start + 1 + len(location) :]
