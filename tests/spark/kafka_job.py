"""What test_kafka_broker.py runs in a process of its own: jars must be there when a session starts.

    python kafka_job.py PORT SERVERS

Starts a session with `kafka_settings`, as users do, and listens on PORT. It is told the names of
the functions below with their arguments, and answers with what they return.
"""

from __future__ import annotations

import sys
import time
from multiprocessing.connection import Connection, Listener
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tidings.cli.app import make_app
from tidings.spark import kafka_settings, local_session

Row = tuple[int, str | None]  # a partition, a value


class Job:
    def __init__(self, spark: SparkSession, servers: str) -> None:
        self.spark, self.servers = spark, {"kafka.bootstrap.servers": servers}

    def tidings(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command with this SparkSession; return its exit code, stdout and stderr."""
        done = CliRunner().invoke(make_app(), arguments, prog_name="tidings")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    def create(self, *topics: str) -> None:
        """Create topics of two partitions, and wait until the broker accepts rows for them.

        The broker names a new partition's leader to producers before it is ready to lead it. If
        then the first request of an idempotent producer is refused, and its second is accepted, the
        rows of the first count as out of order for good, and time out (KAFKA-15591). On a busy
        machine, this happened to topics that the first rows created."""
        admin, client = self._java.org.apache.kafka.clients.admin, self._admin()
        client.createTopics([admin.NewTopic(topic, 2, 1) for topic in topics]).all().get()
        partition = self._java.org.apache.kafka.common.TopicPartition
        latest = {
            partition(topic, n): admin.OffsetSpec.latest() for topic in topics for n in (0, 1)
        }
        deadline = time.monotonic() + 60
        while not self._has_leaders(client, latest):
            assert time.monotonic() < deadline, f"no leader of {topics} after 60 s"
            time.sleep(0.1)
        client.close()

    def _has_leaders(self, client: Any, latest: dict[Any, Any]) -> bool:
        """Whether each partition has a leader that answers. The client repeats requests, but not
        if the broker that it asks has not heard of the new topic yet."""
        try:
            client.listOffsets(latest).all().get()
        except Py4JJavaError as problem:
            if "UnknownTopicOrPartitionException" in str(problem):
                return False
            raise
        return True

    def put(self, topic: str, *rows: Row) -> None:
        """Write rows; when this returns, the broker has them."""
        table: Any = self.spark.createDataFrame(list(rows), "partition int, value string")
        # An idempotent producer that must repeat its first rows to a busy or restarted broker may
        # begin to count again. Then the broker refuses the rows as out of order until the time-out.
        safe = {"kafka.enable.idempotence": "false", **self.servers}
        table.coalesce(1).write.format("kafka").options(**safe, topic=topic).save()

    def read(self, topic: str) -> list[tuple[int, int, str | None, str | None]]:
        """All rows that a topic has now: partition, offset, key and value."""
        found = self.spark.read.format("kafka").options(**self.servers, subscribe=topic).load()
        columns = ["partition", "offset", "CAST(key AS STRING)", "CAST(value AS STRING)"]
        return sorted(tuple(row) for row in found.selectExpr(*columns).collect())

    def trim(self, topic: str, partition: int, offset: int) -> None:
        """Let the broker forget the rows before an offset, as it does when they are too old."""
        java, new = self._java, cast("Any", self.spark)._sc._gateway.new_array
        client = self._admin()
        at = java.org.apache.kafka.common.TopicPartition(topic, partition)
        # two methods are named beforeOffset, and py4j would call the other one
        kinds, values = new(java.java.lang.Class, 1), new(java.java.lang.Object, 1)
        kinds[0], values[0] = java.java.lang.Long.TYPE, offset
        loader = at.getClass().getClassLoader()
        asked = loader.loadClass("org.apache.kafka.clients.admin.RecordsToDelete")
        upto = asked.getMethod("beforeOffset", kinds).invoke(None, values)
        client.deleteRecords({at: upto}).all().get()
        client.close()

    @property
    def _java(self) -> Any:
        return cast("Any", self.spark)._jvm

    def _admin(self) -> Any:
        return self._java.org.apache.kafka.clients.admin.AdminClient.create(
            {"bootstrap.servers": self.servers["kafka.bootstrap.servers"]}
        )


def serve(job: Job, link: Connection[Any, Any]) -> None:
    while True:
        name, arguments = link.recv()
        try:
            link.send((None, getattr(job, name)(*arguments)))
        except Exception as problem:
            link.send((f"{type(problem).__name__}: {problem}", None))


if __name__ == "__main__":
    session = local_session("kafka", cores=2, **kafka_settings())
    with Listener(("127.0.0.1", int(sys.argv[1]))) as listener, listener.accept() as connection:
        try:
            serve(Job(session, sys.argv[2]), connection)
        except EOFError:  # the test is over
            session.stop()
