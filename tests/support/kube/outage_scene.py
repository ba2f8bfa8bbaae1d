"""A headless Service with a topology key, and the names that Pods ask for before, during and after an outage."""

from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from tests.kubelab.options import CLUSTER_DNS, FIRST_SERVICES
from tests.support.kube.client_pods import Askers
from tests.support.kube.cluster import Place
from tests.support.kube.objects import ZONE, headless, manual_slice
from tests.support.kube.upstream import OUTSIDE, OUTSIDE_ADDRESS
from tests.support.kube.waiting import becomes

KUBERNETES: Final = "kubernetes.default.svc.cluster.local"
KNOWN_AGAIN: Final = 30.0  # seconds, as docs/operate/reliability.md has it for the end of an outage of minutes

Got = Mapping[str, Mapping[str, frozenset[str]]]  # by question and the client's node


class Scene(NamedTuple):
    """`right`: the answers to all that is asked; the Service `late` is not there yet."""

    place: Place
    late: str
    right: Got

    @property
    def questions(self) -> list[str]:
        return list(self.right)

    def with_late(self) -> Got:
        """The answers once the Service `late`, which this creates, is known."""
        self.place.create(headless("late", app=""), manual_slice("late", "late", [("198.51.100.9", "")]))
        return {
            **self.right,
            f"{self.late} A": dict.fromkeys(self.right[f"{self.late} A"], frozenset({"198.51.100.9"})),
        }


def outage_scene(place: Place, askers: Askers) -> Scene:
    """All of it is known to the cluster DNS."""
    slices = manual_slice("web", "web", [("198.51.100.1", "node1"), ("198.51.100.3", "node3")])
    for number, endpoint in enumerate(slices["endpoints"]):
        endpoint["hostname"] = f"web-{number}"
    place.create(headless("web", ZONE, app=""), slices)
    web, late = place.fqdn("web"), place.fqdn("late")
    in_zone = {"node1": 0, "node2": 0, "node3": 1}

    def near(by_number: Callable[[int], str]) -> Mapping[str, frozenset[str]]:
        return {node: frozenset({by_number(in_zone[node])} if node in in_zone else ()) for node in askers}

    def everywhere(answer: str) -> Mapping[str, frozenset[str]]:
        return dict.fromkeys(askers, frozenset({answer}))

    right = {
        f"{KUBERNETES} A": everywhere(FIRST_SERVICES[0]),
        f"{web} A": near(lambda number: f"198.51.100.{1 + 2 * number}"),
        f"_http._tcp.{web} SRV": near(lambda number: f"0 100 80 web-{number}.{web}."),
        f"{ip_address('198.51.100.3').reverse_pointer} PTR": everywhere(f"web-1.{web}."),
        f"{OUTSIDE} A": everywhere(OUTSIDE_ADDRESS),
        f"{late} A": everywhere("NXDOMAIN"),
        f"no-such.{web} A": everywhere("NXDOMAIN"),
    }
    becomes(lambda: got(askers, right), right)
    return Scene(place, late, right)


def got(askers: Askers, questions: Iterable[str], to: str = CLUSTER_DNS) -> Got:
    """The answers of the server at this address, by client."""
    got: dict[str, Mapping[str, frozenset[str]]] = {}
    for question in questions:
        name, qtype = question.split()
        got[question] = {node: frozenset(asker.addresses(name, qtype, to)) for node, asker in askers.items()}
    return got
