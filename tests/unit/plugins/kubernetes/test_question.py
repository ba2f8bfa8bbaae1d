"""Questions under an origin, and answers as resolutions."""

import pytest

from tests.support.cluster_dig import query_of
from tests.support.query_builders import client
from tests.support.rrset_text import lines
from topodns.dependency import node_fact, service_fact
from topodns.dns.message import Flag
from topodns.dns.name import name_wire, parse_name
from topodns.dns.rrtype import Rcode, RRType
from topodns.plugins.kubernetes.question import NAME_ERRORS, Answer, Missing, question_of, resolution_of
from topodns.plugins.kubernetes.zone import Origins
from topodns.query.plugin import Scope
from topodns.topology.select import Location

WEB = parse_name("web.a.svc.cluster.local.")


def test_a_question_has_the_labels_in_front_of_its_origin_and_the_origin_as_spelled() -> None:
    origin = Origins([parse_name("cluster.local.")]).primary
    query = query_of("web.a.svc.cluster.local. A")._replace(spelling=name_wire(("Web", "a", "svc", "CLUSTER", "local")))
    question = question_of(query, client("10.0.0.1"), origin)
    assert (question.labels, question.qname) == (("web", "a", "svc"), WEB)
    assert question.origin_wire == b"\x07CLUSTER\x05local\0"


def test_records_have_the_type_queried_and_cnames_to_targets_follow_them() -> None:
    answer = Answer(rdatas=(bytes((10, 0, 0, 1)),), ttl=5, targets=(parse_name("www.example."),))
    resolution = resolution_of(answer, RRType.A, 30)
    assert lines(resolution.response.answer, "web.") == ["web. 5 IN A 10.0.0.1", "web. 30 IN CNAME www.example."]
    assert resolution.chase == (parse_name("www.example."),)


@pytest.mark.parametrize("missing", Missing)
def test_a_name_error_is_authoritative_and_has_no_records(missing: Missing) -> None:
    response = resolution_of(NAME_ERRORS[missing], RRType.A, 30).response
    assert (response.rcode, response.answer, response.flags) == (Rcode.NXDOMAIN, (), Flag.AA)


def test_a_refusal_is_not_authoritative() -> None:
    assert resolution_of(Answer(Rcode.REFUSED), RRType.A, 30).response.flags == 0


@pytest.mark.parametrize(
    ("location", "claimed", "scope", "facts"),
    [
        (None, False, Scope.EVERYONE, ()),
        (Location("n1"), False, Scope.NODE, (node_fact("n1"),)),
        (Location("n1"), True, Scope.CLIENT, (node_fact("n1"),)),
        (Location(), False, Scope.NODE, ()),
    ],
)
def test_an_answer_is_for_the_clients_whose_location_it_rests_on(
    location: Location | None, claimed: bool, scope: Scope, facts: tuple[object, ...]
) -> None:
    own = service_fact("a", "web")
    resolution = resolution_of(Answer(location=location, claimed=claimed, facts=(own,)), RRType.A, 30)
    assert (resolution.scope, resolution.facts) == (scope, (own, *facts))
