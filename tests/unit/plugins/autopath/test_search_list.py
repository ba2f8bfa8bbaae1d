"""The list that a name comes from, and names that no search may lead outside."""

import pytest

from tests.support.model_builders import pod
from tests.support.query_builders import client
from topodns.cluster.model import Replaced
from topodns.cluster.state import ClusterState
from topodns.dns.name import Name, name_text, parse_name
from topodns.dns.rrtype import Rcode
from topodns.plugins.autopath.search_list import (
    DistantClusterSearch,
    FixedSearch,
    SearchList,
    behind_namespace,
    may_be_of_service,
    own_namespace,
)

CLUSTER = parse_name("cluster.local.")
SEARCH = DistantClusterSearch((CLUSTER, parse_name("other.")), (parse_name("corp.example."),))


def texts(found: SearchList) -> list[str]:
    return [name_text(domain) for domain, _ in found.others]


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ("db-0.db", True),
        ("10-0-0-7.db", True),
        ("fd00-10--a.db", True),
        ("_http._tcp.web", True),
        ("primary.db", False),
        ("example.com", False),
        ("db-0", False),
        ("www.db-0.db", False),
    ],
)
def test_labels_of_endpoints_and_ports_may_belong_to_a_service(labels: str, service: bool) -> None:
    assert may_be_of_service(tuple(labels.split("."))) is service


def test_the_domains_after_the_namespace_end_with_the_bare_name() -> None:
    found = behind_namespace(CLUSTER, (parse_name("corp.example."), CLUSTER))
    assert [name_text(domain) for domain, _ in found] == ["svc.cluster.local.", "cluster.local.", "corp.example.", "."]


def test_a_file_s_list_begins_after_its_first_domain() -> None:
    search = FixedSearch((parse_name("a.org."), parse_name("b.org."), parse_name("b.org.")))
    name = parse_name("www.example.a.org.")
    assert (search.covers(name), search.covers(parse_name("a.org.")), search.covers(parse_name("x.b.org."))) == (
        True,
        False,
        False,
    )
    found = search.search_list(name, client())
    assert (found.labels, texts(found), found.premises) == (2, ["b.org.", "."], ())


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("example.com.shop.svc.cluster.local.", True),
        ("example.com.shop.svc.other.", True),
        ("redis.data.svc.cluster.local.", False),
        ("example.com.shop.pod.cluster.local.", False),
        ("example.com.shop.svc.example.", False),
        ("cluster.local.", False),
    ],
)
def test_a_distant_cluster_s_names_have_two_labels_before_the_namespace(name: str, covered: bool) -> None:
    assert SEARCH.covers(parse_name(name)) is covered


def test_the_answers_of_the_distant_dns_are_the_premises() -> None:
    found = SEARCH.search_list(parse_name("example.com.shop.svc.cluster.local."), client())
    assert found.labels == 2
    assert texts(found) == ["svc.cluster.local.", "cluster.local.", "corp.example.", "."]
    assert [(name_text(premise.name), premise.rcode) for premise in found.premises] == [
        ("shop.svc.cluster.local.", Rcode.NOERROR),
        ("com.shop.svc.cluster.local.", Rcode.NXDOMAIN),
    ]


@pytest.mark.parametrize(("name", "depth"), [("db-0.db.shop.svc.other.", 0), ("example.com.shop.svc.other.", 1)])
def test_names_of_endpoints_and_targets_of_aliases_are_not_searched(name: str, depth: int) -> None:
    labels: Name = parse_name(name)
    assert SEARCH.search_list(labels, client()._replace(depth=depth)).others == ()


def test_an_address_has_a_namespace_where_its_pods_agree() -> None:
    state = ClusterState(frozenset({"Pod"}))
    pods = (
        pod("a", ["10.0.0.1"], "shop"),
        pod("b", ["10.0.0.1"], "shop"),
        pod("c", ["10.0.0.2"], "shop"),
        pod("d", ["10.0.0.2"], "data"),
        pod("e", ["10.0.0.3"], "shop", host_network=True),
    )
    state.apply(Replaced("Pod", pods), 0)
    found = [own_namespace(state, bytes((10, 0, 0, last))) for last in (1, 2, 3, 4)]
    assert found == ["shop", "", "", ""]
