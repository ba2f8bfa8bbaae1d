"""The origin that a name is below, and the namespaces that a `kubernetes` directive exposes."""

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, expected, settings
from tests.support.model_builders import namespace, service, state_of
from tests.support.rrset_text import lines
from tests.unit.plugins.kubernetes.scene import OWN_ADDRESSES, few_services
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import ClusterObject
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import excludes


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(few_services(), settings(), own_addresses=OWN_ADDRESSES)


CASES = {
    "a negative answer": (
        "not-a-service.testns.svc.ClUsTeR.lOcAl. A",
        "ClUsTeR.lOcAl. 5 IN SOA ns.dns.ClUsTeR.lOcAl. hostmaster.ClUsTeR.lOcAl. 1499347823 7200 1800 86400 5",
    ),
    "an address": ("SvC1.TeStNs.SvC.cLuStEr.LoCaL. A", "SvC1.TeStNs.SvC.cLuStEr.LoCaL. 5 IN A 10.0.0.1"),
    "SRV": (
        "_HtTp._TcP.sVc1.TeStNs.SvC.cLuStEr.LoCaL. SRV",
        """
        _HtTp._TcP.sVc1.TeStNs.SvC.cLuStEr.LoCaL. 5 IN SRV 0 100 80 svc1.testns.svc.cLuStEr.LoCaL.
        svc1.testns.svc.cLuStEr.LoCaL. 5 IN A 10.0.0.1
        """,
    ),
    "SOA": (
        "Cluster.local. SOA",
        "Cluster.local. 5 IN SOA ns.dns.Cluster.local. hostmaster.Cluster.local. 1499347823 7200 1800 86400 5",
    ),
    "a reverse name that is not there": (
        "9.9.9.9.IN-addr.ARPA. PTR",
        "IN-addr.ARPA. 5 IN SOA ns.dns.IN-addr.ARPA. hostmaster.IN-addr.ARPA. 1499347823 7200 1800 86400 5",
    ),
}


@pytest.mark.parametrize(("question", "answer"), CASES.values(), ids=CASES)
def test_the_origin_is_answered_in_the_spelling_of_the_query_and_the_rest_as_stored(
    dig: ClusterDig, question: str, answer: str
) -> None:
    resolution = dig.resolve(question)
    response = resolution.response
    sections = (*response.answer, *response.authority, *response.additional)
    assert "\n".join(lines(sections, question.split()[0])) == expected(answer)


def test_the_longest_origin_that_holds_the_name_answers() -> None:
    dig = ClusterDig(few_services(), settings("local.", "cluster.local."))
    assert dig("svc1.testns.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("svc1.testns.svc.local. A").endswith("10.0.0.1")
    assert dig("cluster.local. A") == "NODATA cluster.local. 5"
    assert dig("svc1.testns.svc.example.org. A") == PASSED


def test_the_root_can_be_an_origin() -> None:
    dig = ClusterDig(few_services(), settings("."))
    assert dig("svc1.testns.svc. A") == "svc1.testns.svc. 5 IN A 10.0.0.1"
    assert dig("svc0.testns.svc. A") == "NXDOMAIN . 5"
    assert dig(". SOA") == ". 5 IN SOA ns.dns. hostmaster. 1499347823 7200 1800 86400 5"


def two_tenants() -> list[ClusterObject]:
    return [
        namespace("red", {"tenant": "red"}),
        namespace("blue", {"tenant": "blue"}),
        service("web", "red", ["10.0.0.1"]),
        service("web", "blue", ["10.0.0.2"]),
        service("web", "ghost", ["10.0.0.3"]),
    ]


def test_namespaces_lists_the_only_ones_that_exist() -> None:
    dig = ClusterDig(two_tenants(), settings(namespaces=frozenset({"red", "ghost"})))
    assert dig("web.red.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("web.blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    assert dig("blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_a_listed_namespace_needs_its_object_all_the_same() -> None:
    dig = ClusterDig(two_tenants(), settings(namespaces=frozenset({"ghost"})))
    assert dig("web.ghost.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"


def test_namespace_labels_selects_namespaces() -> None:
    dig = ClusterDig(two_tenants(), settings(namespace_labels=parse_selector("tenant=red")))
    assert dig("web.red.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("web.blue.svc.cluster.local. A") == "NXDOMAIN cluster.local. 5"
    dig.apply(namespace("blue", {"tenant": "red"}))
    assert dig("web.blue.svc.cluster.local. A").endswith("10.0.0.2")


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        (settings(), ""),
        (settings(namespaces=frozenset({"red"})), "blue ghost"),
        (settings(namespaces=frozenset({"red", "ghost"})), "blue"),
        (settings(namespace_labels=parse_selector("tenant=red")), "blue"),
    ],
)
def test_a_namespace_is_hidden_by_the_options_and_not_by_its_absence(options: KubernetesSettings, hidden: str) -> None:
    state = state_of(*two_tenants())
    assert [name for name in ("blue", "ghost", "red") if excludes(options, state, name)] == hidden.split()


def test_ptr_is_hidden_by_namespaces_and_not_by_namespace_labels() -> None:
    listed = ClusterDig(two_tenants(), settings(namespaces=frozenset({"red"})))
    assert listed("1.0.0.10.in-addr.arpa. PTR").endswith("PTR web.red.svc.cluster.local.")
    assert listed("2.0.0.10.in-addr.arpa. PTR") == "NXDOMAIN in-addr.arpa. 5"
    selected = ClusterDig(two_tenants(), settings(namespace_labels=parse_selector("tenant=red")))
    assert selected("2.0.0.10.in-addr.arpa. PTR").endswith("PTR web.blue.svc.cluster.local.")
