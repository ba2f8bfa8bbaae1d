"""One problem of a Service or of the cluster."""

from topodns.cluster.findings.finding import CLUSTER, Finding, first_names
from topodns.cluster.model import ObjectKey


def test_a_finding_names_what_it_is_about() -> None:
    assert str(Finding(ObjectKey("shop", "db"), "invalid", "no key")) == "Service shop/db: no key"
    assert str(Finding(CLUSTER, "partial", "no label")) == "all Services: no label"


def test_only_what_several_objects_make_of_each_other_may_pass() -> None:
    assert Finding(CLUSTER, "shared_hostname", "").may_pass
    assert not Finding(CLUSTER, "annotation_of_pods", "").may_pass


def test_of_many_names_the_first_are_shown() -> None:
    assert first_names(["a", "b"]) == "a, b"
    assert first_names(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert first_names(list("abcdefg"), count=90) == "a, b, c, d, e and 85 more"
