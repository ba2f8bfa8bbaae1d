"""The origin that a name is below."""

from collections.abc import Callable

import pytest

from tests.support.cluster_dig import PASSED, ClusterDig, expected, settings
from tests.support.model_builders import endpoint, endpoint_slice, namespace, pod, service
from tests.support.rrset_text import lines
from topodns.cluster.model import ClusterObject

NS = "testns"


Cases = dict[str, tuple[str, str]]


def cluster() -> list[ClusterObject]:
    return [
        namespace(NS),
        namespace("podns"),
        service("svc1", NS, ["10.0.0.1"], ["http:80"]),
        service("hdls1", NS),
        service("external", NS, external_name="ext.interwebs.test"),
        endpoint_slice("svc1", endpoint("172.0.0.1", hostname="ep1a"), namespace=NS, ports=["http:80"]),
        endpoint_slice("hdls1", endpoint("172.0.0.2"), namespace=NS, ports=["http:80"]),
        pod("web", ["10.240.0.1", "fd00::5"], namespace="podns"),
    ]


def _cases(table: Cases) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(("question", "answer"), table.values(), ids=table.keys())


@pytest.fixture(scope="module")
def dig() -> ClusterDig:
    return ClusterDig(cluster(), settings(), own_addresses=["10.1.2.3", "fd00::9"])


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


@_cases(CASES)
def test_the_origin_is_answered_in_the_spelling_of_the_query_and_the_rest_as_stored(
    dig: ClusterDig, question: str, answer: str
) -> None:
    resolution = dig.resolve(question)
    assert resolution is not None
    response = resolution.response
    sections = (*response.answer, *response.authority, *response.additional)
    assert "\n".join(lines(sections, question.split()[0])) == expected(answer)


def test_the_longest_origin_that_holds_the_name_answers() -> None:
    dig = ClusterDig(cluster(), settings("local.", "cluster.local."))
    assert dig("svc1.testns.svc.cluster.local. A").endswith("10.0.0.1")
    assert dig("svc1.testns.svc.local. A").endswith("10.0.0.1")
    assert dig("cluster.local. A") == "NODATA cluster.local. 5"
    assert dig("svc1.testns.svc.example.org. A") == PASSED


def test_the_root_can_be_an_origin() -> None:
    dig = ClusterDig(cluster(), settings("."))
    assert dig("svc1.testns.svc. A") == "svc1.testns.svc. 5 IN A 10.0.0.1"
    assert dig("svc0.testns.svc. A") == "NXDOMAIN . 5"
    assert dig(". SOA") == ". 5 IN SOA ns.dns. hostmaster. 1499347823 7200 1800 86400 5"
