"""Postings of an index of texts: which texts have a word, and how often, from Lance's own files.

Lance computes relevance by statistics that count rows which are gone. These files have what exact
statistics take: the row id and the length of every text, and the texts of every word
(docs/substrate.md, Files of an index of texts).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
_BLOCKS_AT_ONCE: Final = 1 << 10
"""Blocks whose bits are in memory at once, each as a number."""

_MORE: Final = 0x80
"""Set in a group of seven bits that another one follows."""

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
    _readers: list[LanceFileReader] = field(default_factory=list, repr=False)

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

    def _read(self, numbers: Sequence[int]) -> list[Posting]:
        path = f"{self.path}_invert.lance"
        with translate_errors("reading words of", path):
            if not self._readers:
                # To open the file takes as long as to read from it.
                self._readers.append(LanceFileReader(path, columns=["_posting", "_length"]))
            rows = self._readers[0].take_rows(list(numbers)).to_table()
        return decode_postings(rows["_posting"].to_pylist(), rows["_length"].to_pylist())


def read_word_files(table: Table, segment: Segment) -> list[WordFile]:
    """The parts of a segment: their words, and the lengths of their texts.

    Raises:
        StorageError: a file could not be read, or has another form than ours.
    """
    place = table.index_folder(segment.uuid, segment.base_id)
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


def decode_postings(postings: Sequence[Sequence[bytes]], lengths: Sequence[int]) -> list[Posting]:
    """The texts of each word, and how often each has it.

    Full blocks have 128 texts: a score, the first text, and the distances between texts and the
    counts, each in as many bits as the largest takes. The last block has the rest, byte by byte.

    Args:
        postings: The blocks of each word.
        lengths: How many texts have it.
    """
    # All blocks at once: to unpack a hundred of them takes hardly longer than to unpack one.
    full = [length // _BLOCK for length in lengths]
    blocks = [block for own, count in zip(postings, full, strict=True) for block in own[:count]]
    firsts = np.zeros(len(blocks), np.int64)
    distances, counts = _Unpacker(len(blocks)), _Unpacker(len(blocks))
    for place, block in enumerate(blocks):
        firsts[place] = int.from_bytes(block[4:8], "little")
        counts.add(place, block, distances.add(place, block, 8))
    texts = (firsts[:, None] + np.cumsum(distances.unpack(), axis=1)).ravel()
    often = counts.unpack().ravel()
    decoded, start = [], 0
    for own, length, count in zip(postings, lengths, full, strict=True):
        posting = Posting(texts[start : start + _BLOCK * count], often[start:][: _BLOCK * count])
        start += _BLOCK * count
        decoded.append(
            _extend(posting, own[count], length % _BLOCK) if length % _BLOCK else posting
        )
    return decoded


def _extend(posting: Posting, block: bytes, count: int) -> Posting:
    """A posting and the texts of its last block."""
    numbers = _read_varints(block[4:], 2 * count)
    return Posting(
        np.concatenate([posting.texts, np.cumsum(numbers[:count])]),
        np.concatenate([posting.counts, numbers[count:]]),
    )


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
            for start in range(0, len(parts), _BLOCKS_AT_ONCE):
                self._unpack(width, parts[start : start + _BLOCKS_AT_ONCE])
        return self._unpacked

    def _unpack(self, width: int, parts: Sequence[tuple[int, bytes]]) -> None:
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


def _read_varints(data: bytes, count: int) -> np.ndarray:
    """Numbers in groups of seven bits, the lowest first.

    >>> _read_varints(bytes([1, 0x80, 1]), 2).tolist()
    [1, 128]
    """
    groups = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(groups < _MORE)[:count]
    starts = np.concatenate([[0], ends[:-1] + 1])
    places = np.arange(ends[-1] + 1) - np.repeat(starts, ends - starts + 1)
    bits = (groups[: ends[-1] + 1] & (_MORE - 1)).astype(np.int64) << (7 * places)
    return np.asarray(np.add.reduceat(bits, starts))
