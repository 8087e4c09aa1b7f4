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
from omnigraph.storage.file_readers import FileReaders
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
    _postings: FileReaders = field(repr=False)
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

    def _read(self, numbers: Sequence[int]) -> list[Posting]:
        with (
            translate_errors("reading words of", self.path),
            self._postings.borrow() as reader,
        ):
            rows = reader.take_rows(list(numbers)).to_table()
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
        FileReaders(f"{path}_invert.lance", ["_posting", "_length"]),
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
    texts, often = _unpack_blocks(blocks)
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


def _unpack_blocks(blocks: Sequence[bytes]) -> Posting:
    """The texts of full blocks, one after the other."""
    parts = [_NO_POSTING]
    for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
        some = blocks[first : first + _BLOCKS_AT_ONCE]
        # With two bytes between them, each starts at a word of 32 bits. The distances of its texts
        # start one byte after such a word, and its counts two.
        data = b"\0\0".join([*some, bytes(8 * _LANES)])
        octets, words = np.frombuffer(data, np.uint8), _words(data, 0)
        sizes = np.fromiter(map(len, some), np.int64, len(some)) + 2
        starts = (np.cumsum(sizes) - sizes) // 4
        widths = octets[4 * starts + 8].astype(np.int64)
        distances = _unpack(_words(data, 1), starts + 2, widths)
        texts = np.cumsum(distances, axis=1, dtype=np.int64) + words[starts + 1][:, None]
        counts_at = starts + 2 + _LANES * widths
        widths = octets[4 * counts_at + 1].astype(np.int64)
        counts = _unpack(_words(data, 2), counts_at, widths).astype(np.int64)
        parts.append(Posting(texts.ravel(), counts.ravel()))
    return Posting(*(np.concatenate(numbers) for numbers in zip(*parts, strict=True)))


def _words(data: bytes, start: int) -> np.ndarray:
    """Words of 32 bits, from this byte on."""
    return np.frombuffer(data, "<u4", (len(data) - start) // 4, start)


def _unpack(words: np.ndarray, at: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Blocks of 128 numbers, each block in as many bits as its largest number takes.

    Args:
        at: The word where each block starts.
        widths: How many bits a number of it has.
    """
    # Four lanes of words side by side; each lane has every fourth number.
    bits = widths[:, None] * np.arange(_BLOCK // _LANES)
    places = (at[:, None] + _LANES * (bits >> 5))[:, :, None] + np.arange(_LANES)
    shifts = (bits & 31).astype(np.uint32)[:, :, None]
    numbers = words.take(places) >> shifts
    # A number may end in the next word. To shift one of 32 bits by 32 means nothing, so twice.
    places += _LANES
    numbers |= words.take(places) << np.uint32(1) << (np.uint32(31) - shifts)
    numbers &= ((1 << widths) - 1).astype(np.uint32)[:, None, None]
    return np.asarray(numbers.reshape(len(at), _BLOCK))


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
