"""One compilation of a channel's nodes: the plan, the process that compiles, and the result.

    begin ──> plan, written to a file ──> process ──> folder, opened ──> adopted
    if nodes change meanwhile, the changes since `begin` are applied on top of the new folder

`run` blocks, and is called in a thread. `run` returns None if the process fails; then the current
nodes stay in use.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidings.channel.interests.compile_nodes import CompileTask, compile_nodes
from tidings.channel.interests.compiled import Compiled, open_compiled
from tidings.channel.interests.graph.node_graph import NodeGraph
from tidings.files import write_file
from tidings.model import TidingsError

_log = logging.getLogger(__name__)


class Compilation:
    """A plan that is being carried out."""

    def __init__(
        self, plan: CompileTask, cut: int = 0, generations: int = 0,
        measure: Callable[[], bytes] | None = None,
    ) -> None:  # fmt: skip
        """`cut` and `generations` are for `Nodes.adopt`. `measure` returns the counts of tests for
        the plan; it takes too long for the event loop."""
        self.plan = plan
        self.cut = cut
        self.generations = generations
        self.graph: NodeGraph | None = None
        """The graph of the result. Creating the graph takes tens of milliseconds, which is too long
        for the event loop."""
        self._measure = measure
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def run(self) -> Compiled | None:
        """Compile, and open the result."""
        folder = Path(self.plan.folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            home = Path(tempfile.mkdtemp(prefix=f".{folder.name}.plan.", dir=folder.parent))
            try:
                write_file(home / "plan", msgspec.msgpack.encode(self._full_plan()))
                self._compile(home / "plan")
            finally:
                shutil.rmtree(home, ignore_errors=True)
            if self._is_stopped:
                return None
            found = open_compiled(folder, self.plan.setting)
            found.matcher.prepare()
            self.graph = NodeGraph(found.graph)
        except (OSError, TidingsError) as problem:
            if not self._is_stopped:
                _log.error("the filters could not be compiled to '%s': %s", folder, problem)
            return None
        return found

    def run_here(self) -> Compiled:
        """Compile in this process, and open the result. Nothing else in the process runs
        meanwhile."""
        compile_nodes(self._full_plan())
        return open_compiled(Path(self.plan.folder), self.plan.setting)

    def _full_plan(self) -> CompileTask:
        """The plan with the counts of tests as they are now."""
        if self._measure is None:
            return self.plan
        return msgspec.structs.replace(self.plan, measured=self._measure())

    def _compile(self, plan: Path) -> None:
        command = [sys.executable, "-m", "tidings.channel.interests.compile_nodes", str(plan)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            self._process = process
            if self._is_stopped:
                process.kill()
            _, told = process.communicate()
        if process.returncode and not self._is_stopped:
            last = told.decode(errors="replace").strip().rpartition("\n")[2]
            raise TidingsError(f"the process exited with code {process.returncode}: {last:.300}")

    def stop(self) -> None:
        """End the process if it is running; `run` then returns None."""
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()
