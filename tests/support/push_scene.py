"""The whole program with `push` on a fake API server, and clients written from the RFCs over TCP."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.support.answer_checker import Promise, promise
from tests.support.api_objects import Object, service
from tests.support.program_with_fake_api import IN_A, Scene, scene
from tests.support.push_client import PushClient, push_client

CALM_SERVICE: Final = service("calm", cluster_ip="10.96.0.99")
CALM: Final = ("calm.default.svc.cluster.local A", "10.96.0.99")
"""What is asked all the time, and its only right answer."""
PROMISES: Final[tuple[Promise, ...]] = (promise(*CALM),)


def push_scene(directory: Path, *objects: Object, directives: str = "push") -> AbstractContextManager[Scene]:
    return scene(directory, CALM_SERVICE, *objects, promises=PROMISES, directives=directives)


@contextmanager
def client(there: Scene, source: str = IN_A, receive_buffer: int = 0) -> Iterator[PushClient]:
    with push_client((there.server.address, there.server.port), source, receive_buffer) as one:
        yield one
