"""Threads that run beside a block of a test, and end with it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress


@contextmanager
def beside(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Run `work` in a thread. Its argument is set at the end of the block, which waits for the thread."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(ended,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def accepting(converse: Callable[[socket.socket], object]) -> Iterator[int]:
    """A TCP listener on loopback, whose port this yields. Each connection has a thread that runs `converse` and closes
    it; an OSError of that is the end of the connection.
    """
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one(connection: socket.socket) -> None:
        with suppress(OSError), closing(connection):
            converse(connection)

    def accept(_: threading.Event) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve_one, args=(listener.accept()[0],), daemon=True).start()

    with beside(accept):
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
