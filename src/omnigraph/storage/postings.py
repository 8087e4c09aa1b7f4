"""Postings of an index of texts: which texts have a word, and how often, from Lance's own files.

Lance computes relevance by statistics that count rows which are gone. These files have what exact
statistics take: the row id and the length of every text, and the texts of every word
(docs/substrate.md, Files of an index of texts).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from lance.file import LanceFileReader

from omnigraph.errors import StorageError
from omnigraph.storage.indexes import Segment
from omnigraph.storage.tables import Table
from omnigraph.storage.translate import translate_errors
from omnigraph.storage.word_tries import WordTrie

_BLOCK: Final = 128
_LANES: Final = 4
_FORMAT: Final = {
    b"format_version": b"2",
    b"token_set_format": b"fst",
    b"posting_tail_codec": b"varint_delta_v1",
    b"posting_block_size": b"128",
}
"""What the files say of their own form."""


class Posting(NamedTuple):
    """The texts that have a word, by their numbers, ascending, and how often each has it."""

    texts: np.ndarray
    counts: np.ndarray


_NO_POSTING: Final = Posting(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class WordFile:
    """One part of a segment of an index of texts. It never changes.

    Attributes:
        row_ids: The row id of each text, by its number. Texts without words are left out.
        lengths: How many words each has.
    """

    path: str
    words: WordTrie
    row_ids: np.ndarray
    lengths: np.ndarray
    _kept: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def all_words(self) -> tuple[str, ...]:
        """Every word."""
        if "words" not in self._kept:
            self._kept["words"] = tuple(word for word, _ in self.words.words())
        return self._kept["words"]

    @property
    def byte_count(self) -> int:
        """The memory that it takes."""
        return self.words.byte_count + self.row_ids.nbytes + self.lengths.nbytes

    def read_postings(self, words: Sequence[str]) -> list[Posting]:
        """The texts that have each word. Reads the postings of these words, and no others.

        Raises:
            StorageError: the file could not be read.
        """
        numbers = [self.words.number(word) for word in words]
        wanted = sorted({number for number in numbers if number is not None})
        found = dict(zip(wanted, self._read(wanted), strict=True)) if wanted else {}
        return [_NO_POSTING if number is None else found[number] for number in numbers]

    def _read(self, numbers: Sequence[int]) -> Iterator[Posting]:
        path = f"{self.path}_invert.lance"
        with translate_errors("reading words of", path):
            reader = LanceFileReader(path, columns=["_posting", "_length"])
            rows = reader.take_rows(list(numbers)).to_table()
        for blocks, length in zip(rows["_posting"], rows["_length"], strict=True):
            yield decode_posting(blocks.as_py(), length.as_py())


def read_word_files(table: Table, segment: Segment) -> list[WordFile]:
    """The parts of a segment: their words, and the lengths of their texts.

    Raises:
        StorageError: a file could not be read, or has another form than ours.
    """
    folder = f"{table.address.root.uri}/{table.address.folder}"
    if segment.base_id is not None:
        folder = table.handle.base_paths()[segment.base_id].path
    place = f"{folder}/_indices/{segment.uuid}"
    with translate_errors("reading an index of", table.address.uri):
        facts = _metadata(LanceFileReader(f"{place}/metadata.lance"))
        if any(facts.get(name) != value for name, value in _FORMAT.items()):
            message = f"the index {segment.name} of {table.address.uri} has another form"
            raise StorageError(message, hint="upgrade omnigraph")
        numbers = json.loads(facts[b"partitions"])
        return [_read_part(f"{place}/part_{number}") for number in numbers]


def _read_part(path: str) -> WordFile:
    words = LanceFileReader(f"{path}_tokens.lance").read_all().to_table()
    texts = LanceFileReader(f"{path}_docs.lance").read_all().to_table()
    return WordFile(
        path,
        WordTrie(words["_token_fst_bytes"][0].as_py()),
        texts["_rowid"].to_numpy(),
        texts["_num_tokens"].to_numpy().astype(np.int64),
    )


def _metadata(reader: Any) -> dict[bytes, bytes]:
    return dict(reader.metadata().schema.metadata or {})


def decode_posting(blocks: Sequence[bytes], length: int) -> Posting:
    """The texts of a word, and how often each has it.

    Full blocks have 128 texts: a score, the first text, and the distances between texts and the
    counts, each in as many bits as the largest takes. The last block has the rest, byte by byte.
    """
    full = length // _BLOCK
    firsts = np.zeros(full, np.int64)
    distances = _Unpacker(full)
    counts = _Unpacker(full)
    for place, block in enumerate(blocks[:full]):
        firsts[place] = int.from_bytes(block[4:8], "little")
        at = distances.add(place, block, 8)
        counts.add(place, block, at)
    texts = [(firsts[:, None] + np.cumsum(distances.unpack(), axis=1)).ravel()]
    often = [counts.unpack().ravel()]
    if rest := length % _BLOCK:
        numbers = _read_varints(blocks[full][4:], 2 * rest)
        texts.append(np.cumsum(numbers[:rest]))
        often.append(numbers[rest:])
    return Posting(np.concatenate(texts), np.concatenate(often))


class _Unpacker:
    """Blocks of 128 numbers, each block in as many bits as its largest number takes."""

    def __init__(self, count: int) -> None:
        self._unpacked = np.zeros((count, _BLOCK), np.int64)
        self._by_width: dict[int, list[tuple[int, bytes]]] = {}

    def add(self, place: int, block: bytes, at: int) -> int:
        """Take the numbers that start here; where they end."""
        width = block[at]
        end = at + 1 + width * _BLOCK // 8
        if width:
            self._by_width.setdefault(width, []).append((place, block[at + 1 : end]))
        return end

    def unpack(self) -> np.ndarray:
        """All numbers, those of a block in a row."""
        for width, parts in self._by_width.items():
            data = np.frombuffer(b"".join(part for _, part in parts), np.uint8)
            # Four lanes of 32-bit words side by side; each lane has every fourth number.
            lanes = data.reshape(len(parts), width, _LANES, 4).transpose(0, 2, 1, 3)
            bits = np.unpackbits(
                np.ascontiguousarray(lanes).reshape(len(parts), _LANES, width * 4),
                axis=2,
                bitorder="little",
            ).reshape(len(parts), _LANES, _BLOCK // _LANES, width)
            numbers = bits @ (np.int64(1) << np.arange(width, dtype=np.int64))
            places = [place for place, _ in parts]
            self._unpacked[places] = numbers.transpose(0, 2, 1).reshape(len(parts), _BLOCK)
        return self._unpacked


def _read_varints(data: bytes, count: int) -> np.ndarray:
    """Numbers in groups of seven bits, the lowest first.

    >>> _read_varints(bytes([1, 0x80, 1]), 2).tolist()
    [1, 128]
    """
    numbers, at = np.zeros(count, np.int64), 0
    for place in range(count):
        shift = 0
        while data[at] & 0x80:
            numbers[place] |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        numbers[place] |= data[at] << shift
        at += 1
    return numbers
