"""A TOML file of settings, checked as a whole: all problems are reported at once, each with its
line.

    [source]                          line 4: source.formt: there is no such setting; did you mean
    kind = "files"                            format?
    formt = "json"                    line 7: trigger.every_seconds: found a string, expected a
                                              number
    [trigger]
    every_seconds = "1"

tomllib parses the file but keeps no positions, so `find_lines` then searches the text for the line
of each key. A key inside an inline table has the line of the table.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from tidings.model import Problem, TidingsError

Place = tuple[str, ...]

_STRINGS = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'", re.DOTALL)
_PART = r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[A-Za-z0-9_-]+)"
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_PART}(?:\s*\.\s*{_PART})*)\s*\]\]?\s*(?:#.*)?$")
_KINDS = {bool: "a boolean", int: "an integer", float: "a number", str: "a string",
          dict: "a table", list: "a list"}  # fmt: skip


class TomlFile(msgspec.Struct, frozen=True):
    """The content of a file, and the lines of its keys."""

    path: Path
    data: dict[str, Any]
    lines: dict[Place, int]

    def line(self, place: Place) -> int | None:
        """The line of a key, or of the table around it."""
        while place:
            if place in self.lines:
                return self.lines[place]
            place = place[:-1]
        return None

    def describe(self, problems: Iterable[Problem]) -> str:
        """All problems as one message, in the order in which they occur in the file."""
        placed = sorted(
            {(self.line(one.place) or 0, one.sentence): None for one in problems},
            key=lambda found: found[0],
        )
        if len(placed) == 1:
            line, sentence = placed[0]
            return f"{self.path}, line {line}: {sentence}" if line else f"{self.path}: {sentence}"
        told = [f"  line {line}: {text}" if line else f"  {text}" for line, text in placed]
        return "\n".join([f"{self.path} has {len(placed)} problems:", *told])


def read_toml(path: Path, error: type[TidingsError]) -> TomlFile:
    """Read a file; raise `error`, with one sentence, if it can't be read or is not TOML."""
    try:
        text = path.read_text("utf-8")
        return TomlFile(path, tomllib.loads(text), find_lines(text))
    except OSError as problem:
        raise error(f"{path} can't be read: {problem.strerror}") from None
    except RecursionError:
        raise error(f"{path} can't be read: its lists are nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path} is not TOML: {problem}") from None
    except ValueError:  # Python limits the digits of integers
        raise error(f"{path} can't be read: an integer has too many digits") from None


def find_lines(text: str) -> dict[Place, int]:
    """The line number, counted from 1, of each key and table in a valid text."""
    # the contents of strings are blanked out, so that nothing in them looks like a key
    blank = _STRINGS.sub(lambda found: re.sub(r"[^\n\"']", "_", found.group()), text)
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    depth = 0
    for number, (line, safe) in enumerate(zip(text.split("\n"), blank.split("\n"), strict=True), 1):
        bare = safe.partition("#")[0]
        if depth <= 0:
            # inside a string, the blanked line has no bracket and no equals sign
            header, key = _HEADER.match(line), _KEY.match(line)
            if header and safe.lstrip().startswith("["):
                table = _resolve(_split_key(header[2]), counts)
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, str(counts[table]))
                found.setdefault(table, number)
                continue
            if key and safe[key.end() - 1] == "=":
                path = (*table, *_split_key(key[1]))
                for size in range(len(table) + 1, len(path) + 1):
                    found.setdefault(path[:size], number)
        depth += sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))
    return found


def _split_key(key: str) -> Place:
    parts = re.findall(_PART, key)
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in parts)


def _resolve(path: Place, counts: Mapping[Place, int]) -> Place:
    """The path of a table; each array of tables on the way is followed by the index of its last
    element."""
    out: Place = ()
    for at, step in enumerate(path):
        out = (*out, step)
        if out in counts and at < len(path) - 1:
            out = (*out, str(counts[out]))
    return out


def find_problems(
    data: Any, kind: Any, place: Place = (), hidden: Collection[str] = ()
) -> Iterator[Problem]:
    """Everything in the data that does not fit a msgspec type; empty if all the data can be
    converted.

    `hidden` names fields of the type that a file may not set. Problems name only the kinds of
    values, not the values themselves, because some values are secrets.
    """
    options = _options(kind)
    if len(options) == 1:  # the type is `dict[str, str] | None`, for example
        kind = options[0]
    structs = [one for one in options if _is_struct(one)]
    if structs and isinstance(data, dict):
        found = _choose(data, structs, place)
        if isinstance(found, Problem):
            yield found
        else:
            yield from _check_table(data, found, place, hidden)
        return
    origin, args = get_origin(kind), get_args(kind)
    is_many = origin in (list, set, frozenset) or (origin is tuple and args[1:] == (...,))
    if is_many and isinstance(data, list):
        for at, one in enumerate(data):
            yield from find_problems(one, args[0], (*place, str(at)))
        return
    if origin is dict and isinstance(data, dict):
        for name, one in data.items():
            yield from find_problems(one, args[1], (*place, name))
        return
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError as problem:
        yield Problem(place, f"{show_place(place)}: {_rephrase(data, kind, str(problem))}")


def show_place(place: Place) -> str:
    """Write a place as text: source.path, sinks[0].rows. A token is shown as *."""
    if place[:1] == ("tokens",):
        place = ("tokens", *(["*"] if len(place) > 2 else []), *place[2:])
    text = ""
    for step in place:
        text += f"[{step}]" if step.isdecimal() else f".{step}" if text else step
    return text


def _options(kind: Any) -> list[Any]:
    if get_origin(kind) in (Union, types.UnionType):
        return [one for one in get_args(kind) if one is not type(None)]
    return [kind]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _choose(data: dict[str, Any], structs: list[Any], place: Place) -> Any:
    """The struct type of a table: the only possible one, or the one that the tag in the table
    names."""
    name = structs[0].__struct_config__.tag_field
    if name is None:
        return structs[0]
    tags = {one.__struct_config__.tag: one for one in structs}
    expected = _list_words(tags)
    where = (*place, name)
    if name not in data:
        return Problem(place, f"{show_place(place)}: found no {name}, expected {expected}")
    found = data[name]
    if not isinstance(found, str) or found not in tags:
        return Problem(where, f"{show_place(where)}: found {found!r:.40}, expected {expected}")
    return tags[found]


def _check_table(
    data: dict[str, Any], kind: Any, place: Place, hidden: Collection[str]
) -> Iterator[Problem]:
    fields = {one.encode_name: one for one in msgspec.structs.fields(kind)}
    allowed = [name for name in fields if name not in hidden]
    tag = kind.__struct_config__.tag_field
    for name, value in data.items():
        where = (*place, name)
        if name in allowed:
            yield from find_problems(value, fields[name].type, where)
        elif name != tag:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"did you mean {near[0]}?" if near else f"expected {_list_words(allowed, '')}"
            yield Problem(where, f"{show_place(where)}: there is no such setting; {hint}")
    for name in allowed:
        if fields[name].required and name not in data:
            yield Problem(place, f"{show_place((*place, name))}: the setting is missing; add it")


def _list_words(words: Iterable[str], quote: str = '"') -> str:
    shown = [f"{quote}{word}{quote}" for word in words]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _rephrase(data: Any, kind: Any, problem: str) -> str:
    """Say what was found and what is allowed, based on the type and on msgspec's message."""
    found = next((text for one, text in _KINDS.items() if type(data) is one), "a value")
    for one in _options(kind):
        if get_origin(one) is Literal:
            shown = f"{data!r:.40}" if isinstance(data, str) else found
            return f"found {shown}, expected {_list_words(get_args(one))}"
    plain = [_KINDS.get(get_origin(one) or one) for one in _options(kind)]
    if None not in plain and type(data) not in _options(kind):
        return f"found {found}, expected {' or '.join(map(str, plain))}"
    if all(_is_struct(one) for one in _options(kind)):
        return f"found {found}, expected a table"
    sentence = problem.partition(" - at `$")[0].replace("`", "")
    for one, text in _KINDS.items():
        sentence = re.sub(rf"\b{one.__name__}\b", text, sentence)
    return sentence[0].lower() + sentence[1:]
