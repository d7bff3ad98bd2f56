"""The program as a whole: help, version, starting quickly, and ending early without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.command_tree import COMMANDS, GROUPS
from tests.cli.conftest import Run, Write

import tidings

MAIN = "from tidings.cli import main; main()"


def start(*args: str, code: str = MAIN) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"tidings {tidings.__version__}\n"


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "tidings", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"tidings {tidings.__version__}\n"), done.stderr


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_names_every_command_and_nothing_of_completion(run: Run, args: tuple[str]) -> None:
    result = run(*args)
    assert result.code == 0
    assert {"check", "router", "bench"} <= set(GROUPS[""].commands)
    assert all(f"  {command} " in result.out for command in GROUPS[""].commands)
    assert "completion" not in result.out


@pytest.mark.parametrize("group", sorted(set(GROUPS) - {""}))
@pytest.mark.parametrize("args", [(), ("--help",)])
def test_help_of_a_group_names_its_commands(run: Run, group: str, args: tuple[str]) -> None:
    result = run(group, *args)
    assert result.code == 0
    assert all(f"  {command} " in result.out for command in GROUPS[group].commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_the_screen_and_documents_json(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.code == 0
    assert ("With --json" in result.out) == ("  --json" in result.out)
    assert max(map(len, result.out.splitlines())) <= 100


def test_a_wrong_option_ends_with_2(run: Run) -> None:
    result = run("check", "--colour")
    assert result.code == 2
    assert "--colour" in result.err


@pytest.mark.bench
def test_help_starts_quickly() -> None:
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        start("--help").communicate()
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.5


def test_no_heavy_package_is_loaded_before_it_is_needed() -> None:
    heavy = "{'pyarrow', 'pandas', 'numpy', 'numba', 'pyspark'}"
    code = f"import sys, tidings.cli; sys.exit(bool({heavy} & set(sys.modules)))"
    process = start(code=code)
    process.communicate()
    assert process.returncode == 0


def test_a_command_loads_no_other_command() -> None:
    """And the processes of nodes no pandas, which pyarrow would import with its first array."""
    code = (
        "import sys, tidings.cli.app as app\n"
        "sys.argv[1:] = ['router', '--config', 'none.toml']\n"
        "try:\n    app.main()\nexcept SystemExit:\n    pass\n"
        "import pyarrow\n"
        "assert pyarrow.array([1]).to_numpy().tolist() == [1]\n"
        "print(*(name for name in sys.modules if name.endswith('_command') or name == 'pandas'))\n"
    )
    out, err = start(code=code).communicate()
    assert "none.toml" in err
    assert out == "tidings.cli.network.router_command\n"


WITHOUT_PYARROW = f"import sys; sys.modules['pyarrow'] = None; {MAIN}"


def test_check_works_without_pyarrow() -> None:
    process = start("check", "price > 90", code=WITHOUT_PYARROW)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "price > 90" in out


@pytest.mark.parametrize("name", ["events.csv", "events.parquet"])
def test_without_pyarrow_its_files_are_refused_in_one_line(write: Write, name: str) -> None:
    filters, events = write("filters.txt", "a = 1"), write(name, "a\n1\n")
    process = start("match", "--filters", filters, "--events", events, code=WITHOUT_PYARROW)
    _, err = process.communicate()
    assert process.returncode == 2
    assert "pip install pyarrow" in err
    assert len(err.splitlines()) == 1


def test_a_closed_pipe_ends_quietly(write: Write) -> None:
    filters = write("filters.txt", "a >= 0")
    events = write("events.jsonl", '{"a": 1}\n' * 50_000)
    with start("match", "--filters", filters, "--events", events, "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == '{"event":0,"ids":[1]}\n'
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_ctrl_c_ends_with_130(write: Write) -> None:
    filters = write("filters.txt", "a = 1")
    process = start("match", "--filters", filters, "--events", "-", "--json")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"a": 1}\n')
    process.stdin.flush()
    # A line from stdin is answered at once; then the command is surely waiting for the next.
    assert process.stdout.readline() == '{"event":0,"ids":[1]}\n'
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_terminal_without_the_letters_gets_their_numbers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "check", "name = 'Zoë'"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert b"Zo\\xeb" in done.stdout
