"""Labels of metadata, in the four directives that read them: values as CoreDNS's `kubernetes` gives them."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_pods_scene import ADDRESSES, LABELS, STRANGER, PodServer, pod_object
from tests.support.cluster_dig import query_of
from tests.support.corefile_settings import block_problem, settings
from tests.support.dns_messages import Opt
from tests.support.model_builders import listed_state, node, pod
from tests.support.query_builders import ask, client
from tests.support.virtual_timers import VirtualTimers
from topodns.cluster.model import Upserted
from topodns.dns.addresses import packed_address
from topodns.dns.name import ROOT, parse_name
from topodns.plugins.acl import AccessControl, Acl, AclAction, AclRule
from topodns.plugins.kubernetes.client_pods import ClientPods, KubernetesLabels
from topodns.plugins.kubernetes.pod_wait import PodWait
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.metadata import labels_read
from topodns.query.deferred import pursue
from topodns.query.plugin import Scope

WEB = "web.shop.svc.cluster.local. A"
LOG = ". {\n metadata\n CLUSTER\n log . FORMAT\n}\n"
ALLOW_SHOP = ". {\n metadata\n CLUSTER\n acl {\n  allow namespace shop\n  block\n }\n}\n"
VIEWS = (
    ". {\n metadata\n CLUSTER\n view shop {\n  expr metadata('kubernetes/client-namespace') == 'shop'\n }\n}\n"
    ". {\n whoami\n}\n"
)


@pytest.fixture
def make(tmp_path: Path) -> Any:
    return lambda corefile: PodServer(tmp_path, corefile)


def logged(server: PodServer, question: str, asker: str) -> str:
    server.ask(question, asker)
    return server.lines[-1]


NAMES = [
    ("web.shop.svc.cluster.local.", "svc shop web   "),
    ("WEB.Shop.svc.cluster.local.", "svc shop web   "),  # in lower case, as CoreDNS
    ("_http._tcp.web.shop.svc.cluster.local.", "svc shop web  http tcp"),
    ("http.tcp.web.shop.svc.cluster.local.", "svc shop web  http tcp"),
    ("10-1-0-1.web.shop.svc.cluster.local.", "svc shop web 10-1-0-1  "),
    ("shop.svc.cluster.local.", "svc shop    "),
    ("shop.pod.cluster.local.", "pod shop    "),
    ("svc.cluster.local.", "     "),
    ("cluster.local.", "     "),
    ("10-1-0-1.shop.pod.cluster.local.", "pod shop 10-1-0-1   "),
    ("a.10-1-0-1.shop.pod.cluster.local.", "pod shop 10-1-0-1 a  "),
    ("_a._b.10-1-0-1.shop.pod.cluster.local.", "pod shop 10-1-0-1  a b"),
    ("web.shop.cluster.local.", "- - - - - -"),
    ("a.b.c.web.shop.svc.cluster.local.", "- - - - - -"),
    ("ns.dns.cluster.local.", "- - - - - -"),
    ("example.org.", "- - - - - -"),
]
WORDS = ("kind", "namespace", "service", "endpoint", "port-name", "protocol")


@pytest.mark.parametrize(("name", "line"), NAMES)
def test_the_labels_of_a_name_are_its_parts(make: Any, name: str, line: str) -> None:
    text = " ".join(f"{{/kubernetes/{word}}}" for word in WORDS)
    assert logged(make(LOG.replace("FORMAT", f'"{text}"')), f"{name} A", STRANGER) == line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("web.shop.cluster.local.", "invalid query name"),
        ("dns-version.cluster.local.", "invalid query name"),
        ("web.shop.svc.cluster.local.", "-"),
        ("example.org.", "-"),
    ],
)
def test_a_name_outside_the_schema_has_a_parse_error(make: Any, name: str, line: str) -> None:
    assert logged(make(LOG.replace("FORMAT", "{/kubernetes/parse-error}")), f"{name} A", STRANGER) == line


@pytest.mark.parametrize(
    ("asker", "line"),
    [
        ("shop/web", "shop web web front"),
        ("shop/db", "shop db db -"),
        ("bank/web", "bank web web -"),
        (STRANGER, "- - - -"),
        ("10.0.0.1", "- - - -"),  # a hostNetwork Pod shares it with its Node
    ],
)
def test_the_labels_of_a_client_are_its_pod_s(make: Any, asker: str, line: str) -> None:
    words = ("namespace", "pod-name", "label/app", "label/tier")
    text = " ".join(f"{{/kubernetes/client-{word}}}" for word in words)
    assert logged(make(LOG.replace("FORMAT", f'"{text}"')), WEB, asker) == line


@pytest.mark.parametrize(
    "corefile",
    [
        LOG.replace("metadata", "nsid"),  # the directive is missing
        LOG.replace("metadata", "metadata example.org"),  # it is for other names
        LOG.replace("FORMAT", "{/geoip/country}"),  # no plugin has the label
    ],
)
def test_without_metadata_a_label_has_no_value(make: Any, corefile: str) -> None:
    assert logged(make(corefile.replace("FORMAT", "{/kubernetes/client-namespace}")), WEB, "shop/web") == "-"


def test_the_name_of_the_view_is_a_label(make: Any) -> None:
    corefile = LOG.replace("FORMAT", "{/view/name}").replace("metadata", "metadata\n view texts")
    assert logged(make(corefile), WEB, STRANGER) == "texts"


def test_a_label_of_a_manifest_breaks_no_line(make: Any) -> None:
    server = make(LOG.replace("FORMAT", "{/kubernetes/client-label/app}"))
    server.put(pod_object("shop/web", ADDRESSES["shop/web"], {"app": "a\n[INFO] forged"}))
    assert logged(server, WEB, "shop/web") == r"a\n[INFO] forged"


def test_only_the_labels_that_are_read_are_held(make: Any) -> None:
    (cluster,) = make(LOG.replace("FORMAT", "{/kubernetes/client-label/tier}")).generation.clusters
    held = {f"{pod.namespace}/{pod.name}": dict(pod.labels) for pod in cluster.state.pods.values()}
    assert held == {"shop/web": {"tier": "front"}, "shop/db": {}, "bank/web": {}, "bank/host": {}}


def test_pods_are_watched_if_something_of_them_is_read(make: Any) -> None:
    texts = ("{/kubernetes/client-namespace}", "{/kubernetes/namespace}")
    needed = [make(LOG.replace("FORMAT", text)).generation.clusters[0].state.needed for text in texts]
    assert ["Pod" in kinds for kinds in needed] == [True, False]


@pytest.mark.parametrize(
    ("asker", "rcode"),
    [("shop/web", "NOERROR"), ("shop/db", "NOERROR"), ("bank/web", "REFUSED"), (STRANGER, "REFUSED")],
)
def test_acl_allows_by_namespace(make: Any, asker: str, rcode: str) -> None:
    assert make(ALLOW_SHOP).rcode(WEB, asker) == rcode


def test_a_query_of_a_pod_that_is_too_new_waits_for_it() -> None:
    timers = VirtualTimers()
    state = listed_state(["Pod", "Node"], node("n1", addresses=["10.0.0.1"]), all_pods=True)
    waits = PodWait(timers, lambda: True)
    rules = (AclRule(AclAction.ALLOW, namespaces=frozenset({"shop"})), AclRule(AclAction.BLOCK))
    access = AccessControl([Acl((ROOT,), rules)], ClientPods(state, waits), Scope.NAMESPACE)

    def answers(address: str) -> list[str]:
        found: list[str] = []
        answered = access(ask("www.example."), client(address))
        if isinstance(answered, Coroutine):
            pursue(answered, lambda each: found.append("allowed" if each is None else "blocked"))
        else:
            found.append("allowed" if answered is None else "blocked")
        return found

    new, stranger = answers("10.1.0.1"), answers("192.0.2.1")
    assert (new, stranger, answers("10.0.0.1")) == ([], [], ["blocked"])  # a Node is no Pod for certain
    waits.wake(state.apply(Upserted(pod("web", ["10.1.0.1"], "shop")), 1))
    assert (new, stranger) == (["allowed"], [])
    timers.advance(0.2)
    assert (stranger, answers("192.0.2.1")) == (["blocked"], ["blocked"])  # which waits once


ACL_CASES = [
    ("block label app=web", ["shop/web", "bank/web"]),
    ("block namespace shop label app=web", ["shop/web"]),
    ("block namespace shop bank", ["shop/web", "shop/db", "bank/web"]),
    ("block label app=db tier=front", ["shop/web", "shop/db"]),  # one of them is enough
    ("block label app=web,tier=front", ["shop/web"]),
    ("block label !tier", ["shop/db", "bank/web"]),  # a client that is no Pod lacks no label
    ("block label app!=web", ["shop/db"]),
    ("block net 10.1.0.3 namespace shop", []),
    ("block type A namespace bank", ["bank/web"]),
    ("block type TXT namespace bank", []),
    ("allow namespace bank\nblock net 10.0.0.0/8", ["10.0.0.1", "shop/web", "shop/db"]),
]


@pytest.mark.parametrize(("rules", "blocked"), ACL_CASES)
def test_acl_rules_by_pods(make: Any, rules: str, blocked: list[str]) -> None:
    server = make(f". {{\n metadata\n CLUSTER\n acl {{\n {rules}\n }}\n}}\n")
    askers = [STRANGER, "10.0.0.1", *ADDRESSES]
    assert [asker for asker in askers if server.rcode(WEB, asker) == "REFUSED"] == blocked


def test_while_pods_are_unknown_acl_gives_no_verdict(make: Any) -> None:
    server = make(ALLOW_SHOP)
    state = server.generation.clusters[0].state
    state.denied.add("Pod")
    assert [server.rcode(WEB, asker) for asker in ("shop/web", STRANGER)] == ["SERVFAIL", "SERVFAIL"]


@pytest.mark.parametrize(("asker", "plugin"), [("shop/web", "10.96.0.1"), ("bank/web", ""), (STRANGER, "")])
def test_a_view_selects_by_the_client_s_namespace(make: Any, asker: str, plugin: str) -> None:
    assert "".join(make(VIEWS).ask(WEB, asker).data) == plugin


@pytest.mark.parametrize("corefile", [ALLOW_SHOP, VIEWS])
def test_ready_made_answers_are_shared_within_the_namespace_and_with_no_other(make: Any, corefile: str) -> None:
    server, alone = make(corefile), make(corefile)
    for asker in [*ADDRESSES, STRANGER] * 4:
        alone.table.clear()  # so that each query is decided anew
        assert server.ask(WEB, asker).data == alone.ask(WEB, asker).data
    assert server.ready_made >= 5
    assert server.table.common == {}


@pytest.mark.parametrize("corefile", [ALLOW_SHOP, VIEWS.replace(" whoami\n", " acl {\n  block\n }\n")])
def test_an_address_that_another_namespace_s_pod_gets_is_answered_as_that_one_at_once(make: Any, corefile: str) -> None:
    server = make(corefile)
    assert [server.rcode(WEB, "shop/db") for _ in range(4)] == ["NOERROR"] * 4
    assert server.ready_made > 0
    server.delete_pod("shop/db")
    assert [server.rcode(WEB, ADDRESSES["shop/db"]) for _ in range(4)] == ["REFUSED"] * 4
    server.put(pod_object("bank/thief", ADDRESSES["shop/db"], {}))
    assert [server.rcode(WEB, ADDRESSES["shop/db"]) for _ in range(4)] == ["REFUSED"] * 4
    server.put(pod_object("shop/db", ADDRESSES["shop/web"], {}))  # and shop/web's address is of two Pods now
    assert server.rcode(WEB, "shop/web") == "REFUSED"


def test_a_pod_that_changes_its_label_is_answered_by_it_at_once(make: Any) -> None:
    server = make(ALLOW_SHOP.replace("namespace shop", "label tier=front"))
    assert [server.rcode(WEB, "shop/web") for _ in range(3)] == ["NOERROR"] * 3
    server.put(pod_object("shop/web", ADDRESSES["shop/web"], {**LABELS["shop/web"], "tier": "back"}))
    assert server.rcode(WEB, "shop/web") == "REFUSED"


def test_a_terminating_pod_gives_way_to_the_one_that_got_its_address(make: Any) -> None:
    server = make(ALLOW_SHOP)
    ending = pod_object("shop/web", ADDRESSES["shop/web"], {})
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    server.put(ending)
    assert server.rcode(WEB, "shop/web") == "NOERROR"
    server.put(pod_object("bank/next", ADDRESSES["shop/web"], {}))
    assert server.rcode(WEB, "shop/web") == "REFUSED"


NODE_CACHE = "10.0.0.1"  # the address of node-a
NAME_CLIENT = 65519


def from_cache(pod: str | None, node: bytes = b"node-a") -> Opt:
    """The OPT record of a node cache for a client, a Pod or an address; None: it names none."""
    address = packed_address(ADDRESSES.get(pod, pod)) if pod is not None else b""
    return Opt(options=((65518, node), *([(65519, address)] if pod is not None else [])))


def behind(make: Any, corefile: str) -> Any:
    return make(corefile.replace("CLUSTER", "CLUSTER\n topology"))


SHOP_FOR_ALL = ALLOW_SHOP.replace("allow namespace shop\n  block", "allow")
SCOPES = [
    (ALLOW_SHOP, "shop/web", b"\1shop"),
    (ALLOW_SHOP, "bank/web", b"\1bank"),
    (ALLOW_SHOP, STRANGER, b"\2"),
    (ALLOW_SHOP.replace("namespace shop", "label app=web"), "shop/web", b"\2"),
    (ALLOW_SHOP.replace("namespace shop", "namespace shop net 10.0.0.0/8"), "shop/web", b"\2"),
    (LOG.replace("FORMAT", "{/kubernetes/client-namespace}"), "shop/web", b"\0"),
    (VIEWS, "shop/web", b"\1shop"),
    (VIEWS, "bank/web", b"\1bank"),  # the block without a view, to which the query came by the other one's
]


@pytest.mark.parametrize(("corefile", "pod", "option"), SCOPES)
def test_the_reply_says_a_node_cache_for_whom_it_is(make: Any, corefile: str, pod: str, option: bytes) -> None:
    reply = behind(make, corefile).ask(WEB, NODE_CACHE, from_cache(pod))
    assert reply.options[65519] == option


@pytest.mark.parametrize("corefile", [ALLOW_SHOP, VIEWS])
def test_a_node_cache_that_names_no_client_has_to(make: Any, corefile: str) -> None:
    reply = behind(make, corefile).ask(WEB, NODE_CACHE, from_cache(None))
    assert (reply.rcode, reply.options[15][:2]) == ("REFUSED", NAME_CLIENT.to_bytes(2, "big"))


@pytest.mark.parametrize(
    "corefile",
    [SHOP_FOR_ALL, *(LOG.replace("FORMAT", f"{{/kubernetes/{label}}}") for label in ("kind", "client-pod-name"))],
)
def test_where_no_answer_depends_on_pods_a_node_cache_names_none(make: Any, corefile: str) -> None:
    reply = behind(make, corefile).ask(WEB, NODE_CACHE, from_cache(None))
    assert (reply.rcode, reply.options) == ("NOERROR", {})


@pytest.mark.parametrize(
    ("source", "opt", "rcode"),
    [
        (NODE_CACHE, from_cache("shop/web"), "NOERROR"),
        (NODE_CACHE, from_cache("bank/web"), "REFUSED"),
        ("bank/web", from_cache("shop/web"), "REFUSED"),  # a Pod may claim nothing
        (STRANGER, from_cache("shop/web"), "REFUSED"),
        (NODE_CACHE, from_cache("shop/web", b"node-b"), "REFUSED"),  # nor a node cache for another Node
        (NODE_CACHE, Opt(options=((65519, packed_address("10.1.0.1")),)), "REFUSED"),  # nor without a Node
        ("shop/web", from_cache("bank/web"), "NOERROR"),  # what does not count is ignored
        ("shop/web", Opt(options=((65519, b""),)), "NOERROR"),
    ],
)
def test_who_may_name_a_client(make: Any, source: str, opt: Opt, rcode: str) -> None:
    assert behind(make, ALLOW_SHOP).ask(WEB, source, opt).rcode == rcode


def test_a_node_cache_names_pods_of_its_own_node_only(make: Any) -> None:
    server = behind(make, ALLOW_SHOP)
    server.put(pod_object("shop/far", "10.2.0.1", {}, node="node-b"))
    assert server.ask(WEB, NODE_CACHE, from_cache("10.2.0.1")).rcode == "REFUSED"


@pytest.mark.parametrize("address", [b"", b"\x0a", b"\x0a\x01\x00", b"\x0a\x01\x00\x01\x00", bytes(17), bytes(500)])
def test_a_client_of_another_size_than_an_address_is_none(make: Any, address: bytes) -> None:
    opt = Opt(options=((65518, b"node-a"), (65519, address)))
    reply = behind(make, ALLOW_SHOP).ask(WEB, NODE_CACHE, opt)
    assert (reply.rcode, reply.options[15][:2]) == ("REFUSED", NAME_CLIENT.to_bytes(2, "big"))


def test_two_clients_in_one_query_are_none(make: Any) -> None:
    both = tuple((65519, packed_address(ADDRESSES[pod])) for pod in ("shop/web", "bank/web"))
    reply = behind(make, ALLOW_SHOP).ask(WEB, NODE_CACHE, Opt(options=((65518, b"node-a"), *both)))
    assert reply.options[15][:2] == NAME_CLIENT.to_bytes(2, "big")


def test_a_node_cache_gets_a_reply_where_others_get_none(make: Any) -> None:
    server = behind(make, ALLOW_SHOP.replace("  block\n", "  drop\n").replace("drop", "drop namespace bank"))
    assert server.ask(WEB, NODE_CACHE, from_cache("bank/web")).rcode == "REFUSED"
    assert server.ask(WEB, "bank/web") is None


def test_no_reply_to_a_node_cache_is_ready_made(make: Any) -> None:
    server = behind(make, ALLOW_SHOP)
    for asker in ["shop/web", "bank/web", "shop/web", "bank/web"] * 3:
        expected = "NOERROR" if asker == "shop/web" else "REFUSED"
        assert server.ask(WEB, NODE_CACHE, from_cache(asker)).rcode == expected
    assert len(server.table) == 0


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("acl {\n block namespace\n}", "'namespace' of 'block' has nothing after it, expected at least one word"),
        ("acl {\n block namespace a.b\n}", "'namespace' has 'a.b', expected the name of a namespace"),
        ("acl {\n block namespace Shop\n}", "'namespace' has 'Shop', expected the name of a namespace"),
        ("acl {\n block label app=a=b\n}", "'label' has 'app=a=b', expected a selector like app=web: "),
        ("acl {\n block lable app=web\n}", "'block' has 'lable', expected type, net, namespace or label"),
    ],
)
def test_a_rule_without_a_meaning_is_refused(lines: str, problem: str) -> None:
    assert block_problem(f"metadata\nkubernetes cluster.local\n{lines}").startswith(f"Corefile:5: {problem}")


@pytest.mark.parametrize("present", ["metadata", "kubernetes cluster.local"])
def test_acl_by_pods_needs_metadata_and_kubernetes(present: str) -> None:
    missing = "kubernetes" if present == "metadata" else "metadata"
    found = block_problem(f"{present}\nacl {{\n block namespace shop\n}}")
    assert found.startswith(f"Corefile:3: 'acl' has 'namespace' or 'label' in a server block without '{missing}'")


def test_the_labels_that_a_block_reads_are_those_of_its_directives() -> None:
    (block,) = settings(
        ". {\n metadata\n kubernetes cluster.local\n log . {/kubernetes/kind}\n"
        " view v {\n  expr metadata('view/name') == 'v'\n }\n"
        " rewrite edns0 local set 0xffed {kubernetes/client-pod-name}\n"
        " acl {\n  block namespace a label b=c,!d\n }\n}\n"
    ).blocks
    assert labels_read(block.settings) == {
        "kubernetes/kind",
        "view/name",
        "kubernetes/client-pod-name",
        "kubernetes/client-namespace",
        "kubernetes/client-label/b",
        "kubernetes/client-label/d",
    }


@pytest.mark.parametrize(("views", "service"), [(True, "web"), (False, None)])
def test_the_service_of_a_view_is_a_label_where_there_are_views(views: bool, service: str | None) -> None:
    read = KubernetesLabels(KubernetesSettings((parse_name("cluster.local"),)), None, views).find("kubernetes/service")
    assert read is not None
    assert read(query_of("_http._tcp._near.web.shop.svc.cluster.local. SRV"), client("10.1.0.1")) == service
