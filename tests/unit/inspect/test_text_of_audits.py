"""The text of an audit: a table in 120 columns."""

from collections.abc import Mapping

import pytest

from topodns.inspect.text import WIDTH, audit_text, wide_audit_text

FINDING = {"service": "shop/db", "severity": "error", "kind": "uncovered", "text": "clients get nothing"}


def service(name: str = "shop/db", keys: tuple[str, ...] = ("a",), **more: object) -> dict[str, object]:
    zones = [
        {"zone": "", "nodes": 1, "covered": 0, "endpoints": 0},
        {"zone": "a", "nodes": 2, "covered": 2, "endpoints": 3},
        {"zone": "b", "nodes": 2, "covered": 1, "endpoints": 0},
        {"zone": "c", "nodes": 0, "covered": 0, "endpoints": 1},
    ]
    plain = {"service": name, "keys": list(keys), "source": "annotation", "endpoints": 3, "nodes": 5, "covered": 3}
    return {**plain, "zones": zones, "skew": 1.25, "findings": [], **more}


def cluster(*services: object, **more: object) -> dict[str, object]:
    counts = {"error": 1, "warning": 2, "info": 0}
    return {
        "origins": ["cluster.local."],
        "waiting": [],
        "nodes": 5,
        "counts": counts,
        "others": [],
        "others_left_out": 0,
        "services": list(services),
        "services_left_out": 0,
        "what_if": None,
        **more,
    }


def lines(*clusters: Mapping[str, object]) -> list[str]:
    text = audit_text({"version": 1, "clusters": list(clusters)})
    assert all(len(line) <= WIDTH for line in text.split("\n"))
    return text.split("\n")


def test_a_service_is_a_row_with_its_findings_below() -> None:
    summary, blank, head, row, finding = lines(cluster(service(findings=[FINDING])))
    assert (summary, blank) == ("5 Nodes, 1 Service with keys or guards: 1 error, 2 warnings", "")
    assert head.split() == ["SERVICE", "KEYS", "READY", "NODES", "COVERED", "ZONES", "SKEW"]
    assert row.split() == ["shop/db", "a", "3", "3", "of", "5", "1", "of", "2", "1.2"]
    assert [head.index("KEYS"), head.index("READY") + 5, len(head)] == [
        row.index(" a ") + 1,
        row.index("3") + 1,
        len(row),
    ]
    assert finding == "    error   uncovered: clients get nothing"


def test_a_cluster_without_keys_is_one_line() -> None:
    counts = {"error": 0, "warning": 0, "info": 0}
    assert lines(cluster(counts=counts)) == ["5 Nodes, 0 Services with keys or guards: nothing found"]


def test_findings_about_the_cluster_come_first_with_their_service() -> None:
    about_all = {**FINDING, "service": None, "severity": "warning", "kind": "unlocated"}
    found = lines(cluster(service(), others=[about_all, FINDING], others_left_out=1))
    assert found[1:4] == [
        "    warning unlocated: clients get nothing",
        "    error   shop/db: uncovered: clients get nothing",
        "and 1 more finding",
    ]


def test_long_names_and_texts_stay_within_the_width() -> None:
    long = {**FINDING, "text": "a word " * 50}
    found = lines(cluster(service(f"{'n' * 63}/{'s' * 63}", ("example.com/" + "k" * 63,) * 3, findings=[long])))
    assert found[3].count("…") == 2
    assert len(found) == 8


def test_services_without_keys_show_why() -> None:
    found = lines(cluster(service(keys=(), source="hints"), service(keys=(), source=None)))
    assert [line.split()[1] for line in found[3:]] == ["(hints)", "(none)"]


def test_guards_are_behind_the_keys() -> None:
    guarded = service(guards={"min-endpoints": "2", "apply-to": "near"})
    assert " a; min-endpoints 2, apply-to near " in lines(cluster(guarded))[3]


def test_rows_that_are_left_out_are_counted() -> None:
    assert lines(cluster(service(), services_left_out=7))[-1] == "and 7 more Services"


def test_a_what_if_is_printed_as_differences() -> None:
    change = {
        "service": "shop/db",
        "before": service(),
        "after": service(keys=("a", "b"), endpoints=2, covered=3, skew=0.0),
        "gone": [FINDING],
        "new": [{**FINDING, "severity": "info", "text": "fine"}],
    }
    what_if = {
        "changes": ["node=n1:down", "keys=shop/db:a,b"],
        "counts": {"error": 0, "warning": 0, "info": 1},
        "services": [change],
        "services_left_out": 2,
    }
    assert lines(cluster(service(), what_if=what_if)) == [
        "what if node=n1:down and keys=shop/db:a,b",
        "findings: 1 error, 2 warnings -> 1 info",
        "",
        "shop/db",
        "    keys a -> a,b",
        "    ready endpoints 3 -> 2, skew 1.2 -> -",
        "  - error   uncovered: clients get nothing",
        "  + info    uncovered: fine",
        "and 2 more Services",
    ]


def test_a_what_if_without_effect_says_so() -> None:
    what_if = {"changes": ["node=n1:down"], "counts": {"error": 0, "warning": 0, "info": 0}, "services": []}
    assert lines(cluster(what_if={**what_if, "services_left_out": 0}))[-1] == "no Service changes"


def test_several_clusters_are_told_apart_by_their_origins_and_one_that_is_not_complete_says_so() -> None:
    found = lines(cluster(waiting=["Pod: denied"]), cluster(origins=["b.", "c."]))
    assert found[:2] == ["cluster cluster.local.", "not complete, waiting for Pod: denied"]
    assert "cluster b. c." in found


@pytest.mark.parametrize("document", [{}, {"clusters": 1}, {"clusters": [1]}, {"clusters": [{}]}])
def test_the_document_of_another_version_is_refused(document: Mapping[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        audit_text(document)


def test_a_wide_audit_cuts_no_cell_and_wraps_no_finding() -> None:
    name, keys = f"shop/{'n' * 60}", tuple(f"example.com/{'k' * 30}{number}" for number in range(3))
    text = "clients get nothing " * 20
    found = service(name, keys, findings=[{**FINDING, "text": text.strip()}])
    lines = wide_audit_text({"version": 1, "clusters": [cluster(found, service())]}).split("\n")
    head, first, finding, second = lines[2:]
    assert first.split()[:3] == [name, ",".join(keys), "3"]
    assert finding.endswith(f"uncovered: {text.strip()}")
    assert {head.index("KEYS"), first.index("example.com"), second.index("a")} == {head.index("KEYS")}
