"""Bare Pods, behind no Service, whose first act is to look a name up, as an application does when it starts."""

from collections.abc import Collection
from typing import Final

from tests.support.kube.cluster import Place
from tests.support.kube.objects import PYTHON_IMAGE, pod
from tests.support.kube.waiting import eventually

_LOOK_UP: Final = """
import socket, sys
for name in sys.argv[1:]:
    try:
        found = {each[4][0] for each in socket.getaddrinfo(name, 80, socket.AF_INET)}
    except OSError as problem:
        found = {str(problem)}
    print(name, *sorted(found), flush=True)
"""
_OVER: Final = ("Succeeded", "Failed")


def logged_at_start(place: Place, node: str, names: Collection[str]) -> dict[str, set[str]]:
    """By name of a Service or a view, the first answer to a Pod that has just started on this node, without a second
    query.
    """
    command = ["python3", "-c", _LOOK_UP, *(f"{place.fqdn(each)}." for each in names)]
    name = f"first-{node}"
    container = {"name": "main", "image": PYTHON_IMAGE, "command": command}
    place.create(pod(name, name, container, node, restartPolicy="Never"))

    def over() -> bool:
        found = place.read("Pod", name)
        return found is not None and found["status"]["phase"] in _OVER

    eventually(over, f"Pod {name} has asked")
    lines = [line.split(" ") for line in place.cluster.logs(place.name, name).splitlines()]
    place.delete("Pod", name, grace=0)
    return {asked.removesuffix(f"{place.fqdn('')}."): set(got) for asked, *got in lines}
