"""Amounts as people write them: 10000, 10_000, 10,000, 10k, 1M."""

from __future__ import annotations

import re

from tidings.cli.common.command_errors import BadInput

_AMOUNT = re.compile(r"(\d+(?:[_,]\d{3})*|\d+\.\d+)([kKmM]?)")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def read_amount(text: str, option: str) -> int:
    """Parse the value of an option that must be an integer of at least 1."""
    found = _AMOUNT.fullmatch(text.strip())
    if found:
        number = float(re.sub("[_,]", "", found[1])) * _FACTORS[found[2].lower()]
        if number >= 1 and number.is_integer():
            return int(number)
    raise BadInput(
        f"{option} is {text!r}, expected an integer of at least 1, such as 10000, 10k or 1M"
    )
