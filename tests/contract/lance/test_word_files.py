"""Files of an index of texts: the words, lengths and counts that they have, read without Lance."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.dataset import Index

from omnigraph.choices import Analyzer
from omnigraph.search.analysis import analyse, index_parameters
from omnigraph.storage.postings import WordFile, read_word_files


def build(uri: str, texts: list[str | None], analyzer: Analyzer, **options: Any) -> WordFile:
    rows = pa.table({"text": pa.array(texts, pa.string())})
    dataset = lance.write_dataset(rows, uri, enable_stable_row_ids=True)
    segment = dataset.create_index_uncommitted(
        "text",
        "INVERTED",
        name="words",
        fragment_ids=[0],
        **{**index_parameters(analyzer), **options},
    )
    [file] = read_word_files(table_at(uri, dataset), finalised(dataset, segment))
    return file


def finalised(dataset: LanceDataset, segment: Index) -> Index:
    finished: Index = dataset.merge_existing_index_segments([segment])
    return finished


def table_at(uri: str, dataset: LanceDataset) -> Any:
    return SimpleNamespace(
        address=SimpleNamespace(uri=uri),
        handle=dataset,
        index_folder=lambda uuid, _: f"{uri}/_indices/{uuid}",
    )


@pytest.mark.parametrize("positions", [False, True])
def test_the_files_have_every_word_of_every_text_and_how_often(uri, positions):
    drawn = random.Random(3)
    vocabulary = [f"w{number}" for number in range(500)] + ["Zoë", "日本", "the", "x"]
    weights = [1 / (place + 1) for place in range(len(vocabulary))]
    texts: list[str | None] = [
        " ".join(drawn.choices(vocabulary, weights, k=drawn.randint(1, 40))) for _ in range(3000)
    ]
    texts[:4] = [None, "", "...", "x " * 70_000]
    counted = [
        Counter(token.text for token in analyse(Analyzer.SIMPLE, text or "")) for text in texts
    ]

    file = build(uri, texts, Analyzer.SIMPLE, with_position=positions)

    # Texts without words are in no file.
    assert file.row_ids.tolist() == list(range(3, len(texts)))
    assert file.lengths.tolist() == [sum(each.values()) for each in counted[3:]]
    words = sorted({word for each in counted for word in each}, key=str.encode)
    assert list(file.all_words) == words
    for word, posting in zip(words, file.read_postings(words), strict=True):
        found = dict(
            zip(file.row_ids[posting.texts].tolist(), posting.counts.tolist(), strict=True)
        )
        assert found == {row: each[word] for row, each in enumerate(counted) if word in each}
    assert [len(each.texts) for each in file.read_postings(["absent", "w", ""])] == [0, 0, 0]


def test_words_of_any_letters_are_found(uri):
    letters = [chr(number) for number in range(32, 127)]
    # Chains of single ways on, branches of two, and a node with more ways than fit its short form.
    words = [
        *letters,
        *(f"{one}{two}!" for one in letters[::7] for two in letters),
        "ab" * 300,
        "é",
    ]

    file = build(uri, list(words), Analyzer.RAW)

    assert list(file.all_words) == sorted(set(words))
    [*postings] = file.read_postings(words)
    assert [each.texts.tolist() for each in postings] == [[place] for place in range(len(words))]
