"""Inputs in object stores: the objects that a URL, a folder or a pattern names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from glob import has_magic
from typing import Final, TypeAlias

from omnigraph.errors import InvalidInputError, NotFoundError
from omnigraph.formats.export_folders import (
    CONTENTS,
    UNFINISHED,
    is_of_a_run,
    parse_contents,
    run_of,
)
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


Choose: TypeAlias = Callable[[str], "tuple[str, ...] | None"]
"""Returns the folders that the object of a key is found in; None if it is not looked for."""


def find_remote(text: str) -> Iterator[FoundFile]:
    """The objects that a URL names, sorted, as those of a directory or a pattern of files are.

    Of an export, wherever it is found, only files of its list are among them, and all of these that
    are looked for.
    """
    path = RemotePath.parse(text)
    if has_magic(path.key):
        yield from _match(path)
    elif (file := find_file(path)) is not None:
        yield _of_complete_export(file)
    else:
        yield from _walk(path)


def _walk(folder: RemotePath) -> Iterator[FoundFile]:
    depth = len(folder.key) + 1 if folder.key else 0
    named = [folder.name] if folder.key else []

    def choose(key: str) -> tuple[str, ...] | None:
        *folders, name = key[depth:].split("/")
        return (*named, *folders) if _are_read([*folders, name]) else None

    search = _Search(folder, choose)
    search.run()
    if not search.has_objects:
        raise missing_file_error(folder)
    if not search.found:
        message = f"the folder {folder.url} has no files to load"
        raise NotFoundError(message, hint="names that begin with _ or . are not read")
    yield from _in_order(search.found.values())


def _match(pattern: RemotePath) -> Iterator[FoundFile]:
    """The objects that match a pattern, and those in folders that do."""
    matches = to_expression(pattern.key).fullmatch
    parts = pattern.key.split("/")
    plain = next(count for count, part in enumerate(parts) if has_magic(part))

    def choose(key: str) -> tuple[str, ...] | None:
        names = key.split("/")
        ends = range(plain + 1, len(names) + 1)
        end = next((end for end in ends if matches("/".join(names[:end]))), None)
        is_chosen = end is not None and _are_read(names[end:])
        return tuple(names[end - 1 : -1]) if end is not None and is_chosen else None

    search = _Search(RemotePath(pattern.bucket, "/".join(parts[:plain])), choose)
    search.run()
    if not search.found:
        message = f"no object matches {pattern.url[:200]}"
        raise NotFoundError(message, hint="check the pattern and the folder")
    yield from _in_order(search.found.values())


def _of_complete_export(file: RemoteFile) -> FoundFile:
    """The object that a URL names exactly."""
    key = file.path.key
    search = _Search(file.path, lambda each: () if each == key else None)
    search.found[key] = FoundFile(file)
    search.keep_complete()
    if not search.found:
        message = f"{file.path.url} is not part of the complete export there"
        raise InvalidInputError(message, hint=f"load what {CONTENTS} lists beside it: the folder")
    return FoundFile(file)


@dataclass(frozen=True, slots=True)
class _Search:
    """What a load looks for below a folder.

    Attributes:
        found: Objects to load, by key.
        exports: By folder, the list of an export's files; None if the export is not complete.
    """

    folder: RemotePath
    choose: Choose
    found: dict[str, FoundFile] = field(default_factory=dict)
    exports: dict[str, RemoteFile | None] = field(default_factory=dict)

    @property
    def has_objects(self) -> bool:
        """Whether there is anything, to load or not."""
        return bool(self.found or self.exports or next(list_files(self.folder), None))

    def run(self) -> None:
        """Find what there is, without the files of exports that are not complete."""
        for file in list_files(self.folder):
            key = file.path.key
            folder, _, name = key.rpartition("/")
            if name == CONTENTS:
                self.exports[folder] = file
            elif name.startswith(UNFINISHED):
                self.exports.setdefault(folder, None)
            elif not _is_folder(file) and (folders := self.choose(key)) is not None:
                self.found[key] = FoundFile(file, folders)
        self.keep_complete()

    def keep_complete(self) -> None:
        """Leave out files that exports which are not complete have left; raises as `run`."""
        # What a person has put into the folder of an export has no run in its name.
        by_export: dict[str, list[str]] = {}
        for key in filter(is_of_a_run, self.found):
            if (export := self._export_of(key)) is not None:
                by_export.setdefault(export, []).append(key)
        for export, contents in self.exports.items():
            place = RemotePath(self.folder.bucket, export)
            keys = by_export.get(export, [])
            if contents is None:
                if keys or self.choose(_join(export, "any")) is not None:
                    raise _unfinished_error(place)
                continue
            listed = {_join(export, name) for name in _read_contents(contents)}
            for key in sorted(listed.difference(self.found)):
                if self.choose(key) is not None:
                    raise _missing_part_error(RemotePath(place.bucket, key), contents)
            for key in set(keys) - listed:
                del self.found[key]

    def _export_of(self, key: str) -> str | None:
        """The folder of the export that a file of a run is in."""
        folders = _folders_above(key)
        inner = next((folder for folder in folders if folder in self.exports), None)
        if inner is not None:
            return inner
        # It may be above what was listed. The parts of a type are in a folder of their own.
        for folder in folders[:2]:
            if not self._is_listed(folder) and self._look_for_export(folder, key):
                return folder
        return None

    def _is_listed(self, folder: str) -> bool:
        return not self.folder.key or f"{folder}/".startswith(f"{self.folder.key}/")

    def _look_for_export(self, folder: str, key: str) -> bool:
        bucket = self.folder.bucket
        contents = find_file(RemotePath(bucket, _join(folder, CONTENTS)))
        record = f"{UNFINISHED}.{run_of(key)}.json"
        if contents is None and find_file(RemotePath(bucket, _join(folder, record))) is None:
            return False
        self.exports[folder] = contents
        return True


def _read_contents(contents: RemoteFile) -> frozenset[str]:
    with RemoteReader(contents, block_bytes=REMOTE_PART_BYTES) as reader:
        files = parse_contents(reader.read())
    if files is None:
        message = f"{contents.path.url} is not a list of exported files"
        raise InvalidInputError(message, hint="export again, or name the files to load")
    return files - {CONTENTS}


def _unfinished_error(folder: RemotePath) -> InvalidInputError:
    message = f"the export to {folder.url} is not complete: it has no {CONTENTS}"
    return InvalidInputError(message, hint="wait for it, or export again")


def _missing_part_error(path: RemotePath, contents: RemoteFile) -> NotFoundError:
    message = f"object {path.url} does not exist, but {contents.path.url} lists it"
    hint = "export again; if an export was replaced meanwhile, load again"
    return NotFoundError(message, hint=hint, path=path.url)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _folders_above(key: str) -> list[str]:
    """The folders of a key, the innermost first, and the bucket itself last.

    >>> _folders_above("out/Person.csv/part-0.csv")
    ['out/Person.csv', 'out', '']
    """
    parts = key.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, -1, -1)]


def _is_folder(file: RemoteFile) -> bool:
    """Whether an object stands for a folder, as some tools leave them."""
    return not file.byte_count and "." not in file.path.name


def _are_read(names: list[str]) -> bool:
    """Whether an object with these names is an input, and not what tools leave, as _SUCCESS is."""
    return not any(name.startswith((".", "_")) for name in names)


def _in_order(files: Iterable[FoundFile]) -> Iterator[FoundFile]:
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
