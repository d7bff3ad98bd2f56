"""Coverings of filters that stay trees: those that only a walk down both filters finds, and none
that is wrong on a small domain."""

from __future__ import annotations

import itertools
import random

from tidings import parse
from tidings.filters.canonical import covers_among
from tidings.filters.canonical.form import Form

VALUES = (0, 1, 2)
NAMES = [f"a{n}" for n in range(8)]
PAIRS = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8))


def test_a_covering_that_follows_from_several_clauses() -> None:
    inner = parse(f"{PAIRS} AND (c = 1 OR a0 = 2)")
    assert inner.form.tree is not None
    assert parse("b0 = 1 OR c = 1").covers(inner)
    assert not parse("b0 = 1 OR c = 2").covers(inner)
    assert parse(PAIRS).covers(inner)
    assert not inner.covers(parse(PAIRS))


def random_wide(rng: random.Random) -> str:
    """An AND of clauses over few attributes with few values, so that filters often cover others."""

    def test() -> str:
        return f"{rng.choice(NAMES[:5])} {rng.choice(['=', '!=', '<', '>'])} {rng.choice(VALUES)}"

    clauses = [f"({test()} OR {test()})" for _ in range(rng.choice([1, 2, 3]))]
    return " AND ".join([*clauses, *rng.sample(FREE, 7)])


FREE = [f"(p{n} = 1 OR q{n} = 1)" for n in range(8)]  # make the form wide


def test_no_covering_is_wrong_on_a_small_domain(seed: int) -> None:
    rng = random.Random(seed)
    texts = [random_wide(rng) for _ in range(40)]
    forms = [parse(text).form for text in texts]
    assert any(form.tree is not None for form in forms)
    events = [
        dict(zip(NAMES[:5], values, strict=True))
        for values in rng.sample(list(itertools.product(VALUES, repeat=5)), 120)
    ]
    # each clause of FREE fails alone, or none does
    states = [{f"p{n}": int(n != off) for n in range(8)} for off in (None, *range(8))]
    holds = [
        [form.holds({**event, **state}) for event in events for state in states] for form in forms
    ]
    found = covering_pairs(forms)
    for outer, inner in found:
        assert all(a >= b for a, b in zip(holds[outer], holds[inner], strict=True)), (
            texts[outer], texts[inner])  # fmt: skip
    assert covering_pairs(forms, walk=False) <= found


def covering_pairs(forms: list[Form], *, walk: bool = True) -> set[tuple[int, int]]:
    return {
        (one, other)
        for one, other in itertools.permutations(range(len(forms)), 2)
        if covers_among(forms[one], forms[other], walk=walk)
    }
