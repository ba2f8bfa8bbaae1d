"""Settings of node-cache: the files of its configuration."""

from topodns.nodecache.settings import FileText, NodeConfigTexts


def test_without_the_kube_dns_configmap_the_template_is_left() -> None:
    template = FileText("Corefile.base", ". {}")
    texts = NodeConfigTexts(template, FileText("stubDomains", "{}"), FileText("upstreamNameservers", problem="no"))
    assert texts.without_kube_dns() == NodeConfigTexts(
        template, FileText("stubDomains"), FileText("upstreamNameservers")
    )
