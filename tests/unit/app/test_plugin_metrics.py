"""What a scrape shows of caches, hosts files, templates, autopath and dns64."""

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.support.caching import denied, positive, question
from tests.support.scraping import counted as tallied
from tests.support.scraping import only, scraped
from tests.support.virtual_timers import VirtualTimers
from topodns.app.counters import CacheLabels, Counted, ServerLabels
from topodns.app.load import settings_from_text
from topodns.app.plugin_metrics import resolver_readings
from topodns.app.server_block import Workings, Workshop
from topodns.plugins.cache.entry import key_of
from topodns.query.counters import QueryCounters, ReplyKind
from topodns.query.plugin_counts import FailureKey

HERE = CacheLabels("dns://:53", ".", "")
HIT = ReplyKind(".", "A", "NOERROR", "cache", False, "success .", "", 1, 1)


@pytest.fixture
def workshop() -> Workshop:
    return Workshop(VirtualTimers(), Random(0))


def made(workshop: Workshop, corefile: str, directory: Path) -> list[Workings]:
    """The workings of the Corefile's blocks."""
    settings = settings_from_text(corefile, str(directory / "Corefile"), 53, {})
    return [workshop.make(block) for block in settings.blocks]


def shown(
    name: str, counted: Counted | None = None, workings: Iterable[Workings] = (), tallies: Iterable[QueryCounters] = ()
) -> dict[str, float]:
    readings = resolver_readings(counted or Counted(), lambda: workings, lambda: tallies)
    return only(scraped(readings=readings), name)


def test_hits_are_those_of_the_tallies_and_a_stale_one_is_of_what_it_was() -> None:
    hits = [(HIT, 5), (HIT._replace(outcome="stale success ."), 2), (HIT._replace(outcome="denial .", qtype="AAAA"), 3)]
    other = QueryCounters("dns://10.96.0.10:53", "tcp", "1")
    tallied([(HIT._replace(outcome="stale denial a.,b.", view="inside"), 1)], into=other)
    missed = HIT._replace(plugin="forward", outcome="")
    assert shown("coredns_cache_hits_total", tallies=[tallied([*hits, (missed, 9)]), other]) == {
        '{server="dns://:53",type="success",view="",zones="."}': 7,
        '{server="dns://:53",type="denial",view="",zones="."}': 3,
        '{server="dns://10.96.0.10:53",type="denial",view="inside",zones="a.,b."}': 1,
    }


def test_requests_are_hits_and_misses() -> None:
    counted = Counted()
    counted.caches[HERE].misses = 4
    counted.caches[HERE._replace(server="dns://:5353")].misses = 1
    tallies = [tallied([(HIT, 5)]), tallied([(HIT, 2)], into=QueryCounters("dns://:53", "tcp", "1"))]
    assert shown("coredns_cache_requests_total", counted, tallies=tallies) == {
        '{server="dns://:53",view="",zones="."}': 11,
        '{server="dns://:5353",view="",zones="."}': 1,
    }
    assert list(shown("coredns_cache_misses_total", counted).values()) == [4, 1]


@pytest.mark.parametrize(
    ("attribute", "name"), [("prefetches", "prefetch"), ("served_stale", "served_stale"), ("drops", "drops")]
)
def test_what_a_cache_counts_has_coredns_s_names(attribute: str, name: str) -> None:
    counted = Counted()
    setattr(counted.caches[HERE], attribute, 3)
    assert shown(f"coredns_cache_{name}_total", counted) == {'{server="dns://:53",view="",zones="."}': 3}


def test_evictions_are_counted_by_type() -> None:
    counted = Counted()
    counted.caches[HERE].success.evictions, counted.caches[HERE].denial.evictions = 2, 9
    assert shown("coredns_cache_evictions_total", counted) == {
        '{server="dns://:53",type="success",view="",zones="."}': 2,
        '{server="dns://:53",type="denial",view="",zones="."}': 9,
    }


def test_entries_stand_under_each_server_of_the_block(workshop: Workshop, tmp_path: Path) -> None:
    (workings,) = made(workshop, "a. b.:54 {\n bind 127.0.0.1 127.0.0.2\n cache\n}", tmp_path)
    assert workings.cache is not None
    for name, response in (("x.a. A", positive()), ("y.a. A", positive()), ("z.b. A", denied())):
        workings.cache.memory.learn(key_of(question(name)), question(name), response, b"")
    servers = [f"dns://127.0.0.{host}:{port}" for host in (1, 2) for port in (53, 54)]
    expected = {}
    for server in servers:
        expected[f'{{server="{server}",type="success",view="",zones="a.,b."}}'] = 2
        expected[f'{{server="{server}",type="denial",view="",zones="a.,b."}}'] = 1
    assert shown("coredns_cache_entries", workings=[workings]) == expected


def test_a_reload_keeps_what_a_cache_counted(workshop: Workshop, tmp_path: Path) -> None:
    corefile = ". {\n cache {\n  success 1024\n }\n}"
    for _ in range(2):
        (workings,) = made(workshop, corefile, tmp_path)
        assert workings.cache is not None
        for number in range(1025):
            query = question(f"{number}. A")
            workings.cache.memory.learn(key_of(query), query, positive(), b"")
        workings.cache.counts.misses += 1
    evicted = shown("coredns_cache_evictions_total", workshop.counted)
    assert evicted['{server="dns://:53",type="success",view="",zones="."}'] == 2 * (1025 - 1024 + 1024 // 64)
    assert list(shown("coredns_cache_misses_total", workshop.counted).values()) == [2]


def test_hosts_are_counted_by_file_those_of_the_corefile_too(workshop: Workshop, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example b.example\n")
    os.utime(hosts, (1_700_000_000.5, 1_700_000_000.5))
    workings = made(
        workshop, f"a. {{\n hosts {hosts} example {{\n  192.0.2.2 c.example\n }}\n}}\nb. {{\n hosts\n}}", tmp_path
    )
    entries = shown("coredns_hosts_entries", workings=workings)
    assert entries[f'{{hostsfile="{hosts}"}}'] == 6  # each name's address, and each address's name
    assert entries.keys() == {f'{{hostsfile="{hosts}"}}', '{hostsfile="/etc/hosts"}'}
    assert shown("coredns_hosts_reload_timestamp_seconds", workings=workings[:1]) == {"": 1_700_000_000.5}


def test_no_time_is_told_of_a_hosts_file_that_is_not_there(workshop: Workshop, tmp_path: Path) -> None:
    workings = made(workshop, f". {{\n hosts {tmp_path}/absent\n}}", tmp_path)
    assert shown("coredns_hosts_entries", workings=workings) == {f'{{hostsfile="{tmp_path}/absent"}}': 0}
    assert shown("coredns_hosts_reload_timestamp_seconds", workings=workings) == {}


def test_failures_of_templates_are_counted_with_their_text() -> None:
    counted = Counted()
    counts = counted.templates[ServerLabels("dns://:53", "inside")]
    counts.render_failures[FailureKey("example.", "IN", "A", "answer", "{{ index .Match 9 }}")] = 2
    counts.record_failures[FailureKey(".", "CH", "TXT", "additional", "no record")] = 1
    assert shown("coredns_template_template_failures_total", counted) == {
        '{class="IN",section="answer",server="dns://:53",template="{{ index .Match 9 }}",type="A",view="inside",'
        'zone="example."}': 2
    }
    assert shown("coredns_template_rr_failures_total", counted) == {
        '{class="CH",section="additional",server="dns://:53",template="no record",type="TXT",view="inside",zone="."}': 1
    }


def test_autopath_and_dns64_are_counted_by_server() -> None:
    counted = Counted()
    counted.autopath["dns://:53"].successes = 3
    counted.dns64["dns://:53"].translated = 4
    assert shown("coredns_autopath_success_total", counted) == {'{server="dns://:53"}': 3}
    assert shown("coredns_dns64_requests_translated_total", counted) == {'{server="dns://:53"}': 4}
