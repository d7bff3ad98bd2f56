"""Filters of a workload: conjunctions of tests, stored in columns, written as SQL, JSON or lists.

Each test is on one attribute:

    =        the value, text or number
    between  low <= value <= high; one of the two may be open
    prefix   the text starts with the value
    suffix   the text ends with the value
    like     the text matches the value as a LIKE pattern

A million filters have about five million tests, so no code here loops over them in Python: Arrow
builds the texts, block by block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.studies.workloads.draws import BLOCK, Array, lengths_to_offsets

Kind = Literal["string", "integer", "double"]

OPERATORS = ("=", "between", "prefix", "suffix", "like")
EQUAL, BETWEEN, PREFIX, SUFFIX, LIKE = range(5)


class DrawnAttribute(msgspec.Struct, frozen=True):
    """An attribute of a workload's events."""

    name: str
    kind: Kind


class StructuredFilter(msgspec.Struct, frozen=True):
    """One line of `filters.jsonl`."""

    id: int
    tests: list[AttributeTest]


class AttributeTest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One test of a conjunction, in the form that `filters.jsonl` has."""

    attribute: str
    op: str
    value: str | int | float | None = None
    low: int | float | None = None
    high: int | float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Conjunctions:
    """Many filters. The tests of filter i are the tests from `offsets[i]` up to `offsets[i + 1]`.

    `attribute` (int16) is an index into `attributes`, and `operator` (int8) an index into
    OPERATORS. `text` is an Arrow array of strings, null if the value is a number. `low` and `high`
    are float64; NaN means no bound. For an equality, `low` and `high` are equal.
    """

    attributes: tuple[DrawnAttribute, ...]
    offsets: Array
    attribute: Array
    operator: Array
    text: Any
    low: Array
    high: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> list[AttributeTest]:
        start, stop = int(self.offsets[index]), int(self.offsets[index + 1])
        return [self._test(at) for at in range(start, stop)]

    def __iter__(self) -> Iterator[list[AttributeTest]]:
        return (self[index] for index in range(len(self)))

    def part(self, start: int, stop: int) -> Conjunctions:
        """The filters from `start` up to but excluding `stop`."""
        stop = min(stop, len(self))
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        return Conjunctions(
            self.attributes,
            self.offsets[start : stop + 1] - first,
            self.attribute[first:last],
            self.operator[first:last],
            self.text.slice(first, last - first),
            self.low[first:last],
            self.high[first:last],
        )

    def operators(self) -> set[str]:
        """The operators in use; a peer can take part only if it has all of them."""
        return {OPERATORS[code] for code in np.unique(self.operator)}

    def sql(self) -> Iterator[str]:
        """The text of each filter, in the default dialect."""
        for block in self._blocks():
            yield from _join_tests(block.offsets, block._sql_tests(), " AND ").to_pylist()

    def json_lines(self) -> Iterator[bytes]:
        """Each filter as a line of `filters.jsonl`; its id is its number."""
        number = 0
        for block in self._blocks():
            tests = _join_tests(block.offsets, block._json_tests(), ",")
            ids = _numbers(np.arange(number, number + len(block)), "integer")
            number += len(block)
            yield from glue('{"id":', ids, ',"tests":[', tests, "]}").cast(pa.binary()).to_pylist()

    def _blocks(self) -> Iterator[Conjunctions]:
        for start in range(0, len(self), BLOCK):
            yield self.part(start, start + BLOCK)

    def _test(self, at: int) -> AttributeTest:
        attribute = self.attributes[self.attribute[at]]
        operator = OPERATORS[self.operator[at]]
        if attribute.kind == "string":
            return AttributeTest(attribute.name, operator, value=self.text[at].as_py())
        low, high = (_to_number(side[at], attribute.kind) for side in (self.low, self.high))
        if operator == "=":
            return AttributeTest(attribute.name, operator, value=low)
        return AttributeTest(attribute.name, operator, low=low, high=high)

    def _sql_tests(self) -> Any:
        pieces = []
        for rows, name, kind, operator, texts, low, high in self._groups():
            if kind == "string":
                before, after = _LIKE.get(operator, ("", ""))
                sign = "=" if operator == EQUAL else "LIKE"
                made = glue(f"{name} {sign} '{before}", _quote(texts), f"{after}'")
            elif operator == EQUAL:
                made = glue(f"{name} = ", _numbers(low, kind))
            elif np.isnan(high[0]):
                made = glue(f"{name} >= ", _numbers(low, kind))
            elif np.isnan(low[0]):
                made = glue(f"{name} <= ", _numbers(high, kind))
            else:
                bounds = _numbers(low, kind), " AND ", _numbers(high, kind)
                made = glue(f"{name} BETWEEN ", *bounds)
            pieces.append((rows, made))
        return _in_order(pieces)

    def _json_tests(self) -> Any:
        pieces = []
        for rows, name, kind, operator, texts, low, high in self._groups():
            start = f'{{"attribute":"{name}","op":"{OPERATORS[operator]}"'
            if kind == "string":
                made = glue(start + ',"value":', json_strings(texts), "}")
            elif operator == EQUAL:
                made = glue(start + ',"value":', _numbers(low, kind), "}")
            else:
                parts: list[Any] = [start]
                if not np.isnan(low[0]):
                    parts += [',"low":', _numbers(low, kind)]
                if not np.isnan(high[0]):
                    parts += [',"high":', _numbers(high, kind)]
                made = glue(*parts, "}")
            pieces.append((rows, made))
        return _in_order(pieces)

    def _groups(self) -> Iterator[tuple[Array, str, Kind, int, Any, Array, Array]]:
        """The tests grouped by syntax: rows, attribute, kind, operator, text, low, high."""
        open_ends = np.isnan(self.low) * 2 + np.isnan(self.high)
        shape = (self.attribute.astype(np.int64) * 8 + self.operator) * 4 + open_ends
        for key in np.unique(shape):
            rows = np.flatnonzero(shape == key)
            attribute = self.attributes[key // 32]
            texts = self.text.take(pa.array(rows)) if attribute.kind == "string" else None
            yield (
                rows, attribute.name, attribute.kind, int(key // 4 % 8),
                texts, self.low[rows], self.high[rows],
            )  # fmt: skip


_LIKE = {PREFIX: ("", "%"), SUFFIX: ("%", "")}


class ConjunctionBuilder:
    """Collects the tests of many filters, group by group, and sorts them by filter at the end."""

    def __init__(self, attributes: tuple[DrawnAttribute, ...]) -> None:
        self._attributes = attributes
        self._numbers = {attribute.name: number for number, attribute in enumerate(attributes)}
        self._rows: list[Array] = []
        self._attribute: list[Array] = []
        self._operator: list[Array] = []
        self._text: list[Any] = []
        self._low: list[Array] = []
        self._high: list[Array] = []

    def equal(self, rows: Array, attribute: str | Array, values: Any) -> None:
        """Add `attribute = value` to the filters `rows`. An Arrow array contains strings, a NumPy
        array contains numbers."""
        if isinstance(values, pa.Array):
            self._add(rows, attribute, EQUAL, values, None, None)
        else:
            self._add(rows, attribute, EQUAL, None, values, values)

    def between(
        self, rows: Array, attribute: str | Array, low: Array | None, high: Array | None
    ) -> None:
        """Add `attribute BETWEEN low AND high`; one of the bounds may be None."""
        self._add(rows, attribute, BETWEEN, None, low, high)

    def pattern(self, rows: Array, attribute: str, operator: int, texts: Any) -> None:
        """Add a prefix, suffix or LIKE test."""
        self._add(rows, attribute, operator, texts, None, None)

    def filters(self, count: int) -> Conjunctions:
        """The filters 0 to `count` - 1; the tests of each are in the order in which they were
        added."""
        rows = np.concatenate(self._rows)
        order = np.argsort(rows, kind="stable")
        texts = pa.chunked_array(self._text).combine_chunks()
        return Conjunctions(
            self._attributes,
            lengths_to_offsets(np.bincount(rows, minlength=count)),
            np.concatenate(self._attribute)[order],
            np.concatenate(self._operator)[order],
            texts.take(pa.array(order)),
            np.concatenate(self._low)[order],
            np.concatenate(self._high)[order],
        )

    def _add(
        self, rows: Array, attribute: str | Array, operator: int,
        text: Any, low: Array | None, high: Array | None,
    ) -> None:  # fmt: skip
        size = len(rows)
        if isinstance(attribute, str):
            attribute = np.full(size, self._numbers[attribute])
        self._rows.append(rows)
        self._attribute.append(attribute.astype(np.int16))
        self._operator.append(np.full(size, operator, np.int8))
        self._text.append(pa.nulls(size, pa.string()) if text is None else text)
        self._low.append(np.full(size, np.nan) if low is None else low.astype(np.float64))
        self._high.append(np.full(size, np.nan) if high is None else high.astype(np.float64))


def concatenate(pieces: list[Conjunctions]) -> Conjunctions:
    """The filters of all pieces, in order."""
    shifts = np.cumsum([0] + [len(piece.attribute) for piece in pieces])
    offsets = [piece.offsets[1:] + shift for piece, shift in zip(pieces, shifts, strict=False)]
    return Conjunctions(
        pieces[0].attributes,
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([piece.attribute for piece in pieces]),
        np.concatenate([piece.operator for piece in pieces]),
        pa.chunked_array([piece.text for piece in pieces]).combine_chunks(),
        np.concatenate([piece.low for piece in pieces]),
        np.concatenate([piece.high for piece in pieces]),
    )


def sql_of_tests(tests: Sequence[AttributeTest]) -> str:
    """The text of a conjunction, in the default dialect. For many conjunctions, `sql()` is
    faster."""
    return " AND ".join(_sql_of_test(test) for test in tests)


def _sql_of_test(test: AttributeTest) -> str:
    name = test.attribute
    if isinstance(test.value, str):
        before, after = _LIKE.get(OPERATORS.index(test.op), ("", ""))
        quoted = test.value.replace("\\", "\\\\").replace("'", "''")
        return f"{name} {'=' if test.op == '=' else 'LIKE'} '{before}{quoted}{after}'"
    if test.op == "=":
        return f"{name} = {test.value}"
    if test.high is None:
        return f"{name} >= {test.low}"
    if test.low is None:
        return f"{name} <= {test.high}"
    return f"{name} BETWEEN {test.low} AND {test.high}"


def event_lines(events: pa.Table) -> list[bytes]:
    """Each event as a JSON object; null attributes are left out."""
    lines: list[bytes] = []
    for batch in events.to_batches(max_chunksize=BLOCK):
        fields = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            values = json_strings(column) if pa.types.is_string(column.type) else _as_text(column)
            fields.append(glue(f',"{name}":', values).fill_null(""))
        joined = pc.utf8_ltrim(glue(*fields), ",")
        lines += glue("{", joined, "}").cast(pa.binary()).to_pylist()
    return lines


def json_strings(texts: Any) -> Any:
    """Encode strings as JSON. Each distinct string is escaped once."""
    coded = texts.dictionary_encode()
    escaped = [msgspec.json.encode(text).decode() for text in coded.dictionary.to_pylist()]
    return pa.array(escaped, pa.string()).take(coded.indices)


def _quote(texts: Any) -> Any:
    doubled = pc.replace_substring(texts, "\\", "\\\\")
    return pc.replace_substring(doubled, "'", "''")


def _to_number(value: Any, kind: Kind) -> int | float | None:
    if np.isnan(value):
        return None
    return int(value) if kind == "integer" else float(value)


def _numbers(values: Array, kind: Kind) -> Any:
    return _as_text(pa.array(values.astype(np.int64 if kind == "integer" else np.float64)))


def _as_text(column: Any) -> Any:
    return column.cast(pa.string())


def glue(*parts: Any) -> Any:
    """Concatenate strings row by row; a part is an Arrow array, or one string for all rows."""
    return pc.binary_join_element_wise(*parts, "")


def _join_tests(offsets: Array, texts: Any, between: str) -> Any:
    return pc.binary_join(
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), texts), between
    )


def _in_order(pieces: list[tuple[Array, Any]]) -> Any:
    """Assemble one array from pieces; each piece has the values of some rows."""
    if not pieces:
        return pa.array([], pa.string())
    rows = np.concatenate([rows for rows, _ in pieces])
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    return pa.chunked_array([made for _, made in pieces]).combine_chunks().take(pa.array(place))
