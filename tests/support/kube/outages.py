"""Times without the API server, or without any client of it but topodns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.kubelab.lab import Lab
from tests.support.kube.waiting import eventually

_CONTROLLERS: Final = ("kube-controller-manager", "kube-scheduler")
_AGENTS: Final = ("kubelet", "kube-proxy")


@contextmanager
def outage(lab: Lab, *more: str) -> Iterator[None]:
    """Without the API server, and `more` services of the control plane, which stop after it and start before it.

    In the end the rest of Kubernetes is started anew: the controller manager would take every node's lease for expired,
    and the others look for a lost server only once in a while.
    """
    for service in (*_CONTROLLERS, "kube-apiserver", *more):
        lab.control.stop(service, "KILL")
    try:
        yield
    finally:
        lab.control.start(*more, "kube-apiserver")
        wait_for_api_server(lab)
        _stop_agents(lab)
        _start_others(lab)


@contextmanager
def nobody_else_follows(lab: Lab) -> Iterator[None]:
    """All of Kubernetes that would obey an API server that has lost everything is paused: kubelets would end their
    pods, kube-proxy would forget the Services, controllers would make other objects.
    """
    _stop_agents(lab)
    for service in _CONTROLLERS:
        lab.control.stop(service, "KILL")
    try:
        yield
    finally:
        _start_others(lab)


def wait_for_api_server(lab: Lab) -> None:
    eventually(lambda: lab.api.call("GET", "/readyz").ok, "the API server is back")


def _stop_agents(lab: Lab) -> None:
    for machine in lab.node_machines:
        for service in _AGENTS:
            machine.stop(service)


def _start_others(lab: Lab) -> None:
    lab.control.start(*_CONTROLLERS)
    for machine in lab.node_machines:
        machine.start(*_AGENTS)
    eventually(lab.all_ready, "all nodes are Ready")
