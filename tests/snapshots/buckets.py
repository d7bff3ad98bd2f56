"""An S3 server of this machine, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

_NAMES = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def serve_bucket() -> Iterator[str]:
    """The address of a server that has the bucket `box`, and is in the environment."""
    import pyarrow.fs
    from moto.server import ThreadedMotoServer

    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    before = {name: os.environ.get(name) for name in (*_NAMES, "AWS_ENDPOINT_URL")}
    os.environ.update(_NAMES | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"})
    system = pyarrow.fs.S3FileSystem(
        endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=True
    )
    system.create_dir("box")
    yield f"http://{host}:{port}"
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    made.stop()
