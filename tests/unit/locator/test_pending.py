"""When which locator is written. Times are in seconds."""

import math
from dataclasses import replace
from ipaddress import ip_address
from itertools import pairwise
from random import Random

import pytest

from topodns.cluster.model import LabelPairs, ObjectKey
from topodns.locator.objects import NODE_LOCATORS, LocatorContent, StoredLocator, ordered
from topodns.locator.pending import FIRST_RETRY, LABEL_WRITES, LAST_RETRY, LocatorWrite, PendingWrites
from topodns.locator.projection import Projection
from topodns.locator.store import KeyedValue, LocatorListing, LocatorStore

WINDOW = 0.5


def key(name: str) -> ObjectKey:
    return ObjectKey("", name)


def locator(name: str, *addresses: str, node: str = "", labels: LabelPairs = ()) -> LocatorContent:
    packed = ordered(ip_address(address).packed for address in addresses)
    return LocatorContent(key(name), f"u-{name}", packed, node, labels=labels)


class Play:
    """Pending writes with an API server that a test plays."""

    def __init__(self) -> None:
        self.desired: dict[str, LocatorContent] = {}
        self.pending = PendingWrites(WINDOW, lambda key: self.desired.get(key.name))
        self.now = 100.0
        self.version = 10
        projection = Projection(NODE_LOCATORS)
        self.store = LocatorStore(
            NODE_LOCATORS, projection, self.pending, lambda: self.now, lambda: None, lambda _kind, _objects: None
        )

    def want(self, name: str, *addresses: str, node: str = "") -> None:
        self.desired[name] = locator(name, *addresses, node=node)
        self.pending.touch([key(name)], self.now)

    def label(self, labels: LabelPairs) -> None:
        """Have all locators have these labels."""
        self.desired = {name: replace(each, labels=labels) for name, each in self.desired.items()}
        self.pending.touch(map(key, self.desired), self.now)

    def drop(self, name: str) -> None:
        del self.desired[name]
        self.pending.touch([key(name)], self.now)

    def take(self) -> LocatorWrite | None:
        return self.pending.take(self.now)

    def stored(self, content: LocatorContent) -> StoredLocator:
        self.version += 1
        return StoredLocator(f"uid-{content.key.name}", str(self.version), content.ips, content)

    def take_list(
        self, listed: dict[ObjectKey, StoredLocator], version: str, listing: LocatorListing | None = None
    ) -> None:
        """The API server has these locators, as of this resourceVersion; `listing` was requested before."""
        listing = listing if listing is not None else self.store.new_listing("NodeLocator")
        for each, stored in listed.items():
            listing.add(KeyedValue(each, stored))
        listing.version = version
        for _ in listing.replace_steps(frozenset()):
            pass

    def done(self, write: LocatorWrite | None) -> None:
        assert write is not None
        stored = self.stored(write.content) if write.content is not None else None
        self.pending.succeeded(write, stored, self.now)

    def write(self) -> str:
        """Write all that is due, as `name: addresses` or `name deleted`."""
        written = []
        while (write := self.take()) is not None:
            written.append(said(write))
            self.done(write)
        return "; ".join(sorted(written))

    def after(self, seconds: float) -> str:
        self.now += seconds
        return self.write()


def said(write: LocatorWrite) -> str:
    if write.content is None:
        return f"{write.key.name} deleted"
    return f"{write.key.name}: {' '.join(str(ip_address(ip)) for ip in write.content.ips)}".rstrip()


@pytest.fixture
def play() -> Play:
    return Play()


def test_the_first_change_is_written_at_once_and_later_ones_once_in_each_window(play: Play) -> None:
    play.want("a", "10.0.0.1")
    assert play.write() == "a: 10.0.0.1"
    for number in range(2, 6):
        play.want("a", f"10.0.0.{number}")
        assert play.write() == ""
    assert play.pending.wait(play.now) == pytest.approx(WINDOW)
    assert play.after(WINDOW) == "a: 10.0.0.5"
    assert play.after(10.0) == ""
    play.want("a", "10.0.0.6")
    assert play.write() == "a: 10.0.0.6"


def test_a_change_that_is_undone_before_it_is_written_is_not_written(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.want("a", "10.0.0.2")
    play.want("a", "10.0.0.1")
    assert play.after(WINDOW) == ""
    assert (len(play.pending), play.pending.wait(play.now)) == (0, math.inf)


def test_each_locator_has_a_window_of_its_own(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.want("b", "10.0.0.2")
    assert play.write() == "b: 10.0.0.2"


def test_a_locator_that_should_not_be_is_deleted_as_it_was_seen(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.drop("a")
    play.now += WINDOW
    write = play.take()
    assert write is not None
    assert write.stored is not None
    assert (said(write), write.stored.version) == ("a deleted", "11")
    play.done(write)
    assert (len(play.pending.stored), len(play.pending)) == (0, 0)


def test_an_address_leaves_the_old_locator_before_it_is_added_to_the_new_one(play: Play) -> None:
    play.want("a", "10.0.0.1", "10.0.0.2")
    assert play.write() == "a: 10.0.0.1 10.0.0.2"
    play.now += WINDOW
    play.want("b", "10.0.0.1")
    assert play.take() is None
    play.want("a", "10.0.0.2")
    write = play.take()
    assert write is not None
    assert said(write) == "a: 10.0.0.2"
    assert play.take() is None  # until the write is done
    play.done(write)
    assert play.write() == "b: 10.0.0.1"


def test_the_rest_of_a_change_waits_for_a_moving_address_a_window_at_most(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.want("b", "10.0.0.1", "10.0.0.9")
    assert play.after(WINDOW / 2) == ""
    assert play.after(WINDOW / 2) == "b: 10.0.0.9"
    assert play.after(60.0) == ""
    assert len(play.pending) == 1
    play.drop("a")
    assert play.write() == "a deleted; b: 10.0.0.1 10.0.0.9"


def test_two_locators_that_exchange_addresses_never_have_one_both(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.want("b", "10.0.0.2")
    play.write()
    play.now += WINDOW
    play.want("a", "10.0.0.2")
    play.want("b", "10.0.0.1")
    held = {"a": {"10.0.0.1"}, "b": {"10.0.0.2"}}
    for _ in range(8):
        while (write := play.take()) is not None:
            assert write.content is not None
            held[write.key.name] = {str(ip_address(ip)) for ip in write.content.ips}
            assert not held["a"] & held["b"]
            play.done(write)
        play.now += WINDOW / 2
    assert held == {"a": {"10.0.0.2"}, "b": {"10.0.0.1"}}


def test_a_podlocator_without_another_address_waits_and_is_not_written_empty(play: Play) -> None:
    play.want("p", "10.0.0.1", node="n1")
    play.write()
    play.want("q", "10.0.0.1", node="n2")
    assert play.after(5 * WINDOW) == ""
    play.drop("p")
    assert play.write() == "p deleted; q: 10.0.0.1"


def test_an_address_may_be_at_either_locator_after_a_write_without_an_answer(play: Play) -> None:
    play.want("a", "10.0.0.1")
    write = play.take()
    assert write is not None
    play.pending.failed(write, play.now)
    play.desired["a"] = locator("a")
    play.want("b", "10.0.0.1")
    assert play.after(FIRST_RETRY / 2) == "b:"
    assert play.after(FIRST_RETRY / 2) == "a:; b: 10.0.0.1"


def test_a_creation_without_an_answer_is_undone_where_the_locator_should_not_be_any_more(play: Play) -> None:
    play.want("a", "10.0.0.1")
    write = play.take()
    assert write is not None
    play.pending.failed(write, play.now)
    play.drop("a")
    play.want("b", "10.0.0.1")
    assert play.after(FIRST_RETRY) == "a deleted; b:"
    assert play.after(WINDOW) == "b: 10.0.0.1"


def test_a_write_that_was_refused_has_changed_nothing(play: Play) -> None:
    play.want("a", "10.0.0.1")
    write = play.take()
    assert write is not None
    play.pending.refused(write, play.now)
    del play.desired["a"]
    play.want("b", "10.0.0.1")
    assert play.write() == "b: 10.0.0.1"


def test_a_refused_write_is_repeated_ever_later(play: Play) -> None:
    play.want("a", "10.0.0.1")
    waits = []
    for _ in range(9):
        write = play.take()
        assert write is not None
        play.pending.refused(write, play.now)
        play.want("a", "10.0.0.1")  # which does not make it earlier
        waits.append(play.pending.wait(play.now))
        play.now += waits[-1]
    assert waits[:3] == [FIRST_RETRY, 2 * FIRST_RETRY, 4 * FIRST_RETRY]
    assert waits[-1] == LAST_RETRY


def test_after_a_conflict_the_event_with_the_newer_version_makes_it_due(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.want("a", "10.0.0.2")
    play.now += WINDOW
    write = play.take()
    assert write is not None
    play.pending.refused(write, play.now)
    play.now += 0.1
    foreign = StoredLocator("uid-a", "99", (), None)
    play.pending.see(key("a"), foreign, "99", play.now)
    play.now += WINDOW
    write = play.take()
    assert write is not None
    assert write.stored == foreign
    assert said(write) == "a: 10.0.0.2"


def test_what_others_changed_or_deleted_is_written_again(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.now += WINDOW
    play.pending.see(key("a"), StoredLocator("uid-a", "50", (), None), "50", play.now)
    assert play.write() == "a: 10.0.0.1"
    play.now += WINDOW
    play.pending.see(key("a"), None, "60", play.now)
    write = play.take()
    assert write is not None
    assert (said(write), write.stored) == ("a: 10.0.0.1", None)


def test_events_of_own_writes_that_come_late_change_nothing(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.want("a", "10.0.0.2")
    assert play.after(WINDOW) == "a: 10.0.0.2"
    play.pending.see(key("a"), StoredLocator("uid-a", "11", (), locator("a", "10.0.0.1")), "11", play.now)
    assert play.after(WINDOW) == ""


def test_a_late_deletion_of_the_object_before_frees_no_address(play: Play) -> None:
    """The response to the write that created the new object came before the event of the deletion."""
    play.want("a", "10.0.0.1")
    play.write()
    play.drop("a")
    assert play.after(WINDOW) == "a deleted"
    play.want("a", "10.0.0.1")
    assert play.write() == "a: 10.0.0.1"
    play.pending.see(key("a"), None, str(play.version - 1), play.now)
    assert (len(play.pending.stored), play.after(WINDOW)) == (1, "")
    play.want("b", "10.0.0.1")
    assert play.after(5 * WINDOW) == "b:"
    play.pending.see(key("a"), None, str(play.version + 1), play.now)  # this one is of the object that is there
    assert len(play.pending.stored) == 1
    assert play.write() == "a: 10.0.0.1"


def test_an_object_with_another_owner_is_deleted_and_created_anew_at_once(play: Play) -> None:
    """Such as the locator of a Node that was deleted and created with the same name: Kubernetes would delete it."""
    play.want("a", "10.0.0.1")
    of_another = StoredLocator("uid", "9", (), None, frozenset({"u-a", "other"}))
    play.pending.see(key("a"), of_another, "9", play.now)
    write = play.take()
    assert write is not None
    assert (said(write), write.stored) == ("a deleted", of_another)
    play.done(write)
    write = play.take()
    assert write is not None
    assert (said(write), write.stored) == ("a: 10.0.0.1", None)


def test_one_that_is_deleted_while_it_is_written_is_written_again(play: Play) -> None:
    play.want("a", "10.0.0.1")
    write = play.take()
    assert write is not None
    play.pending.see(key("a"), None, "99", play.now)
    play.done(write)  # with version 11
    assert play.after(WINDOW) == "a: 10.0.0.1"


def test_a_list_of_the_stored_ones_finds_orphans_and_what_is_missing(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.want("b", "10.0.0.2")
    play.write()
    play.now += WINDOW
    orphan = locator("c", "10.0.0.3")
    listed = {key("a"): play.stored(play.desired["a"]), key("c"): play.stored(orphan)}
    play.take_list(listed, "99")
    assert play.write() == "b: 10.0.0.2; c deleted"


def test_a_list_that_is_older_than_a_write_does_not_take_it_back(play: Play) -> None:
    play.want("a", "10.0.0.1")
    requested = play.store.new_listing("NodeLocator")
    play.write()  # version 11
    play.take_list({}, "10", requested)
    assert play.after(WINDOW) == ""


def test_a_list_of_a_restored_etcd_counts_though_it_is_older(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.want("b", "10.0.0.2")
    play.write()  # versions 11 and 12
    play.now += WINDOW
    assert play.pending.newest == 12
    restored = StoredLocator("uid-a", "3", (), locator("a"))
    play.take_list({key("a"): restored}, "4")
    write = play.take()
    assert write is not None
    assert write.stored == restored
    play.done(write)
    assert play.write() == "b: 10.0.0.2"


def test_the_lag_is_the_age_of_the_oldest_change_that_is_not_written(play: Play) -> None:
    assert play.pending.lag(play.now) == 0.0
    play.want("a", "10.0.0.1")
    play.now += 3.0
    play.want("b", "10.0.0.2")
    assert play.pending.lag(play.now) == 3.0
    play.write()
    assert play.pending.lag(play.now) == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_no_two_locators_have_one_address_and_all_is_written_in_the_end(seed: int) -> None:
    """500 random moves, with writes whose outcome is success, refusal, or an effect that is not known."""
    rng, play, names = Random(seed), Play(), [f"n{number}" for number in range(5)]
    place = {f"10.0.0.{number}": rng.choice(names) for number in range(1, 9)}
    server: dict[str, LocatorContent] = {}
    written_at: dict[str, list[float]] = {name: [] for name in names}

    def project() -> None:
        for name in names:
            play.want(name, *(ip for ip, at in place.items() if at == name))

    def serve(write: LocatorWrite, effect: bool, answer: str) -> None:
        if effect:
            assert write.content is not None
            taken = {ip for name, held in server.items() if name != write.key.name for ip in held.ips}
            assert not taken & set(write.content.ips)
            server[write.key.name] = write.content
        if answer == "success":
            play.done(write)
        elif answer == "refusal":
            play.pending.refused(write, play.now)
        else:
            play.pending.failed(write, play.now)

    for _ in range(500):
        if rng.random() < 0.5:
            place[rng.choice(list(place))] = rng.choice(names)
            project()
        play.now += rng.choice((0.0, 0.05, 0.3, 1.0))
        writes = [write for _ in range(rng.randrange(4)) if (write := play.take()) is not None]
        for write in rng.sample(writes, len(writes)):
            written_at[write.key.name].append(write.began)
            answer = rng.choice(("success", "success", "success", "refusal", "silence"))
            serve(write, answer == "success" or (answer == "silence" and rng.random() < 0.5), answer)
    project()
    for _ in range(400):
        while (write := play.take()) is not None:
            serve(write, True, "success")
        play.now += 1.0
    assert len(play.pending) == 0
    assert {ip: name for name, held in server.items() for ip in held.ips} == {
        ip_address(ip).packed: name for ip, name in place.items()
    }
    for times in written_at.values():
        assert all(later - earlier >= WINDOW - 1e-9 for earlier, later in pairwise(times))


# Labels

ZONE_A, ZONE_B = ((("zone", "a"),), (("zone", "b"),))


def labelled(play: Play, number: int) -> None:
    """So many locators, which are as they should be; their labels are to become those of zone a."""
    for at in range(number):
        play.want(f"p{at}", f"10.0.{at // 250}.{at % 250 + 1}")
    play.write()
    play.now += 10.0
    play.label(ZONE_A)


def test_changes_of_labels_are_written_at_a_rate_and_each_once(play: Play) -> None:
    labelled(play, 1500)
    began, written = play.now, list[str]()
    while len(play.pending):
        written += filter(None, play.write().split("; "))
        play.now += play.pending.wait(play.now) if play.pending.wait(play.now) < math.inf else 0.0
    assert len(set(written)) == len(written) == 1500
    assert play.now - began == pytest.approx(1500 / LABEL_WRITES, rel=0.1)


def test_other_changes_are_written_before_those_of_labels(play: Play) -> None:
    labelled(play, 1500)
    play.write()
    play.want("new", "10.9.0.1")
    play.want("p1499", "10.9.0.2")
    assert play.write() == "new: 10.9.0.1; p1499: 10.9.0.2"
    play.now += 1.0
    assert play.pending.lag(play.now) == 0.0, "only changes of labels wait"


def test_a_change_of_labels_that_is_undone_before_its_turn_is_not_written(play: Play) -> None:
    labelled(play, 1000)
    first = play.write().count(";") + 1
    play.label(())
    total = 0
    while len(play.pending):
        total += len(list(filter(None, play.after(play.pending.wait(play.now)).split("; "))))
    assert total == first, "only those that had been written are written again"


def test_a_change_of_labels_waits_for_the_window_and_for_the_write_before_it(play: Play) -> None:
    play.want("a", "10.0.0.1")
    play.write()
    play.label(ZONE_A)
    assert play.write() == ""
    assert play.after(WINDOW) == "a: 10.0.0.1"
    play.now += WINDOW
    play.label(ZONE_B)
    write = play.take()
    play.label(ZONE_A)
    assert play.take() is None
    play.done(write)
    assert play.after(WINDOW) == "a: 10.0.0.1"
    stored = play.pending.stored[key("a")].content
    assert stored is not None
    assert stored.labels == ZONE_A
    assert len(play.pending) == 0


def test_a_refused_change_of_labels_is_repeated(play: Play) -> None:
    labelled(play, 1)
    write = play.take()
    assert write is not None
    play.pending.refused(write, play.now)
    assert play.write() == ""
    assert play.after(FIRST_RETRY) == "p0: 10.0.0.1"
