"""The program through the faults that an API server can have: rows K1 to K24 of the promises, by their numbers.

A checker asks all the while: no query may stay unanswered, no name that exists may be NXDOMAIN, no address may be one
that its Service never had. Faults of minutes or hours (K4, K6, K7, K8, K23, and the exact times of the others) are in
tests/unit/kube/informer/test_reflector_faults_of_*.py.
"""

import json
import signal
import ssl
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.answer_checker import promise
from tests.support.api_objects import Object, endpoint_slice, namespace, node, pod, service, service_import
from tests.support.certificates import make_certificates, needs_openssl
from tests.support.fake_api.server import FakeApi
from tests.support.program_with_fake_api import CLUSTER, FRONT, IN_A, IN_B, N2, NEAR, PLAIN, PLAIN_SLICE, Scene, scene
from tests.support.server_process import HEALTH, until

QUICKLY = "startup_timeout 300ms"
NEW = "new.default.svc.cluster.local A"
RULE = 'apiGroups: [""], resources: ["%s"], verbs: ["list", "watch"]'
FAILING, RELISTS = "topodns_watch_failing", "topodns_relists_total"


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("faults")) as shared:
        yield shared


@pytest.fixture
def shared(one_server: Scene) -> Iterator[Scene]:
    """One server for many faults; afterwards the cluster is as before, and known."""
    yield one_server
    one_server.api.heal()
    one_server.api.put(*CLUSTER)
    one_server.api.delete(*(value for value in one_server.api.objects() if value["metadata"]["name"] == "new"))
    until(lambda: one_server.metric(FAILING) == 0, one_server.server.output())
    one_server.comes(NEW, "NXDOMAIN")


def test_k01_without_an_api_server_cluster_names_are_servfail_and_right_soon_after_it_comes(tmp_path: Path) -> None:
    with scene(tmp_path, options=QUICKLY, prepare=lambda api: api.down(), synced=False) as story:
        assert [story.data(question) for question in (FRONT, NEAR, NEW)] == [["SERVFAIL"]] * 3
        status, why = story.ready()
        assert (status, "services: " in why) == (503, True)
        assert story.server.get("/health", HEALTH) == (200, "OK")
        assert story.metric(FAILING, kind="Service", status="0") == 1
        story.api.up()
        story.is_ready()
        story.witness.synced = True
        assert (story.data(FRONT), story.data(NEAR), story.data(NEW)) == (["10.96.0.1"], ["10.61.1.1"], ["NXDOMAIN"])


def test_k02_without_its_api_server_everything_is_answered_from_memory(shared: Scene) -> None:
    shared.api.down()
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.shows(FAILING, kind="Service", status="0")
    shared.shows("topodns_state_age_seconds", 0.5)
    assert (shared.data(FRONT), shared.data(NEW)) == (["10.96.0.1"], ["NXDOMAIN"])
    assert shared.ready() == (200, "OK")
    shared.api.up()
    shared.comes(NEW, "10.96.0.7")


def test_k02_a_reload_without_the_api_server_does_not_forget_the_cluster(tmp_path: Path) -> None:
    with scene(tmp_path, options=QUICKLY) as story:
        story.api.down()
        story.server.signal(signal.SIGUSR1)
        story.server.wait_for_line("Reloading complete")
        assert story.data(FRONT) == ["10.96.0.1"]
        assert story.ready() == (200, "OK")


def test_k02_a_corefile_that_needs_a_list_is_refused_for_as_long_as_there_is_none(tmp_path: Path) -> None:
    """Whichever kinds are known: the slices never were."""
    corefile = tmp_path / "Corefile"
    with scene(tmp_path, options=QUICKLY, prepare=lambda api: api.deny("endpointslices"), synced=False) as story:
        story.comes(FRONT, "10.96.0.1")
        corefile.write_text(corefile.read_text().replace(QUICKLY, f"{QUICKLY}\nlabels !hidden"))
        story.api.down()
        story.server.signal(signal.SIGUSR1)
        story.shows("coredns_reload_failed_total")
        assert story.data(FRONT) == ["10.96.0.1"]
        story.api.up()
        story.api.heal()
        story.is_ready()
        story.server.signal(signal.SIGUSR1)
        story.server.wait_for_line("Reloading complete")
        assert story.data(FRONT) == ["10.96.0.1"]


def test_k03_a_slow_api_server_delays_the_knowledge_and_no_answer(tmp_path: Path) -> None:
    with scene(tmp_path, options=QUICKLY, prepare=lambda api: api.slow(1), synced=False) as story:
        assert story.data(FRONT) == ["SERVFAIL"]
        assert story.ready()[0] == 503
        story.is_ready()
        assert story.data(FRONT) == ["10.96.0.1"]
        until(lambda: story.witness.asked > 10, "questions that the witness has asked")


@pytest.mark.parametrize("as_status", [True, False])
def test_k05_gone_means_a_list_without_an_empty_moment(shared: Scene, as_status: bool) -> None:
    before = shared.metric(RELISTS, kind="Service")
    shared.api.lose_next("services")
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.api.gone("services", as_status)
    shared.comes(NEW, "10.96.0.7")
    shared.shows(RELISTS, before + 1, kind="Service")


@pytest.mark.parametrize("revision", ["1", "500"])
def test_k09_an_older_event_changes_no_answer(shared: Scene, revision: str) -> None:
    old = service("front", cluster_ip="10.96.0.66")
    old["metadata"]["resourceVersion"] = revision
    shared.api.send_event("MODIFIED", old)
    shared.api.send_event("DELETED", old)
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.comes(NEW, "10.96.0.7")
    assert shared.data(FRONT) == ["10.96.0.1"]


def test_k10_broken_json_costs_one_watch_and_a_bad_object_nothing(shared: Scene) -> None:
    shared.api.send_raw("services", b'{"type":"ADDED","object":{{{\n')
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.comes(NEW, "10.96.0.7")
    watches = shared.api.requests.count("services", "watch")
    bad = service("bad")
    bad["spec"]["ports"] = "x"
    shared.api.put(bad, service("new", cluster_ip="10.96.0.8"))
    shared.comes(NEW, "10.96.0.8")
    assert shared.metric("topodns_decode_errors_total", kind="Service") >= 1
    assert shared.api.requests.count("services", "watch") == watches
    assert "default/bad" in shared.server.wait_for_line("skipped")
    shared.api.delete(bad)


def test_k10_broken_framing_costs_one_watch_though_the_connection_stays(shared: Scene) -> None:
    before = shared.api.requests.count("services", "watch")
    shared.api.break_framing("services")
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.comes(NEW, "10.96.0.7")
    assert shared.api.requests.count("services", "watch") == before + 1


def test_k11_an_empty_list_is_believed_when_it_is_confirmed(tmp_path: Path) -> None:
    many = [service(f"s{number}", cluster_ip=f"10.96.1.{number}") for number in range(120)]
    promises = [promise(PLAIN, "10.61.1.2", "10.61.2.2")]
    with scene(tmp_path, *many, promises=promises) as story:
        story.api.empty("services")
        story.api.gone("services")
        story.server.wait_for_line("asking again")
        assert story.data(FRONT) == ["10.96.0.1"]
        story.api.heal()
        story.shows(RELISTS, kind="Service")
        assert story.data(FRONT) == ["10.96.0.1"]


def test_k12_a_name_left_unknown_by_a_denied_kind_is_servfail_and_ready_names_the_kind(tmp_path: Path) -> None:
    with scene(tmp_path, options=QUICKLY, prepare=lambda api: api.deny("endpointslices"), synced=False) as story:
        assert (story.data(PLAIN), story.data(FRONT), story.data(NEW)) == (["SERVFAIL"], ["10.96.0.1"], ["SERVFAIL"])
        status, why = story.ready()
        assert status == 503
        assert "EndpointSlice (cannot watch endpointslices.discovery.k8s.io: 403" in why
        assert story.metric(FAILING, kind="EndpointSlice", verb="watch", status="403") == 1
        story.api.heal()
        story.is_ready()
        assert story.data(NEW) == ["NXDOMAIN"]


def test_k12_while_nodes_are_denied_ready_names_the_missing_permission_and_clients_get_every_endpoint(
    tmp_path: Path,
) -> None:
    with scene(tmp_path, prepare=lambda api: api.deny("nodes"), synced=False) as story:
        story.comes(FRONT, "10.96.0.1")
        story.witness.synced = True
        assert (story.data(PLAIN), story.data(NEAR)) == (["10.61.1.2", "10.61.2.2"], ["10.61.1.1", "10.61.2.1"])
        assert story.metric("topodns_selections_total", outcome="not_permitted") >= 1
        assert story.metric(FAILING, kind="Node", status="403") == 1
        status, why = story.ready()
        assert (status, why.count("\n")) == (503, 0)
        assert why.startswith("kubernetes: topology lacks Node (cannot watch nodes: 403: ")
        assert why.endswith(f"; the ClusterRole needs {RULE % 'nodes'}")
        story.server.wait_for_line(f"the ClusterRole needs {RULE % 'nodes'}")
        story.api.heal()
        story.comes(NEAR, "10.61.1.1")
        story.is_ready()


def test_k12_while_pods_are_denied_clients_that_only_they_would_locate_get_every_endpoint(tmp_path: Path) -> None:
    bare = "127.61.0.9"
    with scene(
        tmp_path, pod("bare", bare, "n2"), locate="pods", prepare=lambda api: api.deny("pods"), synced=False
    ) as story:
        story.comes(FRONT, "10.96.0.1")
        story.witness.synced = True
        assert story.data(NEAR, bare) == ["10.61.1.1", "10.61.2.1"]
        assert story.data(NEAR, IN_A) == ["10.61.1.1"]
        status, why = story.ready()
        assert status == 503
        assert why.startswith("kubernetes: topology lacks Pod (cannot watch pods: 403: ")
        assert why.endswith(f"; the ClusterRole needs {RULE % 'pods'}, or `locate` goes without pods")
        story.api.heal()
        story.comes(NEAR, "10.61.2.1", source=bare)
        story.is_ready()


def test_k12_denied_pods_leave_names_that_only_they_can_verify_unsure(tmp_path: Path) -> None:
    known, unknown = ("10-61-1-2.default.pod.cluster.local A", "10-61-9-9.default.pod.cluster.local A")
    the_pod = pod("plain-0", "10.61.1.2", "n1")
    with scene(tmp_path, the_pod, options="pods verified", prepare=lambda api: api.deny("pods")) as story:
        assert (story.data(known), story.data(unknown)) == (["SERVFAIL"], ["SERVFAIL"])
        assert (story.data(PLAIN), story.data(NEW)) == (["10.61.1.2", "10.61.2.2"], ["NXDOMAIN"])
        assert story.metric(FAILING, kind="Pod", status="403") == 1
        story.api.heal()
        story.comes(known, "10.61.1.2")
        assert story.data(unknown) == ["NXDOMAIN"]


def test_k13_names_known_before_the_permission_was_revoked_are_still_answered(shared: Scene) -> None:
    shared.api.deny("services")
    shared.api.deny("nodes")
    shared.api.cut()
    shared.shows(FAILING, kind="Service", status="403")
    shared.shows(FAILING, kind="Node", status="403")
    assert (shared.data(FRONT), shared.data(NEAR)) == (["10.96.0.1"], ["10.61.1.1"])
    assert shared.ready() == (200, "OK")


@needs_openssl
def test_k14_a_token_that_is_rotated_is_read_again(tmp_path: Path) -> None:
    server = make_certificates(tmp_path).server
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(server.certificate, server.key)
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text("old")

    def require_new_token(api: FakeApi) -> None:
        api.require_token("new")
        kubeconfig.write_text(json.dumps(kubeconfig_of(api.url, token)))

    source, promises = f"kubeconfig {kubeconfig}", [promise(PLAIN, "10.61.1.2", "10.61.2.2")]
    with scene(
        tmp_path, source=source, options=QUICKLY, promises=promises, prepare=require_new_token, synced=False, tls=tls
    ) as story:
        assert story.data(FRONT) == ["SERVFAIL"]
        assert story.metric(FAILING, kind="Service", status="401") == 1
        token.write_text("new")
        story.is_ready()
        assert story.data(FRONT) == ["10.96.0.1"]


def kubeconfig_of(url: str, token: Path) -> Object:
    cluster = {"server": url, "insecure-skip-tls-verify": True}
    named = {"cluster": cluster, "user": {"tokenFile": str(token)}, "context": {"cluster": "it", "user": "it"}}
    lists = {f"{what}s": [{"name": "it", what: value}] for what, value in named.items()}
    return {"apiVersion": "v1", "kind": "Config", "current-context": "it", **lists}


def test_k15_an_overloaded_api_server_is_left_alone_for_as_long_as_it_asks(shared: Scene) -> None:
    shared.api.busy(1, "services")
    shared.api.requests.clear()
    shared.api.end_watches("services")
    until(lambda: shared.api.requests.count("services") >= 2, "a second attempt")
    assert shared.metric(FAILING, kind="Service", status="429") == 1
    shared.api.heal()
    first, second = shared.api.requests.times("services")[:2]
    assert second - first >= 1
    shared.api.put(service("new", cluster_ip="10.96.0.7"))
    shared.comes(NEW, "10.96.0.7")


def test_k16_a_resource_that_is_not_installed_holds_nothing_up(tmp_path: Path) -> None:
    imports = service_import("web", ["10.98.0.1"])
    with scene(
        tmp_path,
        imports,
        origins="cluster.local clusterset.local",
        options="multicluster clusterset.local",
        prepare=lambda api: api.absent("serviceimports"),
    ) as story:
        assert story.data("web.default.svc.clusterset.local A") == ["NXDOMAIN"]
        assert story.metric(FAILING, kind="ServiceImport", status="404") == 1


def test_k17_a_burst_of_events_delays_no_query(shared: Scene) -> None:
    before, asked = shared.metric("topodns_watch_events_total", kind="EndpointSlice"), shared.witness.asked
    shared.api.touch("endpointslices", 5000)
    shared.api.put(endpoint_slice("plain", {"10.61.1.2": "n1"}))
    shared.comes(PLAIN, "10.61.1.2")
    assert shared.metric("topodns_watch_events_total", kind="EndpointSlice") == before + 5001
    assert shared.witness.asked > asked


def test_k18_an_endpoint_in_two_slices_is_answered_once(shared: Scene) -> None:
    twin = endpoint_slice("plain", {"10.61.1.2": "n1", "10.61.2.2": "n2"}, name="plain-2")
    before = shared.metric("topodns_watch_events_total", kind="EndpointSlice")
    shared.api.put(twin, service("new", cluster_ip="10.96.0.7"))
    shared.shows("topodns_watch_events_total", before + 1, kind="EndpointSlice")
    assert shared.data(PLAIN) == ["10.61.1.2", "10.61.2.2"]
    assert len(shared.data("_http._tcp.plain.default.svc.cluster.local SRV")) == 2
    unready = endpoint_slice("plain", {"10.61.1.2": "n1", "10.61.2.2": "n2"}, name="plain-2", ready=False)
    shared.api.put(unready)
    shared.shows("topodns_watch_events_total", before + 2, kind="EndpointSlice")
    assert shared.data(PLAIN) == ["10.61.1.2", "10.61.2.2"]
    shared.api.delete(twin)


def test_k19_endpoints_that_move_from_one_slice_to_another_are_never_missing(shared: Scene) -> None:
    """The witness of the scene would see it."""
    slices = [endpoint_slice("plain", {"10.61.1.2": "n1", "10.61.2.2": "n2"}, name=f"plain-{n}") for n in range(1, 12)]
    before = shared.metric("topodns_watch_events_total", kind="EndpointSlice")
    for old, new in pairwise(slices):
        shared.api.delete(old)
        shared.api.put(new)
    shared.shows("topodns_watch_events_total", before + 20, kind="EndpointSlice")
    assert shared.data(PLAIN) == ["10.61.1.2", "10.61.2.2"]
    shared.api.delete(slices[-1])
    shared.api.put(PLAIN_SLICE)


def test_k20_an_address_of_two_live_pods_is_nobodys_place(tmp_path: Path) -> None:
    reused = "127.61.9.9"
    old, new = pod("old", reused, "n1"), pod("new", reused, "n2")
    with scene(tmp_path, old, locate="pods") as story:
        story.comes(NEAR, "10.61.1.1", source=reused)
        story.api.put(new)
        story.comes(NEAR, source=reused)
        story.api.delete(old)
        story.comes(NEAR, "10.61.2.1", source=reused)
        story.api.put(pod("newest", reused, "n1"), pod("new", reused, "n2", phase="Succeeded"))
        story.comes(NEAR, "10.61.1.1", source=reused)


def test_k21_a_deleted_namespace_takes_its_names_with_it_at_once(shared: Scene) -> None:
    doomed, question = namespace("doomed"), "web.doomed.svc.cluster.local A"
    shared.api.put(doomed, service("web", "doomed", cluster_ip="10.96.0.8"))
    shared.comes(question, "10.96.0.8")
    shared.api.delete(doomed)
    shared.comes(question, "NXDOMAIN")
    shared.api.delete(service("web", "doomed"))


def test_k22_clients_of_a_deleted_node_are_nowhere_and_those_of_a_relabelled_one_elsewhere(shared: Scene) -> None:
    assert shared.data(NEAR, IN_B) == ["10.61.2.1"]
    shared.api.delete(N2)
    shared.comes(NEAR, source=IN_B)
    assert shared.data(PLAIN, IN_B) == ["10.61.1.2", "10.61.2.2"]
    shared.api.put(node("n2", "a", IN_B))
    shared.comes(NEAR, "10.61.1.1", "10.61.2.1", source=IN_B)


def test_k24_an_older_list_takes_nothing_back(shared: Scene) -> None:
    before, moved = shared.metric(RELISTS, kind="EndpointSlice"), endpoint_slice("plain", {"10.61.2.2": "n2"})
    shared.api.freeze("endpointslices")
    shared.api.put(moved)
    shared.comes(PLAIN, "10.61.2.2")
    shared.api.gone("endpointslices")
    shared.shows(RELISTS, before + 1, kind="EndpointSlice")
    assert shared.data(PLAIN) == ["10.61.2.2"]
