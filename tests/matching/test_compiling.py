"""Where compiled kernels are kept: never together with those of other sources."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tidings.matching
from tidings.matching.jit import kernel_compiler

DAY = 24 * 3600
SORTS = {"sort", "argsort", "sorted", "unique", "median", "percentile", "quantile"}


def test_other_sources_have_another_folder(tmp_path: Path) -> None:
    names: set[str] = set()
    for files in (
        {"a.py": "x = 1\n", "b.py": "y = 1\n"},
        {"a.py": "x = 2\n", "b.py": "y = 1\n"},
        {"a.py": "x = 1\n", "c.py": "y = 1\n"},
        {"a.py": "x = 1\ny = 1\n", "b.py": ""},
        {"a.py": "x = 1\n", "below/b.py": "y = 1\n"},
        {"a.py": "x = 1\n", "below/b.py": "y = 2\n"},
    ):
        folder = tmp_path / str(len(names))
        (folder / "below").mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        names.add(kernel_compiler.sources_digest(folder))
        (folder / "notes.txt").write_text("no source")
        names.add(kernel_compiler.sources_digest(folder))
    assert len(names) == 6


def test_a_kernel_is_kept_where_its_folder_says() -> None:
    """Else the kernels that are sent to executors would be none."""
    from tidings.matching.segments.join_kernels import join_all
    from tidings.matching.tallies.tag_kernels import sort_lists

    folders = kernel_compiler.kernel_folders()
    assert Path(join_all._cache.cache_path) == folders["segments"]
    assert Path(sort_lists._cache.cache_path) == folders["tallies"]


SUM = """
from tidings.matching.jit import short_kernel

@short_kernel
def add(left, right):
    return left + right{more}
"""


def test_copies_of_the_same_sources_share_their_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of another clone is not compiled again; one of other sources is, even if only the
    constants in another file of its folder differ."""
    monkeypatch.setenv("TIDINGS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kernel_compiler.cache_folder()))
    found = []
    for clone, more, constant in (
        ("one", "", 1), ("two", "", 1), ("other", " + 1", 1), ("three", "", 1), ("four", "", 2),
    ):  # fmt: skip
        file = tmp_path / clone / "room" / "sum_kernels.py"
        file.parent.mkdir(parents=True)
        file.write_text(SUM.format(more=more))
        (file.parent / "constants.py").write_text(f"ONE = {constant}\n")
        names = runpy.run_path(str(file))
        found.append((names["add"](1, 2), sum(names["add"].stats.cache_hits.values())))
    assert found == [(3, 0), (3, 1), (4, 0), (3, 1), (3, 0)]


def test_if_the_user_has_chosen_a_folder_numba_names_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing there has the digest of the sources, so copies do not share."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert (
        kernel_compiler._Locator.from_function(test_one_kernel_at_most_sorts_with_numba, __file__)
        is None
    )


def test_processes_that_compile_at_the_same_time_keep_their_code_apart(tmp_path: Path) -> None:
    """What one puts into the cache while another does is found under its own types."""
    from numba import types
    from numba.core.caching import IndexDataCacheFile

    from tidings.matching.tallies.tag_kernels import sort_lists

    name = sort_lists._cache._cache_file._data_name
    made: Any = IndexDataCacheFile
    one, other = (made(str(tmp_path), "kernel", "stamp") for _ in range(2))
    one._data_name = other._data_name = name
    empty = one._load_index()
    one.save(types.int32, "for 32 bits")
    with pytest.MonkeyPatch.context() as patch:  # the other looked before that
        patch.setattr(other, "_load_index", lambda: empty)
        other.save(types.int64, "for 64 bits")
    assert one.load(types.int64) == "for 64 bits"
    assert one.load(types.int32) in {"for 32 bits", None}


def test_the_digest_is_that_of_every_kernel() -> None:
    """A kernel of one folder of the room calls those of others."""
    assert kernel_compiler.cache_folder().name == kernel_compiler.sources_digest(
        Path(tidings.matching.__file__).parent
    )


@pytest.mark.bench
def test_the_digest_is_made_quickly() -> None:
    folder = Path(tidings.matching.__file__).parent
    best = 1.0
    for _ in range(20):
        start = time.process_time()
        kernel_compiler.sources_digest(folder)
        best = min(best, time.process_time() - start)
    assert best < 0.02


def test_a_new_folder_takes_the_place_of_old_ones(tmp_path: Path) -> None:
    ages = {"0123456789ab": 31, "123456789abc": 29, "mine": 99, "0123456789abcd": 99}
    for name, days in ages.items():
        (tmp_path / name / "matching_1").mkdir(parents=True)
        (tmp_path / name / "matching_1" / "kernels.nbc").write_bytes(b"compiled")
        then = time.time() - days * DAY
        os.utime(tmp_path / name, (then, then))
    new = tmp_path / "abcdef012345"
    kernel_compiler.open_cache(new)
    left = {folder.name for folder in tmp_path.iterdir()}
    assert left == {*ages, new.name} - {"0123456789ab"}


def test_a_folder_in_use_stays(tmp_path: Path) -> None:
    used = tmp_path / "0123456789ab"
    used.mkdir()
    os.utime(used, (0, 0))
    kernel_compiler.open_cache(used)
    kernel_compiler.open_cache(tmp_path / "abcdef012345")
    assert used.exists()


def test_where_nothing_can_be_written_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    kernel_compiler.open_cache(tmp_path / "file" / "kernels" / "0123456789ab")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, "{ours}"),
        ("{cache}/kernels/0123456789ab", "{ours}"),  # by a process that runs other sources
        ("{cache}/elsewhere", "{cache}/elsewhere"),
    ],
)
def test_what_numba_is_told(told: str | None, expected: str, tmp_path: Path) -> None:
    names = {"cache": tmp_path, "ours": tmp_path / "kernels" / kernel_compiler.cache_folder().name}
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment["TIDINGS_CACHE_DIR"] = str(tmp_path)
    if told is not None:
        environment["NUMBA_CACHE_DIR"] = told.format(**names)
    code = "import tidings.matching.jit.kernel_compiler, numba; print(numba.config.CACHE_DIR)"
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == expected.format(**names)


def test_one_kernel_at_most_sorts_with_numba() -> None:
    """See `sort_lists` in tag_kernels.py; a kernel that calls it may be anywhere in the package."""
    found = [
        f"{file.name}: {one.name}"
        for file in sorted(Path(tidings.__file__).parent.rglob("*.py"))
        for one in ast.walk(ast.parse(file.read_text()))
        if isinstance(one, ast.FunctionDef)
        and any("kernel" in ast.unparse(mark) for mark in one.decorator_list)
        and SORTS & {_called(call) for call in ast.walk(one) if isinstance(call, ast.Call)}
    ]
    assert found == ["tag_kernels.py: sort_lists"]


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]
