"""A user who may write one namespace takes neither the memory of the server nor the names of others.

All attacks are of objects that the API server accepts, in a namespace beside a victim's. The memory is the most that
the kernel has counted for the process, and the limit 60 % of 512 MiB, as the process has no cgroup with a limit.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from tests.support.api_objects import Object, endpoint_slice, namespace, pod, service, service_import
from tests.support.program_with_fake_api import Scene, scene
from tests.support.server_process import until
from tests.support.state_with_fake_api import giving_lists
from tests.support.steady_client import victim

MOST: Final = 0.6 * 512 * (1 << 20)  # octets
P99: Final = 0.02  # seconds of the server's CPU between a question and its reply
TENANT: Final = namespace("tenant")
SMALL: Final = service("small", "tenant", "10.96.0.80")
SMALL_A: Final = "small.tenant.svc.cluster.local A"
PATIENCE: Final = 240.0
ASKED: Final = 100

Attack = Callable[[], Iterator[Object]]


def _ports(number: int, owner: int = 0) -> list[Object]:
    return [{"name": f"p{port}-{owner}", "port": port, "protocol": "TCP"} for port in range(1, number + 1)]


def _addresses(first: int, number: int) -> list[str]:
    return [f"10.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}" for at in range(first, first + number)]


def services_of_many_ports() -> Iterator[Object]:
    for number in range(128):
        made = service(f"wide-{number:04}", "tenant")
        made["spec"]["ports"] = _ports(15_000, number)
        yield made


def services_of_many_addresses() -> Iterator[Object]:
    for number in range(128):
        made = service(f"wide-{number:04}", "tenant")
        made["spec"]["externalIPs"] = [f"2001:{number:x}::{at:x}" for at in range(60_000)]
        yield made


def imports_of_many_ports() -> Iterator[Object]:
    for number in range(128):
        made = service_import(f"wide-{number:04}", ("10.96.0.81",), "tenant")
        made["spec"]["ports"] = _ports(15_000, number)
        yield made


def slices_of_many_ports() -> Iterator[Object]:
    for number in range(300):
        made = endpoint_slice(f"wide-{number % 10}", {f"10.128.0.{number % 200}": "n1"}, "tenant", f"wide-{number:04}")
        made["ports"] = _ports(20_000, number)
        yield made


def _slices(owner: Callable[[int], str]) -> Iterator[Object]:
    for number in range(1500):
        addresses = _addresses((128 << 16) + number * 1000, 1000)
        yield endpoint_slice(owner(number), dict.fromkeys(addresses, "n1"), "tenant", f"wide-{number:04}")


def slices_of_many_endpoints() -> Iterator[Object]:
    return _slices(lambda number: f"wide-{number}")


def slices_of_one_service() -> Iterator[Object]:
    return _slices(lambda _: "wide")


def pods_of_long_annotations() -> Iterator[Object]:
    for number, address in enumerate(_addresses(200 << 16, 1000)):
        made = pod(f"wide-{number}", address, "n1", "tenant")
        made["metadata"]["annotations"] = {"long": "x" * 250_000}
        yield made


LONG: Final = pytest.mark.long
ATTACKS: Final = (
    services_of_many_ports,
    *(
        pytest.param(attack, marks=LONG)
        for attack in (
            services_of_many_addresses,
            imports_of_many_ports,
            slices_of_many_ports,
            slices_of_many_endpoints,
            slices_of_one_service,
            pods_of_long_annotations,
        )
    ),
)


@contextmanager
def attacked(directory: Path, *objects: Object, streaming: bool = True) -> Iterator[Scene]:
    """A server that watches all kinds, and has these objects of the tenant from the start."""
    with scene(
        directory,
        TENANT,
        SMALL,
        *objects,
        origins="cluster.local clusterset.local",
        options="multicluster clusterset.local",
        locate="pods",
        prepare=giving_lists(streaming),
        patience=PATIENCE,
    ) as there:
        yield there


def after_all_changes(there: Scene) -> None:
    """Wait until the server has taken all changes of each kind that the tenant may write."""
    marks = (
        service("mark", cluster_ip="10.96.0.90"),
        service_import("mark", ("10.96.0.91",)),
        service("marked"),
        endpoint_slice("marked", {"10.61.9.1": "n1"}),
        pod("mark", "10.61.9.2", "n1"),
    )
    there.api.put(*marks)
    there.comes("mark.default.svc.cluster.local A", "10.96.0.90", patience=PATIENCE)
    there.comes("mark.default.svc.clusterset.local A", "10.96.0.91", patience=PATIENCE)
    there.comes("marked.default.svc.cluster.local A", "10.61.9.1", patience=PATIENCE)
    there.api.delete(*marks)


def some_at_a_time(objects: Iterable[Object]) -> Iterator[list[Object]]:
    remaining = iter(objects)
    while some := list(islice(remaining, 10)):
        yield some


def left_out(there: Scene) -> float:
    """The number of objects of the tenant that are left out, and of no other namespace any."""
    samples = there.server.scrape()
    found = samples.sum("topodns_left_out_objects", namespace="tenant")
    assert samples.sum("topodns_left_out_objects") == found
    return found


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_tenant_s_objects_take_no_memory_or_time_that_others_need(tmp_path: Path, attack: Attack) -> None:
    with attacked(tmp_path) as there:
        with victim(there.server, "front.default.svc.cluster.local A", "10.96.0.1") as fate:
            for some in some_at_a_time(attack()):
                there.api.put(*some)
            after_all_changes(there)
            assert there.data(SMALL_A) == ["10.96.0.80"]
            until(lambda: fate.asked >= ASKED, "questions asked")
            for some in some_at_a_time(attack()):
                there.api.delete(*some)
            after_all_changes(there)
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert fate.cpu(99) <= P99, fate
        assert there.server.peak_resident_bytes() <= MOST
        until(lambda: not left_out(there), "nothing is left out any more")
        assert there.data(SMALL_A) == ["10.96.0.80"]


@pytest.mark.parametrize("streaming", [True, pytest.param(False, marks=LONG)], ids=["stream", "pages"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_server_that_starts_has_memory_for_all_that_a_tenant_has_written(
    tmp_path: Path, attack: Attack, streaming: bool
) -> None:
    with attacked(tmp_path, *attack(), streaming=streaming) as there:
        assert there.data(SMALL_A) == ["10.96.0.80"]
        assert there.server.peak_resident_bytes() <= MOST
        left_out(there)


def test_what_is_left_out_is_servfail_and_comes_back_when_there_is_room(tmp_path: Path) -> None:
    slices = list(slices_of_many_endpoints())
    services = [service(f"wide-{number}", "tenant") for number in range(len(slices))]
    with attacked(tmp_path, *services, *slices) as there:
        assert left_out(there) > 0
        names = [f"wide-{number}.tenant.svc.cluster.local A" for number in range(0, len(slices), 100)]
        assert {there.data(name)[0] for name in names} >= {"SERVFAIL"}
        for some in some_at_a_time(slices[: len(slices) * 3 // 4]):
            there.api.delete(*some)
        until(lambda: not left_out(there), "nothing is left out any more", PATIENCE)
        for name in names:
            assert there.data(name) != ["SERVFAIL"]
        assert len(there.data("wide-1499.tenant.svc.cluster.local A")) > 1
        assert there.server.peak_resident_bytes() <= MOST


@LONG
def test_a_namespace_of_150_000_endpoints_is_whole_also_beside_an_attack(tmp_path: Path) -> None:
    honest = [
        endpoint_slice(
            f"svc-{number // 10}",
            {address: f"node-{at}" for at, address in enumerate(_addresses((64 << 16) + number * 100, 100))},
            "honest",
            f"svc-{number:04}",
        )
        for number in range(1500)
    ]
    services = [service(f"svc-{number}", "honest") for number in range(150)]
    with attacked(tmp_path, namespace("honest"), *services, *honest, *slices_of_many_endpoints()) as there:
        assert left_out(there) > 0
        assert len(there.data("svc-0.honest.svc.cluster.local A")) > 1
        assert all(there.data(f"svc-{number}.honest.svc.cluster.local A") != ["SERVFAIL"] for number in range(150))
        assert there.server.peak_resident_bytes() <= MOST


def test_one_wide_service_that_is_updated_over_and_over_delays_no_client(tmp_path: Path) -> None:
    made = next(services_of_many_ports())
    made["spec"]["ports"] = _ports(60_000)
    with attacked(tmp_path, made) as there:
        with victim(there.server, "front.default.svc.cluster.local A", "10.96.0.1") as fate:
            for number in range(60):
                made["metadata"]["annotations"] = {"changed": str(number)}
                there.api.put(made)
            after_all_changes(there)
            until(lambda: fate.asked >= ASKED, "questions asked")
        assert (fate.lost, fate.wrong) == (0, []), fate
        assert fate.cpu(99) <= P99, fate
