"""Facts about keys against a naive count of them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.integrity.proofs.key_facts import KEY, OWNER, KeyFacts, KeyKind, KeyRole, find_facts

KEYS = st.lists(st.sampled_from("abcd"), max_size=5)
CLAIMS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=4)


def keys(values: list[str]) -> pa.Table:
    return pa.table({KEY: pa.array(values, pa.utf8())})


def claims(rows: list[tuple[str, str]]) -> pa.Table:
    return pa.table(
        {
            KEY: pa.array([key for key, _ in rows], pa.utf8()),
            OWNER: pa.array([owner for _, owner in rows], pa.utf8()),
        }
    )


@given(KEYS, st.sets(st.sampled_from("abcd")), KEYS)
def test_ids_are_repeated_exist_or_are_missing(own, old, needed):
    tables = {KeyRole.OWN: keys(own), KeyRole.OLD: keys(sorted(old)), KeyRole.NEEDED: keys(needed)}

    facts = find_facts(KeyKind.IDS, tables)

    assert facts.repeated == (len(set(own)) < len(own))
    assert facts.existing == bool(set(own) & old)
    assert facts.missing == bool(set(needed) - set(own) - old)


@given(CLAIMS, CLAIMS)
def test_a_key_is_claimed_by_a_row_with_another_id(own, old):
    facts = find_facts(KeyKind.CLAIMS, {KeyRole.OWN: claims(own), KeyRole.OLD: claims(old)})

    is_repeated = len({key for key, _ in own}) < len(own)
    is_claimed = any(key == rival and owner != id_ for key, owner in own for rival, id_ in old)
    assert facts.repeated == is_repeated
    assert (facts.repeated or facts.claimed) == (is_repeated or is_claimed)


@given(KEYS, KEYS, KEYS)
def test_rows_of_a_key_are_counted(own, old, needed):
    tables = {KeyRole.OWN: keys(own), KeyRole.OLD: keys(old), KeyRole.NEEDED: keys(needed)}

    facts = find_facts(KeyKind.COUNTS, tables)

    counts = Counter([*own, *old])
    assert facts.most == max((counts[key] for key in own), default=0)
    assert facts.least == min((counts[key] for key in needed), default=None)


def test_facts_of_several_tasks_are_combined():
    some = KeyFacts(repeated=True, most=2, least=None) | KeyFacts(missing=True, most=1, least=3)

    assert some == KeyFacts(repeated=True, missing=True, most=2, least=3)
