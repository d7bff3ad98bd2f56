"""A compiled schema, with one class for each struct. msgspec creates instances, from which columns
are read.

    schema   delay: int64     user: struct<city: string>     legs: list<struct<to: string>>
    Record   class(f0, f1, f2), of
             f0: int | whole | str | None   f1: class(f0) | None   f2: list[class(f0) | None] | None

msgspec checks names and kinds of values while it parses. msgspec also accepts a string in place
of any scalar, and a double in place of an integer. If a field has a mark (see null_marks.py) and an
object lacks the field, its value is ABSENT. Arrow then builds a column from the values if all of
them have the column's own type (a whole double is accepted as an integer). If Arrow refuses the
values, those of other types are read one by one.

- msgspec's own parser of times was rejected, because it accepts different strings.
- Arrow's JSON reader was rejected: it is no faster, and it accepts two objects on one line, or one
  object on two lines.
- Strict types were rejected: lines with numbers in quotes would take eight times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.model import ABSENT, NULL_MARK
from tidings.notifications.decoded import Positions
from tidings.notifications.schema import type_name
from tidings.notifications.texts import fit, read_texts

_WHOLE = Annotated[float, msgspec.Meta(multiple_of=1.0)]  # no fractions: Arrow would truncate them
_HINTS: dict[str, Any] = {"boolean": bool | str, "integer": int | _WHOLE | str,
                          "double": float | str, "decimal": Decimal, "string": str,
                          "date": str, "timestamp": str}  # fmt: skip
_NONE: Positions = np.zeros(0, np.int64)


class Slot:
    """A place for values, with their type: a field of a struct, or the elements of a list."""

    def __init__(self, field: Any, *, closed: bool) -> None:
        self.nullable: bool = field.nullable
        self.kind = field.type
        self.name = str(type_name(field.type))
        self.tells_null = False
        self.record = Record(field.type, closed=closed) if self.name == "struct" else None
        self.element: Slot | None = None
        self.key: Slot | None = None  # the keys of a map, whose values are then the elements
        if self.name == "list":
            self.element = Slot(field.type.value_field, closed=closed)
        elif self.name == "map":
            self.element = Slot(field.type.item_field, closed=closed)
            self.key = Slot(field.type.key_field, closed=closed)

    @property
    def missing(self) -> Any:
        """What stands for the value of a field that an object does not have."""
        return ABSENT if self.tells_null else None

    def hint(self) -> Any:
        """The type annotation that msgspec needs."""
        if self.record is not None:
            kind = self.record.struct
        elif self.element is not None and self.key is not None:
            kind = dict[str, self.element.hint()]  # type: ignore[misc]
        elif self.element is not None:
            kind = list[self.element.hint()]  # type: ignore[misc]
        else:
            kind = _HINTS[self.name]
        if self.tells_null:
            return kind | None | msgspec.UnsetType
        return kind | None if self.nullable else kind

    def column(self, values: list[Any]) -> tuple[Any, Positions]:
        """The values as an array, and the positions of the values that do not fit its type."""
        if self.record is not None:
            return self._read_structs(values, self.record)
        if self.element is not None and self.key is not None:
            return self._read_maps(values, self.key, self.element)
        if self.element is not None:
            return self._read_lists(values, self.element)
        if self.name == "decimal":
            return self._read_decimals(values)
        if self.name in ("date", "timestamp"):
            return read_texts(pa.array(values, pa.string()), self.kind)
        try:
            return pa.array(values, self.kind), _NONE
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return self._read_mixed(values)

    def _read_mixed(self, values: list[Any]) -> tuple[Any, Positions]:
        """Parse all strings together, and read all other values one by one."""
        is_text = np.array([type(value) is str for value in values])
        texts, bad_texts = read_texts(
            pa.array([value for value in values if type(value) is str], pa.string()), self.kind
        )
        bad = np.flatnonzero(is_text)[bad_texts].tolist()
        others: list[Any] = [None] * len(values)
        for at, value in enumerate(values):
            if value is not None and type(value) is not str:
                try:
                    others[at] = fit(value, self.kind, self.name)
                except ValueError:
                    bad.append(at)
        whole = pc.replace_with_mask(pa.array(others, self.kind), pa.array(is_text), texts)
        return whole, np.array(bad, np.int64)

    def _read_decimals(self, values: list[Any]) -> tuple[Any, Positions]:
        """Read decimals: msgspec has kept all their digits, and Arrow refuses numbers that do not
        fit, except NaN."""
        try:
            array = pa.array(values, self.kind)
            if array.null_count == values.count(None):
                return array, _NONE
        except (pa.ArrowException, TypeError, ValueError):
            pass
        return self._read_mixed(values)

    def _read_maps(self, values: list[Any], key: Slot, element: Slot) -> tuple[Any, Positions]:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(value) if value else 0 for value in values], out=offsets[1:])
        there = list(filter(None, values))
        texts = pa.array(list(chain.from_iterable(there)), pa.string())
        keys, bad_keys = read_texts(texts, key.kind)
        if len(bad_keys):  # a map has no null keys, so these rows become null
            rows = np.unique(np.searchsorted(offsets, bad_keys, side="right") - 1)
            left = list(values)
            for at in rows.tolist():
                left[at] = None
            array, wrong = self._read_maps(left, key, element)
            return array, np.unique(np.concatenate([rows, wrong]))
        items, bad = element.column([one for value in there for one in value.values()])
        absent = pa.array([value is None for value in values], pa.bool_())
        places = pa.array(offsets, pa.int32())
        array = pa.MapArray.from_arrays(places, keys, items, type=self.kind, mask=absent)
        return array, np.searchsorted(offsets, bad, side="right") - 1

    def _read_structs(self, values: list[Any], record: Record) -> tuple[Any, Positions]:
        there = [at for at, value in enumerate(values) if value is not None]
        arrays, bad = record.columns([values[at] for at in there])
        whole = pa.StructArray.from_arrays(arrays, fields=list(self.kind))
        if len(there) == len(values):
            return whole, bad
        indices = np.full(len(values), -1, np.int64)
        indices[there] = np.arange(len(there))
        spread = whole.take(pa.array(indices, mask=indices < 0))
        return spread, np.array(there, np.int64)[bad]

    def _read_lists(self, values: list[Any], element: Slot) -> tuple[Any, Positions]:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(value) if value else 0 for value in values], out=offsets[1:])
        child, bad = element.column(list(chain.from_iterable(filter(None, values))))
        large = pa.types.is_large_list(self.kind)
        make = pa.LargeListArray if large else pa.ListArray
        places = pa.array(offsets, pa.int64() if large else pa.int32())
        absent = pa.array([value is None for value in values], pa.bool_())
        array = make.from_arrays(places, child, type=self.kind, mask=absent)
        return array, np.searchsorted(offsets, bad, side="right") - 1


class Record:
    """The class of a struct; it turns instances into columns."""

    def __init__(self, fields: Iterable[Any], *, closed: bool) -> None:
        fields = list(fields)
        marks = [field.name.removeprefix(NULL_MARK) for field in fields if _is_mark(field)]
        fields = [field for field in fields if not _is_mark(field)]
        self.slots = {field.name: Slot(field, closed=closed) for field in fields}
        for name in marks:
            self.slots[name].tells_null = True
        self._marks = marks
        names = [f"f{at}" for at in range(len(fields))]  # a column name need not be an identifier
        hints = [(name, slot.hint()) for name, slot in zip(names, self.slots.values(), strict=True)]
        self._getters = [attrgetter(name) for name in names]
        self._names = names
        self.struct: Any = msgspec.defstruct(
            "Record",
            [
                (name, hint, slot.missing) if slot.nullable else (name, hint)
                for (name, hint), slot in zip(hints, self.slots.values(), strict=True)
            ],
            rename=dict(zip(names, self.slots, strict=True)),
            forbid_unknown_fields=closed,
            kw_only=True,
            gc=False,  # instances are never part of a reference cycle
        )

    def make(self, values: list[Any]) -> Any:
        """Create an instance with these values, given in the order of the fields."""
        return self.struct(**dict(zip(self._names, values, strict=True)))

    def columns(self, instances: list[Any]) -> tuple[list[Any], Positions]:
        """A column for each field, followed by the null marks; and the positions of the instances
        with a value that does not fit."""
        arrays, bad, marks = [], [_NONE], dict[str, Any]()
        for (name, slot), getter in zip(self.slots.items(), self._getters, strict=True):
            values = list(map(getter, instances))
            if slot.tells_null:
                marks[name] = pa.array([value is None for value in values], pa.bool_())
                values = [None if value is ABSENT else value for value in values]
            array, wrong = slot.column(values)
            arrays.append(array)
            bad.append(wrong)
        return arrays + [marks[name] for name in self._marks], np.unique(np.concatenate(bad))


def _is_mark(field: Any) -> bool:
    return bool(field.name.startswith(NULL_MARK))
