"""Metrics of templates in a scrape."""

from tests.support.exposition_samples import counted
from tests.support.plugin_metrics import shown
from topodns.plugins.setup import Shared
from topodns.plugins.template.handler import FailureKey, TemplateCounts
from topodns.query.counters import ReplyKind, TemplateMatch

CLUSTER = ReplyKind("cluster.local.", "A", "NOERROR", "kubernetes", False, "", "", 1, 1)


def test_failures_of_templates_are_counted_with_their_text() -> None:
    shared = Shared()
    counts = shared.get(TemplateCounts, "dns://:53", "inside")
    counts.render_failures[FailureKey("example.", "IN", "A", "answer", "{{ index .Match 9 }}")] = 2
    counts.record_failures[FailureKey(".", "CH", "TXT", "additional", "no record")] = 1
    assert shown("template", "coredns_template_template_failures_total", shared) == {
        '{class="IN",section="answer",server="dns://:53",template="{{ index .Match 9 }}",type="A",view="inside",'
        'zone="example."}': 2
    }
    assert shown("template", "coredns_template_rr_failures_total", shared) == {
        '{class="CH",section="additional",server="dns://:53",template="no record",type="TXT",view="inside",zone="."}': 1
    }


def test_matches_of_templates_are_counted_by_the_zone_of_the_template() -> None:
    matched = CLUSTER._replace(origin=".", plugin="template", detail=TemplateMatch("example.", "IN", "A"))
    failed = matched._replace(rcode="SERVFAIL")
    of_a_type_without_name = matched._replace(detail=TemplateMatch(".", "IN", ""))
    without_a_match = failed._replace(detail=None)
    kinds = [(matched, 3), (failed, 1), (of_a_type_without_name, 1), (without_a_match, 5), (CLUSTER, 9)]
    assert shown("template", "coredns_template_matches_total", counters=[counted(kinds)]) == {
        '{class="IN",server="dns://:53",type="A",view="",zone="example."}': 4,
        '{class="IN",server="dns://:53",type="",view="",zone="."}': 1,
    }
