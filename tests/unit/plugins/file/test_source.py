"""The file of `file`, looked at again and again. Time is virtual; the file is real."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from tests.support.cluster_dig import query_of
from tests.support.virtual_event_loop import run_virtually
from topodns.dependency import Fact
from topodns.dns.name import parse_name
from topodns.dns.zonefile import BadZone
from topodns.plugins.file.lookup import look_up
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.source import MAX_OCTETS, ZoneFileSource
from topodns.plugins.file.zone import file_fact

ORIGIN = parse_name("example.org")
SOA = "$TTL 5\n@ SOA ns host {serial} 1 1 1 1\n"


class Story:
    """A source of a file for one origin, read at start, and looked at each minute."""

    def __init__(self, directory: Path, text: str | None, reload: float = 60.0) -> None:
        self._path = directory / "db.example.org"
        if text is not None:
            self.write(text)
        self.facts: list[frozenset[Fact]] = []
        self.source = ZoneFileSource(ZoneFile(str(self._path), (ORIGIN,), reload))
        self.source.changed = self.facts.append

    def write(self, text: str) -> None:
        """As an editor does: the file is replaced."""
        new = self._path.with_suffix(".new")
        new.write_text(text)
        os.replace(new, self._path)

    @property
    def fact(self) -> Fact:
        return file_fact(str(self._path))

    def address(self) -> str | None:
        table = self.source.table(ORIGIN)
        if table is None:
            return None
        answer = look_up(table, query_of("www.example.org. A")).response.answer
        return ".".join(map(str, answer[0].rdatas[0])) if answer else ""

    def after(self, text: str | None) -> str | None:
        """The address after two minutes, in the middle of which the file has become this text."""

        async def pass_time() -> None:
            running = asyncio.create_task(self.source.poller.run())
            await asyncio.sleep(70)
            if text is not None:
                self.write(text)
            await asyncio.sleep(70)
            running.cancel()

        run_virtually(pass_time())
        return self.address()


def zone_text(address: str, serial: int = 1) -> str:
    return SOA.format(serial=serial) + f"www A {address}\n"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    story = Story(tmp_path, zone_text("192.0.2.1"))
    story.source.load()
    story.facts.clear()
    return story


def test_a_changed_file_counts_from_the_next_look_whatever_its_serial(story: Story) -> None:
    assert story.address() == "192.0.2.1"
    assert story.after(zone_text("192.0.2.2")) == "192.0.2.2"
    assert story.facts == [frozenset({story.fact})]


def test_a_file_that_stays_as_it_is_is_not_read_again(story: Story) -> None:
    assert story.after(None) == "192.0.2.1"
    assert story.facts == []


def test_a_broken_file_leaves_the_last_good_one_and_a_warning(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    assert story.after("www A nonsense") == "192.0.2.1"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"{story.source.poller.path}:1: " in caplog.text
    assert "(zone example.org.); the records read before stay" in caplog.text


BESIDE_CNAME = {
    "records behind it": ("www CNAME a\nwww A 192.0.2.1\nwww TXT x", "db.example.org:3: www", "db.example.org:4", ""),
    "records before it": (
        "a A 192.0.2.1\nwww A 192.0.2.1\nwww TXT x\nwww CNAME a",
        "db.example.org:4: www",
        "db.example.org:6",
        "",
    ),
    "a record of another file": ("www CNAME a\n$INCLUDE hosts", "db.example.org:3: www", "hosts:2", ""),
    "records of several names": (
        "a CNAME www\nb CNAME www\nc CNAME www\nc A 192.0.2.1\nb MX 1 a\na TXT x",
        "db.example.org:5: c",
        "db.example.org:6",
        "; 3 names have both",
    ),
}


@pytest.mark.parametrize(("text", "first", "second", "more"), BESIDE_CNAME.values(), ids=BESIDE_CNAME)
def test_a_name_with_a_cname_and_other_records_is_warned_of_once_for_each_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, first: str, second: str, more: str
) -> None:
    """RFC 1034 section 3.6.2."""
    (tmp_path / "hosts").write_text("\nwww A 192.0.2.1\n")
    story = Story(tmp_path, SOA.format(serial=1) + text)
    story.source.load()
    warned = (
        f"plugin/file: {tmp_path}/{first}.example.org. has a CNAME and other records, also at {tmp_path}/{second}: "
        f"not all of them are answered{more}"
    )
    assert caplog.messages == [warned]
    story.after(SOA.format(serial=2) + text)
    assert caplog.messages == [warned, warned]


def test_the_soa_is_such_a_record_too_and_an_equal_cname_is_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(tmp_path, zone_text("192.0.2.1") + "a CNAME www\na CNAME www\n")
    story.source.load()
    assert caplog.messages == []
    story.after(SOA.format(serial=2) + "@ CNAME www")
    assert "db.example.org:2: example.org. has a CNAME and other records" in caplog.text


def test_without_a_look_nothing_changes(tmp_path: Path) -> None:
    story = Story(tmp_path, zone_text("192.0.2.1"), reload=0)
    story.source.load()
    assert story.after(zone_text("192.0.2.2")) == "192.0.2.1"


def test_a_missing_file_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    story = Story(tmp_path, None)
    story.source.load()
    assert story.address() is None
    missing = f"cannot read '{story.source.poller.path}': No such file or directory; SERVFAIL until it can be read"
    assert caplog.messages == [f"plugin/file: {missing}"]
    assert story.after(zone_text("192.0.2.1")) == "192.0.2.1"
    assert story.facts == [frozenset({story.fact})]


def test_a_missing_file_that_is_not_looked_for_again_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Story(tmp_path, None, reload=0).source.load()


def test_a_change_of_an_included_file_counts_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    included = tmp_path / "more" / "hosts"
    included.parent.mkdir()
    included.write_text("www A 192.0.2.1\n")
    text = SOA.format(serial=1) + "$INCLUDE more/hosts\n"
    story = Story(tmp_path, text)
    story.source.load()
    assert story.address() == "192.0.2.1"
    included.write_text("www A 192.0.2.22\n")
    assert story.after(None) == "192.0.2.22"
    included.unlink()
    assert story.after(None) == "192.0.2.22"
    included.write_text("www A 192.0.2.3\n")
    assert story.after(None) == "192.0.2.3"


def test_an_included_file_that_is_missing_stops_the_start_and_is_named(tmp_path: Path) -> None:
    story = Story(tmp_path, SOA.format(serial=1) + "$INCLUDE hosts\n")
    problem = f"db.example.org:3: .INCLUDE: cannot read '{tmp_path}/hosts': No such file or directory"
    with pytest.raises(BadZone, match=problem):
        story.source.load()


def test_a_file_with_its_included_files_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(";\n" * (MAX_OCTETS // 4))
    story = Story(tmp_path, SOA.format(serial=1) + "$INCLUDE hosts\n" * 2)
    with pytest.raises(BadZone, match=f"hosts: longer than {MAX_OCTETS} octets"):
        story.source.load()


REFUSED = {
    "no SOA record": ("www 5 A 192.0.2.1", "no SOA record for example.org."),
    "two SOA records": (
        "@ 5 SOA ns host 1 1 1 1 1\n\n@ SOA ns host 2 1 1 1 1",
        "db:3: a second SOA record for example.org. .zone example.org.",
    ),
    "not UTF-8": (";\udcff\nwww \udcff", "db:2: found the octet 0xff, which is no UTF-8"),
    "UTF-16": ("\udcff\udcfe;\0", "db: found UTF-16 or UTF-32, expected UTF-8"),
    "too long": (";" * (MAX_OCTETS + 1), f"longer than {MAX_OCTETS} octets"),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_zone_stops_the_start(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "db"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadZone, match=problem) as refused:
        ZoneFileSource(ZoneFile(str(path), (ORIGIN,))).load()
    assert str(path) in str(refused.value)


def test_one_file_may_be_read_for_several_origins(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_text(zone_text("192.0.2.1"))
    origins = (ORIGIN, parse_name("example.net"))
    source = ZoneFileSource(ZoneFile(str(path), origins))
    source.load()
    assert [table.origin for each in origins if (table := source.table(each)) is not None] == list(origins)
