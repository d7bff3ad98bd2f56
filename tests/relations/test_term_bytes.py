"""Contexts: terms come back from their bytes, equal sets have equal bytes, and other bytes are
refused."""

from __future__ import annotations

import random

import pytest
from tests.repeats import rounds

from tidings.model import AttributesError
from tidings.relations import Place, Recurring, Term, TimeSpan, decode_terms, encode_terms
from tidings.relations.semantic.term_bytes import LONGEST_NAME, MOST_BYTES, MOST_TERMS


def draw_term(rng: random.Random) -> Term:
    name = "".join(rng.choices("aäb東 ", k=rng.randint(1, 8)))
    kind = rng.randrange(6)
    if kind == 0:
        return Term("place", Place(name, altitude=rng.choice([0.0, -0.0, 12.5])))
    if kind == 1:
        lat, lon = (rng.choice([0.0, -0.0, rng.uniform(-90, 90)]) for _ in range(2))
        return Term("place", Place(rng.choice(["", name]), lat, lon, rng.uniform(0, 9000)))
    if kind == 2:
        start = rng.randint(-(10**15), 10**15)
        return Term("time", TimeSpan(start, start + rng.choice([0, 86_400_000_000])))
    if kind == 3:
        return Term("time", Recurring(name))
    return Term("tag" if kind == 4 else "person", name)


def test_terms_come_back_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    for _ in rounds(300, 3000):
        terms = [draw_term(rng) for _ in range(rng.randint(0, 8))]
        data = encode_terms(terms)
        found = decode_terms(data)
        assert set(found) == set(terms)  # -0.0 and 0.0 are the same place
        assert len(found) == len(set(terms))
        assert encode_terms(rng.sample(terms, len(terms)) + terms) == data
        assert encode_terms(found) == data


def test_what_does_not_fit_is_left_out() -> None:
    rose = Term("tag", "rose")
    assert decode_terms(encode_terms([Term("tag", "x" * (LONGEST_NAME + 1)), rose])) == (rose,)
    assert decode_terms(encode_terms([Term("person", "\ud800"), rose])) == (rose,)
    assert decode_terms(encode_terms([Term("time", TimeSpan(0, 1 << 63)), rose])) == (rose,)
    assert decode_terms(encode_terms([Term("place", Place("x", 91.0, 0.0)), rose])) == (rose,)
    many = [Term("tag", f"{at:02}") for at in range(2 * MOST_TERMS)]
    assert decode_terms(encode_terms(many)) == tuple(many[:MOST_TERMS])
    long = [Term("place", Place(f"{at:064}", 1.0, 2.0)) for at in range(MOST_TERMS)]
    data = encode_terms(long)
    assert MOST_BYTES - 100 < len(data) <= MOST_BYTES
    assert decode_terms(data) == tuple(long[: len(decode_terms(data))])


def test_random_and_mutated_bytes(seed: int) -> None:
    """Bytes are refused, or are exactly those of the terms that they give."""
    rng = random.Random(seed)
    refused = 0
    for _ in rounds(2000, 20_000):
        data = bytearray(encode_terms([draw_term(rng) for _ in range(rng.randint(1, 4))]))
        for _ in range(rng.randint(0, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data = data[: rng.randrange(len(data))]
        try:
            found = decode_terms(bytes(data))
        except AttributesError:
            refused += 1
        else:
            assert encode_terms(found) == data
    assert refused


def test_too_many_terms_are_refused() -> None:
    data = b"".join(encode_terms([Term("tag", f"{at:02}")]) for at in range(MOST_TERMS + 1))
    with pytest.raises(AttributesError, match="17 terms in 68 bytes, expected at most 16 in 1,024"):
        decode_terms(data)
