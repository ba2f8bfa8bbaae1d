"""An explanation as text."""

from tests.support.explained_cluster import explained
from topodns.inspect.text import explanation_text
from topodns.plugins.block import Settings


def test_the_text_reads_from_the_client_to_the_answer(served: Settings) -> None:
    assert explanation_text(explained(served, "soft", node="two").as_dict()).splitlines()[:6] == [
        "client   any on node two (as given)",
        "name     soft.shop.svc.cluster.local. A",
        "policy   annotation: rack, hall, *",
        "tried    rack = 2: 0 matching",
        "tried    hall = north: 2 matching  <- wins",
        "because  the first key with a match wins, with all its matches",
    ]


def test_the_text_of_a_denial_has_no_records(served: Settings) -> None:
    text = explanation_text(explained(served, "hard", client="192.0.2.1").as_dict())
    assert text.startswith("client   192.0.2.1 on an unknown node\n")
    assert text.endswith("\nanswer   NOERROR")
