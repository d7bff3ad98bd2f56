"""Kernels that read flat JSON objects.

Shapes (n objects, c columns): data uint8, the bytes of all objects; places int64 [n + 1], where
each begins; names uint8, the names of the columns one after another; name_places int64 [c + 1];
kinds uint8 [c], one of the constants below; numbers int64 and doubles float64 [c, n], the values;
texts int64 [c, n, 2], where a string begins and ends in the data; valid uint8 [c, n], ABSENT, HERE
or MISSING; odd uint8 [n]; wide uint8 [c]; tens float64 [MOST_TENS + 1]. Offsets in the data are
integers: `at` where reading begins, and `end` after the last byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit.kernel_compiler import kernel

NULL, TRUTH, INTEGER, DOUBLE, TEXT = 0, 1, 2, 3, 4  # kinds of columns
ABSENT, HERE, MISSING = 0, 1, 2  # no attribute, a value, or null
MOST_DIGITS = 18  # a number with at most this many digits fits into 64 bits
EXACT = 1 << 53  # up to this number, a double represents every whole number exactly
MOST_TENS = 22  # the highest n for which a double represents 10**n exactly
TENS = 10.0 ** np.arange(MOST_TENS + 1)


@kernel
def skip_blanks(data: Any, at: int, end: int) -> int:
    """The index of the first byte that is not white space."""
    while at < end and data[at] in (0x20, 0x0A, 0x0D, 0x09):
        at += 1
    return at


@kernel
def skip_text(data: Any, at: int, end: int) -> Any:
    """The index of the quote at the end of a string, and whether all bytes of the string are ASCII.
    The index is -1 if the string has an escape or a control character, or does not end."""
    plain = True
    while at < end:
        byte = data[at]
        if byte == 0x22:
            return at, plain
        if byte == 0x5C or byte < 0x20:
            return -1, plain
        if byte >= 0x80:
            plain = False
        at += 1
    return -1, plain


@kernel
def find_name(data: Any, at: int, end: int, names: Any, name_places: Any, likely: int) -> int:
    """The number of the column whose name is data[at:end], or -1 if there is none. Most objects
    have their attributes in the same order, so the column `likely` is compared first."""
    columns = len(name_places) - 1
    size = end - at
    for step in range(columns):
        column = likely + step
        if column >= columns:
            column -= columns
        first = name_places[column]
        if name_places[column + 1] - first != size:
            continue
        same = True
        for one in range(size):
            if names[first + one] != data[at + one]:
                same = False
                break
        if same:
            return column
    return -1


@kernel
def is_word(data: Any, at: int, end: int, word: Any) -> Any:
    """Whether the bytes of a word are at this offset of the data."""
    if at + len(word) > end:
        return False
    same = True
    for one in range(len(word)):
        same &= data[at + one] == word[one]
    return same


@kernel
def read_number(data: Any, at: int, end: int) -> Any:
    """Read a number: return its digits as a whole number, the power of ten by which they must be
    multiplied, whether it is written as a whole number, and the index after it. The index is -1 if
    the number has too many digits, is a negative zero, or is invalid."""
    negative = data[at] == 0x2D
    if negative:
        at += 1
    digits = np.int64(0)
    first = at
    while at < end and 0x30 <= data[at] <= 0x39:
        if at - first < MOST_DIGITS:
            digits = digits * 10 + (np.int64(data[at]) - 0x30)
        at += 1
    count = at - first
    if count == 0 or count > MOST_DIGITS or (count > 1 and data[first] == 0x30):
        return digits, 0, False, -1
    whole = True
    power: Any = np.int64(0)
    if at < end and data[at] == 0x2E:
        whole = False
        at += 1
        first = at
        while at < end and 0x30 <= data[at] <= 0x39:
            count += 1
            if count <= MOST_DIGITS:
                digits = digits * 10 + (np.int64(data[at]) - 0x30)
            at += 1
        power = first - at
        if at == first or count > MOST_DIGITS:
            return digits, 0, False, -1
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        whole = False
        at += 1
        below = False
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            below = data[at] == 0x2D
            at += 1
        first = at
        tens = np.int64(0)
        while at < end and 0x30 <= data[at] <= 0x39 and at - first < 4:
            tens = tens * 10 + (np.int64(data[at]) - 0x30)
            at += 1
        if at == first or at - first == 4:
            return digits, 0, False, -1
        power += -tens if below else tens
    if negative:
        if digits == 0:
            return digits, 0, False, -1
        digits = -digits
    return digits, power, whole, at


@kernel
def read_object(
    data: Any, at: int, end: int, row: int, names: Any, name_places: Any, kinds: Any, tens: Any,
    numbers: Any, doubles: Any, texts: Any, valid: Any, wide: Any,
) -> Any:  # fmt: skip
    """Read the object that begins at the offset `at` into a row; return False if the object is odd.
    `wide` (uint8 [c]) becomes 1 for a column with a string that is not ASCII, and for a column of
    doubles with a whole number."""
    at = skip_blanks(data, at, end)
    if at >= end or data[at] != 0x7B:
        return False
    at = skip_blanks(data, at + 1, end)
    if at < end and data[at] == 0x7D:
        return skip_blanks(data, at + 1, end) == end
    likely = 0
    while at < end:
        if data[at] != 0x22:
            return False
        behind, _ = skip_text(data, at + 1, end)
        if behind < 0:
            return False
        column = find_name(data, at + 1, behind, names, name_places, likely)
        # of a repeated attribute, only the last value would be checked
        if column < 0 or valid[column, row] != ABSENT:
            return False
        likely = column + 1 if column + 2 < len(name_places) else 0
        at = skip_blanks(data, behind + 1, end)
        if at >= end or data[at] != 0x3A:
            return False
        at = skip_blanks(data, at + 1, end)
        if at >= end:
            return False
        kind, byte = kinds[column], data[at]
        if byte == 0x22:
            if kind != TEXT:
                return False
            behind, plain = skip_text(data, at + 1, end)
            if behind < 0:
                return False
            texts[column, row, 0], texts[column, row, 1] = at + 1, behind
            if not plain:
                wide[column] = 1
            valid[column, row] = HERE
            at = behind + 1
        elif byte == 0x6E:
            if not is_word(data, at, end, b"null"):
                return False
            valid[column, row] = MISSING
            at += 4
        elif byte == 0x74:
            if kind != TRUTH or not is_word(data, at, end, b"true"):
                return False
            numbers[column, row], valid[column, row] = 1, HERE
            at += 4
        elif byte == 0x66:
            if kind != TRUTH or not is_word(data, at, end, b"false"):
                return False
            numbers[column, row], valid[column, row] = 0, HERE
            at += 5
        else:
            if kind not in (INTEGER, DOUBLE):
                return False
            digits, power, whole, at = read_number(data, at, end)
            if at < 0:
                return False
            if kind == INTEGER:
                if not whole:
                    return False
                numbers[column, row] = digits
            else:
                # doubles represent both operands exactly, so the product or quotient is rounded
                # correctly
                if digits > EXACT or digits < -EXACT or power > MOST_TENS or power < -MOST_TENS:
                    return False
                value = np.float64(digits)
                doubles[column, row] = value / tens[-power] if power < 0 else value * tens[power]
                if whole:
                    wide[column] = 1
            valid[column, row] = HERE
        at = skip_blanks(data, at, end)
        if at >= end:
            return False
        if data[at] == 0x7D:
            return skip_blanks(data, at + 1, end) == end
        if data[at] != 0x2C:
            return False
        at = skip_blanks(data, at + 1, end)
    return False


@kernel
def read_objects(
    data: Any, places: Any, names: Any, name_places: Any, kinds: Any, tens: Any,
    numbers: Any, doubles: Any, texts: Any, valid: Any, odd: Any, wide: Any,
) -> Any:  # fmt: skip
    """Read all objects; return how many are odd. The rows of odd objects are empty. The arrays are
    described at the top of the module."""
    many = 0
    for row in range(len(places) - 1):
        odd[row] = 0
        if not read_object(
            data, places[row], places[row + 1], row, names, name_places, kinds, tens,
            numbers, doubles, texts, valid, wide,
        ):  # fmt: skip
            odd[row] = 1
            valid[:, row] = ABSENT
            many += 1
    return many


@kernel
def measure_texts(texts: Any, valid: Any, offsets: Any) -> None:
    """Fill `offsets` (int32 [n + 1]): the end of each string of a column in the joined strings."""
    offsets[0] = 0
    for row in range(len(valid)):
        size = texts[row, 1] - texts[row, 0] if valid[row] else 0
        offsets[row + 1] = offsets[row] + size


@kernel
def copy_texts(data: Any, texts: Any, offsets: Any, out: Any) -> None:
    """Copy the strings of one column to `out`, uint8, one after another."""
    for row in range(len(offsets) - 1):
        first, to = texts[row, 0], offsets[row]
        for one in range(offsets[row + 1] - to):
            out[to + one] = data[first + one]
