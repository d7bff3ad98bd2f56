"""Calls to built-in functions, with checks of their arguments and of patterns."""

from __future__ import annotations

from tidings.filters.language.attributes import family
from tidings.filters.language.builders.checker import describe
from tidings.filters.language.builders.comparisons import ComparisonBuilder
from tidings.filters.language.expression import Call, Expression, Literal
from tidings.filters.language.folding import fold_constants
from tidings.filters.language.functions import FUNCTIONS
from tidings.filters.values import like, regular
from tidings.model import article


class CallBuilder(ComparisonBuilder):
    """Builds calls to functions in the table."""

    def call(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build a checked call to a built-in function; a call with constant arguments becomes its
        value."""
        self.count(at)
        function = FUNCTIONS[name]
        if not function.least <= len(args) <= function.most:
            self.fail(
                f"{name} takes {_describe_count(function.least, function.most)}, not {len(args)}",
                at,
            )
        for place, (arg, where) in enumerate(zip(args, places, strict=True)):
            self.need_value(arg, where, f"for {name}")
            wanted = function.takes[place] if place < len(function.takes) else None
            kind = family(self.type(arg))
            if wanted and kind and kind != wanted:
                found = f"{describe(arg)}, {article(self.type(arg) or '')}"
                self.fail(f"{name} takes {article(wanted)} here, found {found}", where)
        if name in ("like", "ilike") and isinstance(args[1], Literal):
            self._check_like(args[1], places[1])
        if name == "rlike":
            self._check_regular(args[1], places[1])
        return fold_constants(Call(name, args))

    def like(
        self, name: str, item: Expression, pattern: Expression, escape: str | None,
        at: tuple[int, int],
    ) -> Expression:  # fmt: skip
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            # ILIKE is LIKE on lower-case strings; Spark converts the pattern to lower case before
            # it looks for escapes
            text = pattern.value.lower() if name == "ilike" and escape else pattern.value
            try:
                pattern = Literal(like.join(like.split(text, escape or "\\")))
            except like.PatternError as problem:
                self.fail(f"{problem}, expected %, _ or another escape character after it", at[1])
        elif escape is not None:
            self.fail(f"found {describe(pattern)}, expected a quoted pattern before ESCAPE", at[1])
        return self.call(name, (item, pattern), at, at[0])

    def _check_like(self, pattern: Literal, at: int) -> None:
        if isinstance(pattern.value, str):
            try:
                like.Like(like.split(pattern.value))
            except like.PatternError as problem:
                self.fail(f"{problem}, expected %, _ or another escape character after it", at)
            except like.LargeError as problem:
                self.exceed(str(problem), at)

    def _check_regular(self, pattern: Expression, at: int) -> None:
        if not isinstance(pattern, Literal):
            self.exceed(
                f"RLIKE takes a pattern in quotes, found {describe(pattern)}; only LIKE and "
                "contains can take the pattern from an attribute",
                at,
            )
        if isinstance(pattern.value, str):
            try:
                compiled = regular.compile_pattern(pattern.value)
                self.count(at, compiled.size // 64)
            except regular.RegularError as problem:
                self.exceed(str(problem), at)


def _describe_count(least: int, most: int) -> str:
    if least == most:
        return f"{least} argument{'s' if least != 1 else ''}"
    return f"{least} to {most} arguments"
