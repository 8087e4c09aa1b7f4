"""Inputs in object stores: the objects that a URL, a folder or a pattern names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from glob import has_magic
from typing import Final

from omnigraph.errors import InvalidInputError, NotFoundError
from omnigraph.formats.export_folders import CONTENTS, UNFINISHED, is_of_a_run, parse_contents
from omnigraph.limits import REMOTE_PART_BYTES
from omnigraph.storage.remote_files import (
    RemoteFile,
    RemotePath,
    RemoteReader,
    find_file,
    list_files,
    missing_file_error,
)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """An object to load, and the folders that it is in, from what the caller named downwards."""

    file: RemoteFile
    folders: tuple[str, ...] = ()


def find_remote(text: str) -> Iterator[FoundFile]:
    """The objects that a URL names, sorted, as those of a directory or a pattern of files are.

    Raises:
        NotFoundError: there are none.
        StorageError: the store could not be asked.
    """
    path = RemotePath.parse(text)
    if has_magic(path.key):
        yield from _match(path)
    elif (file := find_file(path)) is not None:
        yield FoundFile(file)
    else:
        yield from _walk(path)


def _walk(folder: RemotePath) -> Iterator[FoundFile]:
    depth = len(folder.key) + 1 if folder.key else 0
    named = [folder.name] if folder.key else []
    stored = {file.path.key[depth:]: file for file in list_files(folder)}
    if not stored:
        raise missing_file_error(folder)
    inside: list[FoundFile] = []
    for below, file in _without_unfinished(folder, stored).items():
        *folders, name = below.split("/")
        if _is_read(file, [*folders, name]):
            inside.append(FoundFile(file, (*named, *folders)))
    if not inside:
        message = f"the folder {folder.url} has no files to load"
        raise NotFoundError(message, hint="names that begin with _ or . are not read")
    yield from _in_order(inside)


def _without_unfinished(folder: RemotePath, stored: dict[str, RemoteFile]) -> dict[str, RemoteFile]:
    """The files of a folder, without those of exports that are not complete.

    Raises:
        InvalidInputError: an export into the folder was not completed.
    """
    if CONTENTS in stored:
        with RemoteReader(stored[CONTENTS], block_bytes=REMOTE_PART_BYTES) as reader:
            listed = parse_contents(reader.read()) or frozenset()
        return {
            name: file for name, file in stored.items() if name in listed or not is_of_a_run(name)
        }
    if any(name.startswith(UNFINISHED) for name in stored):
        message = f"the export to {folder.url} is not complete: it has no {CONTENTS}"
        raise InvalidInputError(message, hint="wait for it, or export again")
    return stored


def _match(pattern: RemotePath) -> Iterator[FoundFile]:
    """The objects that match a pattern, and those in folders that do."""
    matches = to_expression(pattern.key).fullmatch
    parts = pattern.key.split("/")
    plain = next(count for count, part in enumerate(parts) if has_magic(part))
    found: list[FoundFile] = []
    for file in list_files(RemotePath(pattern.bucket, "/".join(parts[:plain]))):
        names = file.path.key.split("/")
        ends = range(plain + 1, len(names) + 1)
        end = next((end for end in ends if matches("/".join(names[:end]))), None)
        if end is not None and _is_read(file, names[end:]):
            found.append(FoundFile(file, tuple(names[end - 1 : -1])))
    if not found:
        message = f"no object matches {pattern.url[:200]}"
        raise NotFoundError(message, hint="check the pattern and the folder")
    yield from _in_order(found)


def _is_read(file: RemoteFile, below: list[str]) -> bool:
    """Whether an object is an input: not one that tools leave, such as _SUCCESS, and no folder."""
    is_folder = not file.byte_count and "." not in file.path.name
    return not is_folder and not any(name.startswith((".", "_")) for name in below)


def _in_order(files: list[FoundFile]) -> Iterator[FoundFile]:
    yield from sorted(files, key=lambda found: found.file.path.key.split("/"))


_MAGIC: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[(!?)(\]?[^\]]*)\]")


def to_expression(pattern: str) -> re.Pattern[str]:
    """A pattern of paths as a regular expression; only `**` stands for more than one folder.

    >>> bool(to_expression("raw/**/*.jsonl").fullmatch("raw/2024/05/a.jsonl"))
    True
    >>> bool(to_expression("raw/*.jsonl").fullmatch("raw/2024/a.jsonl"))
    False
    """
    expression, done = "", 0
    for magic in _MAGIC.finditer(pattern):
        is_first = magic.start() == 0 or pattern[magic.start() - 1] == "/"
        expression += re.escape(pattern[done : magic.start()]) + _translate(magic, is_first)
        done = magic.end()
    return re.compile(expression + re.escape(pattern[done:]))


def _translate(magic: re.Match[str], is_first: bool) -> str:  # noqa: FBT001
    # As for files: a name that begins with a dot is matched by a dot alone.
    visible = r"(?!\.)" if is_first else ""
    match magic[0]:
        case "**/":
            return r"(?:(?!\.)[^/]+/)*"
        case "**":
            return rf"{visible}.*"
        case "*":
            return rf"{visible}[^/]*"
        case "?":
            return rf"{visible}[^/]"
        case _:
            negation = "^/" if magic[1] else ""
            members = magic[2].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
            return f"{visible}[{negation}{members}]"
