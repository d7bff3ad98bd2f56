"""A Kafka broker of one node, from its jars on Maven Central, for as long as a test needs it."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.ports import free_ports

from tidings.model import EnvironmentProblem
from tidings.spark.session.java import java_home
from tidings.spark.session.maven import cache_folder, fetch_jars

VERSION = "3.9.1"
# The broker writes its log with reload4j, which it does not bring.
COORDINATES = [f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-reload4j:1.7.36"]
STARTING = 60.0  # seconds

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
_LOGGING = """\
log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


def broker_jars() -> list[Path]:
    """EnvironmentProblem: they cannot be had."""
    return fetch_jars(COORDINATES, cache_folder() / f"kafka-{VERSION}")


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker that keeps its data in `folder`; gives the address for bootstrap.servers."""
    jars = ":".join(map(str, broker_jars()))
    port, controller = free_ports(2)
    settings, logging = folder / "server.properties", folder / "log4j.properties"
    settings.write_text(_SETTINGS.format(broker=port, controller=controller, folder=folder))
    logging.write_text(_LOGGING)
    java = [
        str(java_home() / "bin" / "java"),
        "-Xmx256m",
        f"-Dlog4j.configuration={logging.as_uri()}",
    ]
    cluster = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "_")
    _run(
        [
            *java,
            "-cp",
            jars,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            cluster,
            "-c",
            str(settings),
        ]
    )
    with (folder / "broker.log").open("wb") as log:
        command = [*java, "-cp", jars, "kafka.Kafka", str(settings)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(process, port, folder / "broker.log")
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _run(command: list[str]) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, timeout=STARTING, check=False)
    if answer.returncode != 0:
        raise EnvironmentProblem(f"Kafka's storage cannot be made: {answer.stderr[-500:]}")


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise EnvironmentProblem(f"The Kafka broker did not start: {log.read_text()[-500:]}")
