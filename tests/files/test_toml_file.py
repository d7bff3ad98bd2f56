"""Files of settings: every problem is reported, with the line of its key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from tidings.broker.config import ConfigError, load_config
from tidings.files import find_lines, find_problems, read_toml
from tidings.model import TidingsError

TEXT = '''
name = "x"   # [not.a.table]
text = """
[fake]
key = 1
"""
list = [
  "a = 1",
  [1, 2],
]
user.city = "b"

[columns]
"`geo.zone`" = "string"
'zip code' = "integer"
inline = {a = "x", b = 2}

[columns.user]
age = "int"

[[sinks]]
kind = "console"

[[sinks]]
kind = "kafka"
[sinks.options]
deep = 1
'''


def test_the_lines_of_keys() -> None:
    tomllib.loads(TEXT)
    lines = find_lines(TEXT)
    rows = TEXT.split("\n")
    expected = {
        ("name",): 'name = "x"', ("text",): 'text = """', ("list",): "list = [",
        ("user", "city"): "user.city", ("columns",): "[columns]",
        ("columns", "`geo.zone`"): '"`geo.zone`"', ("columns", "zip code"): "'zip code'",
        ("columns", "inline"): "inline", ("columns", "user", "age"): "age",
        ("sinks", "0", "kind"): 'kind = "console"', ("sinks", "1", "kind"): 'kind = "kafka"',
        ("sinks", "1", "options", "deep"): "deep",
    }  # fmt: skip
    for place, start in expected.items():
        assert rows[lines[place] - 1].startswith(start), place
    assert ("fake",) not in lines
    assert ("key",) not in lines


class _One(msgspec.Struct, tag_field="kind", tag="one"):
    size: int = 1


class _Two(msgspec.Struct, tag_field="kind", tag="two"):
    path: str


class _Settings(msgspec.Struct):
    name: str
    source: _One | _Two | None = None
    mode: Literal["fast", "safe"] = "safe"
    more: list[_One | _Two] = []
    tokens: dict[str, str] = {}
    hidden: int = 0


def _messages(folder: Path, text: str) -> list[str]:
    path = folder / "a.toml"
    path.write_text(text)
    file = read_toml(path, TidingsError)
    problems = list(find_problems(file.data, _Settings, hidden=("hidden",)))
    assert bool(problems) == (not _converts(file.data))
    return [line.strip() for line in file.describe(problems).replace(f"{path}, ", "").split("\n")]


def _converts(data: object) -> bool:
    try:
        msgspec.convert(data, _Settings, strict=True)
    except msgspec.ValidationError:
        return False
    return not (isinstance(data, dict) and data.keys() - {"name", "source", "mode", "more",
                                                          "tokens"})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("nam = 'x'", ["name: the setting is missing; add it",
                       "line 1: nam: there is no such setting; did you mean name?"]),
        ("name = 1", ["line 1: name: found an integer, expected a string"]),
        ("name = 'x'\nhidden = 1",
         ["line 2: hidden: there is no such setting; expected name, source, mode, more or tokens"]),
        ("name = 'x'\nmode = 'slow'",
         ["line 2: mode: found 'slow', expected \"fast\" or \"safe\""]),
        ("name = 'x'\n[source]\nkind = 'tow'",
         ["line 3: source.kind: found 'tow', expected \"one\" or \"two\""]),
        ("name = 'x'\n[source]\nkind = 'two'",
         ["line 2: source.path: the setting is missing; add it"]),
        ("name = 'x'\nsource = 5", ["line 2: source: found an integer, expected a table"]),
        ("name = 'x'\n[[more]]\nkind = 'one'\n[[more]]\nkind = 'one'\nsize = 'x'",
         ["line 6: more[1].size: found a string, expected an integer"]),
        ("name = 'x'\n[tokens]\nsecret = 5",
         ["line 3: tokens: found an integer, expected a string"]),
    ],
)  # fmt: skip
def test_problems(tmp_path: Path, text: str, messages: list[str]) -> None:
    found = _messages(tmp_path, text)
    assert found[-len(messages) :] == messages
    assert len(messages) == 1 or found[0] == f"{tmp_path}/a.toml has {len(messages)} problems:"


def test_a_router_file_with_many_problems(tmp_path: Path) -> None:
    path = tmp_path / "root.toml"
    path.write_text(
        'name = "root"\nlisten = "127.0.0.1:7400"\njournal = "j"\npolice = "drop"\n'
        'extra = "all"\n[columns]\nprice = "dubble"\ntags = "list<"\n[times]\nbeat = "x"\n'
    )
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    lines = str(refused.value).split("\n")
    assert lines[0] == f"{path} has 5 problems:"
    assert lines[1] == "  line 4: police: there is no such setting; did you mean policy?"
    assert lines[2] == (
        '  line 5: extra: found \'all\', expected "open", "keep", "drop" or "refuse"'
    )
    assert lines[3].startswith("  line 7: columns: 'price' has the type 'dubble': found 'dubble'")
    assert lines[4].startswith("  line 8: columns: 'tags' has the type 'list<': found the end")
    assert lines[5] == "  line 10: times.beat: found a string, expected a number"


def test_the_words_of_types() -> None:
    """Messages have the words of files, not the names of Python's types."""

    def messages(data: object, kind: object) -> list[str]:
        return [one.sentence for one in find_problems(data, kind, ("names",))]

    assert messages(["a", 3], tuple[str, ...]) == ["names[1]: found an integer, expected a string"]
    at_least_one = Annotated[int, msgspec.Meta(ge=1)]
    assert messages(0, at_least_one) == ["names: expected an integer >= 1"]
