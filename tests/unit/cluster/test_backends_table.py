"""Endpoints of each Service, built at their first use and kept until a change."""

from tests.support.model_builders import endpoint, endpoint_slice
from topodns.cluster.backends import BackendsTable
from topodns.cluster.model import EndpointSlice, ObjectKey
from topodns.cluster.slices import SliceOwner, SliceTable

WEB = SliceOwner(ObjectKey("default", "web"))


class Held:
    """Slices, and the endpoints that are built of them."""

    def __init__(self, *slices: EndpointSlice) -> None:
        self.slices: dict[tuple[str, str], EndpointSlice] = {}
        self._table = SliceTable(self.slices)
        self.backends = BackendsTable(self._table, lambda name: None, terminating_fallback=False, pod_names=False)
        for each in slices:
            self.put(each)

    def put(self, new: EndpointSlice) -> None:
        old = self.slices.get(new.key)
        self.slices[new.key] = new
        self._table.replace(new.key, old, new)
        self.backends.invalidate_slice(ObjectKey(new.namespace, new.service_name), new.name)


ONE, TWO = (endpoint_slice("web", endpoint(f"10.0.0.{at}"), name=f"s{at}") for at in (1, 2))


def test_endpoints_are_built_once_until_a_change() -> None:
    held = Held(ONE)
    built = held.backends.get(WEB)
    assert held.backends.get(WEB) is built
    held.put(TWO)
    assert [member.slice for member in held.backends.get(WEB).members] == [ONE, TWO]


def test_a_changed_slice_leaves_the_members_of_the_others() -> None:
    held = Held(ONE, TWO)
    first, second = held.backends.get(WEB).members
    held.put(endpoint_slice("web", endpoint("10.0.0.9"), name="s2"))
    after = held.backends.get(WEB).members
    assert after[0] is first
    assert after[1] is not second
    held.backends.invalidate(WEB.key)
    assert held.backends.get(WEB).members[0] is not first


def test_a_name_that_does_not_exist_takes_no_memory() -> None:
    held = Held(ONE)
    nothing = held.backends.get(SliceOwner(ObjectKey("default", "none")))
    assert nothing is held.backends.get(SliceOwner(ObjectKey("other", "none")))
    assert held.backends.built == {}


def test_the_endpoints_of_one_cluster_are_built_apart() -> None:
    imports = [endpoint_slice("web", name=each, imported=True, cluster_id=each) for each in ("east", "west")]
    held, owner = Held(*imports), WEB._replace(imported=True)
    built = [held.backends.get(owner, each) for each in ("east", "west", "")]
    assert [each.cluster_ids for each in built] == [("east",), ("west",), ("east", "west")]


def test_cluster_ids_are_the_same_in_any_case() -> None:
    ids = ("East", "eAst", "c1.EU")
    imports = [endpoint_slice("web", name=f"web-{each}", imported=True, cluster_id=each) for each in ids]
    held, owner = Held(*imports), WEB._replace(imported=True)
    built = [held.backends.get(owner, each).cluster_ids for each in ("", "east", "c1.eu")]
    assert built == [("East", "c1.EU"), ("East",), ("c1.EU",)]
