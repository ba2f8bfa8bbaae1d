"""A lab's etcd loses its data, and gets back the copy set aside. Stops and starts but etcd and the API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.kubelab.lab import Lab
from tests.kubelab.machine import IN

_DATA: Final = f"{IN}/var/etcd"  # as control_plane.py has it
_BACKUP: Final = f"{IN}/var/etcd.backup"
_COPY: Final = """\
pid=$(cat {pids}/etcd)
kill -STOP $pid
until [ "$(cut -d' ' -f3 /proc/$pid/stat)" = T ]; do sleep 0.01; done
rm -rf {backup} && cp -a {data} {backup}
kill -CONT $pid
"""


def back_up(lab: Lab) -> None:
    """Set aside etcd's data. It is paused meanwhile, so that this is the state after a power cut."""
    lab.control.run("sh", "-euc", _COPY.format(pids=f"{IN}/pids", data=_DATA, backup=_BACKUP))


@contextmanager
def wiped(lab: Lab) -> Iterator[None]:
    """The API server runs on an etcd that is empty; in the end on what `back_up` has set aside, which is used up."""
    with _exchanged(lab):
        lab.control.run("rm", "-rf", _DATA)
    try:
        yield
    finally:
        with _exchanged(lab):
            lab.control.run("rm", "-rf", _DATA)
            lab.control.run("mv", _BACKUP, _DATA)


@contextmanager
def _exchanged(lab: Lab) -> Iterator[None]:
    """While neither runs; returns at once when both have been started."""
    for service in ("kube-apiserver", "etcd"):
        lab.control.stop(service, "KILL")
    yield
    lab.control.start("etcd", "kube-apiserver")
