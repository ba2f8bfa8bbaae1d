"""Metrics of hosts files in a scrape."""

import os
from functools import partial
from pathlib import Path

from tests.support.chains import set_up
from tests.support.corefile_settings import settings
from tests.support.plugin_metrics import shown
from topodns.plugins.setup import BlockSetup

hosts_shown = partial(shown, "hosts")


def prepared(corefile: str) -> list[BlockSetup]:
    return [set_up(block) for block in settings(corefile).blocks]


def test_hosts_are_counted_by_file_those_of_the_corefile_too(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.example b.example\n")
    os.utime(hosts, (1_700_000_000.5, 1_700_000_000.5))
    blocks = prepared(f"a. {{\n hosts {hosts} example {{\n  192.0.2.2 c.example\n }}\n}}\nb. {{\n hosts\n}}")
    entries = hosts_shown("coredns_hosts_entries", blocks=blocks)
    assert entries[f'{{hostsfile="{hosts}"}}'] == 6  # each name's address, and each address's name
    assert entries.keys() == {f'{{hostsfile="{hosts}"}}', '{hostsfile="/etc/hosts"}'}
    assert hosts_shown("coredns_hosts_reload_timestamp_seconds", blocks=blocks[:1]) == {"": 1_700_000_000.5}


def test_no_time_is_shown_of_a_hosts_file_that_does_not_exist(tmp_path: Path) -> None:
    blocks = prepared(f". {{\n hosts {tmp_path}/absent\n}}")
    assert hosts_shown("coredns_hosts_entries", blocks=blocks) == {f'{{hostsfile="{tmp_path}/absent"}}': 0}
    assert hosts_shown("coredns_hosts_reload_timestamp_seconds", blocks=blocks) == {}
