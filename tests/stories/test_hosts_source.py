"""The file of `hosts`, edited while it is looked at."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE, either_loop, eventually
from topodns.dependency import Fact
from topodns.dns.name import ROOT, name_wire, parse_name
from topodns.plugins.hosts import source as hosts_source
from topodns.plugins.hosts.handler import hosts_fact
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.source import HostsSource

SOON = 0.01  # seconds between looks


def source_of(path: Path, reload: float = SOON) -> HostsSource:
    return HostsSource(Hosts((ROOT,), str(path), reload=reload))


def addresses(source: HostsSource, name: str) -> list[str]:
    return [str(ip_address(each)) for each in source.table().addresses(name_wire(parse_name(name)), 4)]


@contextlib.asynccontextmanager
async def looking(source: HostsSource) -> AsyncIterator[list[frozenset[Fact]]]:
    """Meanwhile it runs; gives the changes that it published."""
    got: list[frozenset[Fact]] = []
    source.changed = got.append
    task = asyncio.create_task(source.poller.run())
    try:
        yield got
        assert not task.done()
    finally:
        task.cancel()


def test_it_is_read_at_start(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a.example\n")
    os.utime(path, (1_700_000_000.5, 1_700_000_000.5))
    source = source_of(path)
    assert (addresses(source, "a.example."), source.poller.modified) == ([], 0.0)
    source.load()
    assert (addresses(source, "a.example."), source.poller.modified) == (["10.0.0.1"], 1_700_000_000.5)


def test_a_start_without_it_warns_and_has_no_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = source_of(tmp_path / "hosts")
    source.load()
    assert source.table().entries == 0
    assert caplog.messages == [f"plugin/hosts: cannot read {tmp_path}/hosts: No such file or directory"]


@either_loop
async def test_an_edit_is_read_at_the_next_poll_and_published(loop_name: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a.example\n")
    source = source_of(path)
    source.load()
    async with looking(source) as got:
        path.write_text("10.0.0.22 a.example\n")
        await eventually(lambda: addresses(source, "a.example.") == ["10.0.0.22"])
        await eventually(lambda: got == [frozenset((hosts_fact(str(path)),))])


@either_loop
async def test_a_file_that_comes_later_is_taken(loop_name: str, tmp_path: Path) -> None:
    source = source_of(tmp_path / "hosts")
    source.load()
    async with looking(source) as got:
        (tmp_path / "hosts").write_text("10.0.0.1 a.example\n" * 200)
        await eventually(lambda: addresses(source, "a.example.") == ["10.0.0.1"])
        await eventually(lambda: len(got) == 1)


@either_loop
async def test_entries_that_were_read_stay_when_the_file_is_removed(
    loop_name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a.example\n")
    source = source_of(path)
    source.load()
    async with looking(source) as got:
        path.unlink()
        await eventually(lambda: "what was read before stays" in caplog.text)
        assert (addresses(source, "a.example."), got) == (["10.0.0.1"], [])
        path.write_text("10.0.0.2 a.example\n")
        await eventually(lambda: addresses(source, "a.example.") == ["10.0.0.2"])
    assert len(caplog.messages) == 1


def test_reload_0_never_looks_again(tmp_path: Path) -> None:
    source = source_of(tmp_path / "hosts", 0.0)
    asyncio.run(asyncio.wait_for(source.poller.run(), PATIENCE))


def test_a_bad_line_is_left_out_and_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a.example\n\n10.0.0.2\n10.0.0 b.example\n")
    source = source_of(path)
    source.load()
    assert addresses(source, "a.example.") == ["10.0.0.1"]
    assert caplog.messages == [
        f"plugin/hosts: {path}:3: found only '10.0.0.2', expected an address and its names; the line is left out",
        f"plugin/hosts: {path}:4: '10.0.0' is no IP address; the line is left out",
    ]
    path.write_text("10.0.0.3 a.example\n\n10.0.0.2\n10.0.0 b.example\nx y\n")
    source.load()
    assert addresses(source, "a.example.") == ["10.0.0.3"]
    assert caplog.messages[2:] == [f"plugin/hosts: {path}:5: 'x' is no IP address; the line is left out"]


def test_a_bad_name_is_left_out_and_the_others_of_its_line_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hosts"
    path.write_text(f"10.0.0.1 a.example b..example {'x' * 64} c.example\n")
    source = source_of(path)
    source.load()
    assert addresses(source, "a.example.") == addresses(source, "c.example.") == ["10.0.0.1"]
    assert caplog.messages == [f"plugin/hosts: {path}:1: empty label in 'b..example'; the name is left out"]


def test_of_many_bad_lines_the_first_ten_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "hosts"
    path.write_text("x y\n" * 1000)
    source_of(path).load()
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == f"plugin/hosts: {path}: 990 more lines like these"


def test_a_huge_file_is_read_up_to_a_bound(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(hosts_source, "MAX_OCTETS", 50)
    path = tmp_path / "hosts"
    path.write_text("10.0.0.1 a.example\n10.0.0.2 b.example\n10.0.0.3 c.example\n")
    source = source_of(path)
    source.load()
    assert [addresses(source, f"{name}.example.") for name in "abc"] == [["10.0.0.1"], ["10.0.0.2"], []]
    assert caplog.messages == [f"plugin/hosts: {path}: longer than 50 octets; the rest is left out"]


def test_a_directory_is_no_file_but_no_end_either(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source_of(tmp_path).load()
    assert caplog.messages == [f"plugin/hosts: cannot read {tmp_path}: Is a directory"]
