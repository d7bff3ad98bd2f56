"""Files of the semantic store: the examples, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.model import AttributesError, EnvironmentProblem, TidingsError
from tidings.relations import EXAMPLES, load_dictionary, load_relations


def test_the_examples_load() -> None:
    store = load_relations()
    assert len(store.places) > 150
    assert len(store.calendar) == 18
    assert len(store.tags) > 40
    assert len(store.people) == 8
    assert store.people.kinds() == {"family", "friend", "classmate", "colleague"}
    leaves = [store.places.find(name) for name in store.places.tree
              if not store.places.tree.descendants(name, 1)]  # fmt: skip
    cities = [one for one in leaves if one is not None and one.located]
    assert len(cities) > 100


def test_a_folder_may_have_some_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("name,lat,lon\nHere,1,2\n")
    assert len(load_relations(tmp_path, language=None).places) == 1


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"found none of the files places\.csv"):
        load_relations(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("places.csv", "title\nHere\n", r"line 1: found the columns title, expected name and some"),
        ("places.csv", "name,inside\nHere,There\n", r"line 2: Here: found the parent 'There'"),
        ("places.csv", "name,lat,lon\nHere,95,2\n", r"line 2: Here: found the latitude 95"),
        ("places.csv", "name,lat,lon\nHere,1,\n", r"line 2: Here: found one coordinate"),
        ("places.csv", "name,lat,lon\nHere,x,2\n", r"line 2: found the lat 'x', expected a number"),
        ("places.csv", "name,lat\nHere\n", r"line 2: found 1 fields, expected 2"),
        ("places.csv", "name\n\nHere\nhere\n", r"line 4: here: found the name 'here' twice"),
        ("places.csv", "name,inside\nA,\nB,\nC,A|B\n", r"line 4: found 2 places that contain C"),
        ("calendar.toml", '[[holiday]]\nname = "X"\n', r"X: found no rule, expected one of"),
        ("calendar.toml", '[[holiday]]\nname = "X"\ndate = "13-01"\n', r"found the date '13-01'"),
        ("calendar.toml", '[[holiday]]\nname = "X"\ndate = "02-29"\n', r"of every year"),
        ("calendar.toml", '[[holiday]]\nname = "X"\nweekday = "monday"\n', r"such as 'thursday 4'"),
        ("calendar.toml", '[[holiday]]\nnam = "X"\n', r"line 2: .*did you mean name\?"),
        ("tags.toml", '[words]\nrose = ["flower"]\n', r"rose: found the parent 'flower'"),
        ("tags.toml", "words = 3\n", r"line 1: words: found"),
        ("people.toml", '[people]\nA = {}\n[[link]]\nkind = "foe"\nbetween = ["A", "A"]\n',
         r"line 4: .*found 'foe', expected"),
        ("people.toml", '[people]\nA = {}\n[[link]]\nkind = "friend"\nbetween = ["A", "B"]\n',
         r"found 'B' in a link, expected a known person"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_one_sentence(
    tmp_path: Path, file: str, text: str, message: str
) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(TidingsError, match=message) as caught:
        load_relations(tmp_path, language=None)
    assert str(tmp_path / file) in str(caught.value)


def test_a_dictionary_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "airports.csv"
    file.write_text("name,inside,lat,lon,altitude,also\nO'Hare,Chicago,41.979,-87.904,204,ORD\n")
    dictionary = load_dictionary("place", file)
    store = load_relations(EXAMPLES, language=None)
    found = store.grow("place", "ord", dictionary)
    assert found is not None
    assert [place.name for place in store.ancestors(found, 2)] == ["Chicago", "Illinois"]
    assert dictionary("tag", "ord") is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"can't be read: No such file"):
        load_dictionary("place", tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"name\n\xff\n")
    with pytest.raises(AttributesError, match=r"found bytes that are not UTF-8"):
        load_dictionary("place", tmp_path / "bytes.csv")
