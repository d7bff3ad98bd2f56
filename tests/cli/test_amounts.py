"""Amounts as people write them."""

from __future__ import annotations

import pytest

from tidings.cli.common.amounts import read_amount
from tidings.cli.common.command_errors import BadInput


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("10000", 10_000), ("10_000", 10_000), ("1,000,000", 10**6), ("10k", 10_000),
     ("1M", 10**6), ("2.5k", 2500), (" 3K ", 3000), ("0.5m", 500_000)],
)  # fmt: skip
def test_amounts(text: str, number: int) -> None:
    assert read_amount(text, "--filters") == number


@pytest.mark.parametrize("text", ["", "0", "-1", "k", "ten", "1.5", "0.0001k", "1e4", "1,0", "10G"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(BadInput, match=f"--filters is '{text}', expected an integer of at least 1"):
        read_amount(text, "--filters")
