"""Two revisions in turn: what is slower, what is the same, what can't be compared."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest
from tests.studies.fake_revisions import git, make_checkout, package

from tidings.model import EnvironmentProblem
from tidings.studies.compare import comparing
from tidings.studies.compare.comparing import Comparison, Disagreement, compare_revisions
from tidings.studies.result_tables import compare_lines, compare_table

SOURCE = Path(comparing.__file__).resolve().parents[3]
MEASURES = [
    "build", "batch, pairs", "batch, lists", "one dict, p50", "one dict, p99", "one JSON, p50",
    "index",
]  # fmt: skip


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made; nothing may be left there."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(comparing, "LEAST_SECONDS", 0.01)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(
        tmp_path / "checkout",
        quick=package(),
        slow=package(pause=0.03, size=50),
        wrong=package(found=3),
        broken="import tidings_of_old",
        stuck=package().replace("self.count = len(pairs)", "raise ValueError('too many')"),
        early="",
        silent="import os; os._exit(3)",
    )


def compare(first: str, second: str, folder: Path, builds: int = 1) -> Comparison:
    return compare_revisions(
        first, second, folder=folder, filters=20, events=4, rounds=5, builds=builds, threshold=0.5
    )


def words(report: Comparison) -> dict[str, str]:
    return {one.measure.name: one.word for one in report.verdicts}


def test_slower_and_faster(checkout: Path, scratch: Path) -> None:
    report = compare("quick", "slow", checkout, builds=5)
    assert list(words(report)) == MEASURES
    told = words(report)
    # Medians of several events; a busy machine can blur the others, but not turn them round.
    assert told["one dict, p50"] == told["one JSON, p50"] == "regression"
    assert "improvement" not in told.values()
    assert told["index"] == "noise"  # a quarter more, and the threshold is a half
    assert report.verdicts[-1].ratio == pytest.approx(1.25)
    assert (report.first.name, report.second.name, report.matches) == ("quick", "slow", 8)
    assert all(one.rounds == 5 for one in report.verdicts)
    assert msgspec.json.decode(msgspec.json.encode(report), type=Comparison) == report
    assert compare_table(report).row_count == len(MEASURES)
    assert "regressions, no improvement; " in compare_lines(report)[-1]
    assert list(scratch.iterdir()) == []


def test_the_working_tree_is_measured_as_it_is(checkout: Path) -> None:
    (checkout / "src" / "tidings" / "__init__.py").write_text(package())
    assert words(compare("slow", ".", checkout))["one dict, p50"] == "improvement"


def test_the_same_twice_is_not_judged_different(checkout: Path) -> None:
    told = words(compare("quick", "quick", checkout))
    assert told["index"] == "noise"
    # Whatever else the machine does, not everything can look slower.
    assert list(told.values()).count("noise") > len(told) // 2


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ("broken", r"broken \(\w+\): can't import tidings: ModuleNotFoundError: .*tidings_of_old"),
        ("early", r"early \(\w+\): can't import tidings: ImportError: this revision of tidings"),
        ("stuck", r"stuck \(\w+\): can't measure build: ValueError: too many"),
        ("silent", r"silent \(\w+\) can't be measured: .*it printed nothing"),
        ("gone", "there is no revision 'gone'"),
    ],
)
def test_what_can_not_be_measured(checkout: Path, scratch: Path, other: str, problem: str) -> None:
    with pytest.raises(EnvironmentProblem, match=problem) as caught:
        compare("quick", other, checkout)
    assert "\n" not in str(caught.value)
    assert list(scratch.iterdir()) == []


def test_other_matches_are_refused(checkout: Path, scratch: Path) -> None:
    with pytest.raises(Disagreement, match="different matches with match_pairs: 8 and 12"):
        compare("quick", "wrong", checkout)
    assert list(scratch.iterdir()) == []


def test_equally_many_other_matches_are_refused(checkout: Path) -> None:
    text = package().replace("[:2]", "[1:3]")
    (checkout / "src" / "tidings" / "__init__.py").write_text(text)
    with pytest.raises(Disagreement, match="the numbers of matches are equal"):
        compare("quick", ".", checkout)


LATE = """

def _late(self: Matcher, event: Any, quick: Any = Matcher.match) -> Any:
    import time

    time.sleep(0.001)
    return quick(self, event)


Matcher.match = _late
"""


@pytest.mark.slow
def test_tidings_itself_with_a_pause_in_it(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    shutil.rmtree(checkout / "src")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, checkout / "src", ignore=ignored)
    git(checkout, "add", "src")
    git(checkout, "commit", "--message", "as it is")
    with (checkout / "src" / "tidings" / "matching" / "matcher.py").open("a") as file:
        file.write(LATE)
    report = compare_revisions(
        "HEAD", ".", folder=checkout, filters=1500, events=1000, rounds=5, builds=1, threshold=0.5
    )
    assert words(report)["one dict, p50"] == words(report)["one JSON, p50"] == "regression"
    assert words(report)["build"] == "too few"
    assert words(report)["index"] == "noise"
