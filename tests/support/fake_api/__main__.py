"""`python -m tests.support.fake_api`: the fake API server as a program, until it is interrupted.

Its faults are at hand as `POST /control/NAME` with the arguments as a JSON object, NAME being a method of FakeApi.
"""

import argparse
import asyncio
import gc
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.support.fake_api.listener import HttpFront
from tests.support.fake_api.object_file import objects_of
from tests.support.fake_api.server import FakeApi
from tests.support.synthetic_clusters import Cluster


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.fake_api", description="A stand-in for an API server."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one; it is printed")
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument("--cluster", type=Path, help="what kubectl get -o yaml (or json) printed")
    cluster.add_argument("--generate", metavar="NODES,SERVICES,ENDPOINTS,PODS", help="a synthetic cluster of this size")
    options = parser.parse_args(arguments)
    front = partial(HttpFront, host=options.host, port=options.port)
    api = FakeApi(objects_of(options.cluster) if options.cluster else (), front)
    if options.generate:
        nodes, services, endpoints, pods = map(int, options.generate.split(","))
        api.generate(Cluster(nodes, services, endpoints, pods))
    gc.freeze()  # no request is to wait for the collector
    asyncio.run(_serve(api))


async def _serve(api: FakeApi) -> None:
    async with api:
        print(api.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    main()
