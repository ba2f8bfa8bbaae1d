"""Metrics of templates in a scrape."""

from tests.support.plugin_metrics import shown
from topodns.plugins.setup import Shared
from topodns.plugins.template.handler import FailureKey, TemplateCounts


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
