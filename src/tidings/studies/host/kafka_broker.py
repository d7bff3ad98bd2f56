"""A Kafka broker of one node (KRaft), from its jars on Maven Central, and a producer of lines."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from tidings.files import filling_folder
from tidings.model import EnvironmentProblem
from tidings.spark import java_home
from tidings.spark.session import jars_folder
from tidings.studies.host.ports import free_ports, is_listening

VERSION = "4.3.1"
_PATIENCE = 120.0  # seconds
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidings</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{version}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>2.25.4</version>
    </dependency>
  </dependencies>
</project>
"""
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
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=6000
"""
# A broker that is restarted must wait until the session of the killed broker has ended. But a
# broker that is stalled for longer than a session, because it waits for a processor or for the
# disk, counts as dead; its partitions then have no leader, and accept no rows. With sessions of one
# second, brokers counted as dead repeatedly on busy machines. The default is nine seconds.
_DELIVERY = 600_000  # milliseconds for which a producer tries to send a row
_LOGGING = """\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%p %m%n
rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
"""


def broker_jars() -> Path:
    """A folder with the jars of a broker and all their dependencies; raise EnvironmentProblem if
    they can't be fetched."""
    folder = jars_folder() / f"kafka-broker-and-tools-{VERSION}"
    if folder.is_dir():
        return folder
    if shutil.which("mvn") is None:
        raise EnvironmentProblem("a broker needs Maven (mvn), which fetches its jars")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filling_folder(folder) as jars:
        pom = jars.parent / "pom.xml"
        pom.write_text(_POM.format(version=VERSION))
        command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 0:
            raise EnvironmentProblem(f"Maven could not fetch a broker: {done.stdout[:500]}")
    return folder


class Broker:
    """A broker that keeps its ports and its data when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port, controller = free_ports(2)
        self.port, self.address = port, f"127.0.0.1:{port}"
        settings, logging = folder / "server.properties", folder / "log4j2.properties"
        settings.write_text(_SETTINGS.format(broker=port, controller=controller, folder=folder))
        logging.write_text(_LOGGING)
        self.java = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
        self.java += ["-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={logging}"]
        self.java += ["-cp", f"{broker_jars()}/*"]
        self._settings = str(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._run("kafka.tools.StorageTool", "format", "-t", _short(uuid4().bytes), "-c")

    def _run(self, *command: str) -> None:
        line = [*self.java, *command, self._settings]
        done = subprocess.run(line, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        if done.returncode != 0:
            raise EnvironmentProblem(f"the broker can't be prepared: {done.stderr[-2000:]}")

    def start(self) -> None:
        """Start the broker, and wait until it accepts connections."""
        with (self.folder / "broker.log").open("ab") as out:
            self._process = subprocess.Popen(
                [*self.java, "kafka.Kafka", self._settings], stdout=out, stderr=subprocess.STDOUT
            )
        limit = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise EnvironmentProblem(f"the broker did not start: {self.read_log()}")
            time.sleep(0.02)

    def read_log(self) -> str:
        """The end of the broker's log."""
        return (self.folder / "broker.log").read_text()[-2000:]

    def _answers(self) -> bool:
        return is_listening(self.port)

    def kill(self) -> None:
        """Kill the broker with SIGKILL. The operating system keeps the data that the broker wrote
        to files."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None


class Producer:
    """Writes lines to a topic; the first line creates the topic."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._log = broker.folder / "producer.log"
        command = [*broker.java, "org.apache.kafka.tools.ConsoleProducer", "--topic", topic]
        command += ["--bootstrap-server", broker.address, "--request-required-acks", "-1"]
        command += ["--command-property", "linger.ms=5", "--message-send-max-retries", "10000"]
        command += ["--command-property", f"delivery.timeout.ms={_DELIVERY}"]
        # With several requests in flight, the broker may refuse the first, because a new topic is
        # not ready yet, and accept the second. From then on, the rows of the first request always
        # count as out of order (KAFKA-15591).
        command += ["--command-property", "max.in.flight.requests.per.connection=1"]
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT
            )

    def put(self, lines: Iterable[bytes]) -> None:
        """Write lines. The broker receives the lines soon after this returns."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.writelines(line + b"\n" for line in lines)
            self._process.stdin.flush()
        except BrokenPipeError:
            said = self._log.read_text()[-2000:]
            raise EnvironmentProblem(f"the Kafka producer ended: {said}") from None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # unsent lines are no longer needed
                self._process.stdin.close()


def _short(raw: bytes) -> str:
    """An id as Kafka writes it; ids must not begin with a dash."""
    return urlsafe_b64encode(raw).decode().rstrip("=").replace("-", "_")
