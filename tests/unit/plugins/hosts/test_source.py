"""A hosts file is read in short steps and within limits, however long its lines are."""

from pathlib import Path

import pytest

from topodns.dns.name import ROOT, name_wire, parse_name
from topodns.files.text import MAX_LINE
from topodns.plugins.hosts import source as hosts_source
from topodns.plugins.hosts import table as hosts_table
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.source import HostsSource
from topodns.plugins.hosts.table import NAMES_AT_ONCE, HostEntry, HostTable


def test_a_long_line_is_added_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 " + " ".join(f"n{number}" for number in range(5_000)) + "\n")
    source = HostsSource(Hosts((ROOT,), str(path), reverse=False))
    steps, add = [0], HostTable.add  # names that each step adds

    def counted(table: HostTable, entry: HostEntry) -> bool:
        steps[-1] += len(entry.names)
        return add(table, entry)

    monkeypatch.setattr(HostTable, "add", counted)
    for _ in source._read():
        steps.append(0)
    assert (sum(steps), source.table().entries) == (5_000, 5_000)
    assert max(steps) <= NAMES_AT_ONCE
    assert len(steps) > 2 * 5_000 // NAMES_AT_ONCE  # to parse the names, and to add them


@pytest.mark.parametrize("beyond", ["", "\n10.0.0.2 m\n"])
def test_a_line_has_no_more_names_than_the_table_has_room_for(
    beyond: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hosts_table, "MAX_ENTRIES", 70)
    monkeypatch.setattr(hosts_source, "MAX_ENTRIES", 70)
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 " + " ".join(f"n{number}" for number in range(500)) + beyond)
    source = HostsSource(Hosts((ROOT,), str(path), reverse=False))
    source.load()
    assert source.table().entries == 70
    assert caplog.messages == [f"plugin/hosts: {path}:1: more than 70 entries; the rest is left out"]


def test_a_line_longer_than_its_limit_is_left_out_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a\n10.0.0.2 " + "b " * (MAX_LINE // 2) + "\n10.0.0.3 c\n")
    source = HostsSource(Hosts((ROOT,), str(path)))
    source.load()
    found = [source.table().addresses(name_wire(parse_name(name)), 4) != () for name in "abc"]
    assert found == [True, False, True]
    assert caplog.messages == [f"plugin/hosts: {path}:2: more than {MAX_LINE} octets; the line is left out"]


def test_of_very_many_bad_lines_a_bounded_number_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hosts_source, "_MAX_COUNTED", 30)
    path = tmp_path / "hosts"
    path.write_text("x y\n" * 1000)
    HostsSource(Hosts((ROOT,), str(path))).load()
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"plugin/hosts: {path}: at least 20 more lines like these"
