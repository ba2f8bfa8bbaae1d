"""The operator's view of the resolver: a real one that asks a real upstream, scraped."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.scraped_metrics import Scrape
from tests.support.server_process import METRICS, Server, serving, until

UPSTREAM = r"""
. {
    bind HERE
    template IN A example {
        match ^missing\.
        rcode NXDOMAIN
        authority "example. 60 IN SOA ns.example. admin.example. 1 7200 3600 1209600 60"
        fallthrough
    }
    template IN A example {
        match ^failing\.
        rcode SERVFAIL
        fallthrough
    }
    template IN A example {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
}
"""
COREFILE = f"""
. {{
    bind HERE
    prometheus HERE:{METRICS}
    errors
    hosts HOSTS {{
        192.0.2.9 inline.example
        fallthrough
    }}
    template IN TXT example {{
        answer "{{{{ .Name }}}} 60 IN TXT hello"
    }}
    template IN MX example {{
        answer "{{{{ .Name }}}} 60 IN MX {{{{ .Type }}}}"
    }}
    cache
    forward . UPSTREAM
}}
"""


@dataclass
class Resolver:
    server: Server
    to: str  # the upstream, as metrics name it

    def cache(self, seen: Scrape, name: str, **labels: str) -> float:
        return seen.sum(f"coredns_cache_{name}", server=self.label, zones=".", view="", **labels)

    @property
    def label(self) -> str:
        return f"dns://{self.server.address}:0"

    def reload(self) -> None:
        done = len(self.server.lines("Reloading complete"))
        self.server.signal(signal.SIGUSR1)
        until(lambda: len(self.server.lines("Reloading complete")) > done, "the reload")


@pytest.fixture
def resolver(tmp_path: Path) -> Iterator[Resolver]:
    (tmp_path / "hosts").write_text("192.0.2.7 seven.example\n")
    for directory in ("upstream", "resolver"):
        (tmp_path / directory).mkdir()
    with serving(tmp_path / "upstream", UPSTREAM) as upstream:
        to = f"{upstream.address}:{upstream.port}"
        corefile = COREFILE.replace("HOSTS", str(tmp_path / "hosts")).replace("UPSTREAM", to)
        with serving(tmp_path / "resolver", corefile) as server:
            yield Resolver(server, to)


def test_every_hit_of_the_cache_is_counted_the_ready_made_ones_too(resolver: Resolver) -> None:
    for _ in range(20):
        assert resolver.server.ask("www.example A").rcode == "NOERROR"
        assert resolver.server.ask("missing.example A").rcode == "NXDOMAIN"
    resolver.server.ask("www.example A", tcp=True)
    seen = resolver.server.scrape()
    assert resolver.cache(seen, "hits_total", type="success") == 20
    assert resolver.cache(seen, "hits_total", type="denial") == 19
    assert resolver.cache(seen, "misses_total") == 2
    assert resolver.cache(seen, "requests_total") == 41
    assert resolver.cache(seen, "entries", type="success") == 1
    assert resolver.cache(seen, "entries", type="denial") == 1
    assert seen.sum("coredns_cache_served_stale_total") == 0
    assert seen.sum("coredns_dns_responses_total", plugin="cache") == 39


def test_upstream_responses_are_counted_and_a_reload_keeps_the_counts(resolver: Resolver) -> None:
    server, here = resolver.server, {"proxy_name": "forward", "to": resolver.to}
    for _ in range(2):
        for name in ("www", "missing", "failing"):
            server.ask(f"{name}.example A")
        server.ask("mail.example A", tcp=True)
        resolver.reload()
    seen = server.scrape()
    duration = "coredns_proxy_request_duration_seconds"
    by_rcode = {
        rcode: seen.sum(f"{duration}_count", **here, rcode=rcode) for rcode in ("NOERROR", "NXDOMAIN", "SERVFAIL")
    }
    assert by_rcode == {"NOERROR": 4, "NXDOMAIN": 2, "SERVFAIL": 2}
    assert seen.sum(f"{duration}_bucket", **here, le="+Inf") == 8
    assert seen.sum(f"{duration}_sum", **here) > 0
    assert seen.sum("coredns_forward_requests_total", to=resolver.to) == 8
    assert seen.sum("coredns_forward_responses_total", to=resolver.to, rcode="NXDOMAIN") == 2
    assert seen.sum("coredns_proxy_conn_cache_misses_total", **here, proto="udp") == 6
    assert seen.sum("coredns_proxy_conn_cache_misses_total", **here, proto="tcp") == 2
    assert resolver.cache(seen, "misses_total") == 8
    assert resolver.cache(seen, "entries") == 0
    assert seen.sum("topodns_forward_in_flight") == 0


def test_an_upstream_that_is_gone_shows(tmp_path: Path) -> None:
    corefile = f". {{\n bind HERE\n prometheus HERE:{METRICS}\n errors\n forward . 127.0.0.1:1\n}}"
    with serving(tmp_path, corefile) as server:
        assert server.ask("www.example A").rcode == "SERVFAIL"
        until(lambda: server.metric("coredns_proxy_healthcheck_failures_total", to="127.0.0.1:1") > 0, "a probe")
        assert server.metric("coredns_forward_healthcheck_failures_total", to="127.0.0.1:1") > 0
        assert server.metric("coredns_forward_requests_total") == 0


def test_a_failure_is_logged_when_it_comes_and_not_when_the_cache_repeats_it(resolver: Resolver) -> None:
    server = resolver.server
    for _ in range(5):
        assert server.ask("failing.example A").rcode == "SERVFAIL"
    seen = server.scrape()
    assert seen.sum("coredns_dns_responses_total", rcode="SERVFAIL", plugin="forward") == 1
    assert seen.sum("coredns_dns_responses_total", rcode="SERVFAIL", plugin="cache") == 4
    server.ask("after.example MX")
    server.wait_for_line("after.example")
    assert len(server.lines("plugin/errors: 2 failing.example. A")) == 1


def test_hosts_and_templates_are_counted(resolver: Resolver) -> None:
    server = resolver.server
    assert server.ask("seven.example A").rcode == server.ask("inline.example A").rcode == "NOERROR"
    for _ in range(10):
        assert server.ask("any.example TXT").rcode == "NOERROR"
    assert server.ask("any.example MX").rcode == "SERVFAIL"
    here = {"server": resolver.label, "zone": "example.", "view": "", "class": "IN"}
    seen = server.scrape()
    assert seen.sum("coredns_template_matches_total", **here, type="TXT") == 10
    assert seen.sum("coredns_template_matches_total", **here, type="MX") == 1
    text = "{{ .Name }} 60 IN MX {{ .Type }}"
    failures = seen.sum("coredns_template_rr_failures_total", **here, type="MX", section="answer", template=text)
    assert failures == 1
    assert seen.sum("coredns_hosts_entries") == 4
    assert seen.sum("coredns_hosts_reload_timestamp_seconds") > 1_700_000_000
