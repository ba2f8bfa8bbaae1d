"""NodeLocators and PodLocators by the addresses in them. `topology.claims` decides which of them are believed.

`ClusterState` maintains it. Where there is no object of a Node, the labels in its NodeLocator stand for it, else those
that most of its PodLocators have: while the locator writes new labels into one after another, all servers with the same
objects take the same ones. An address may be in several locators: each says that it is on its Node. They are kept in
the order in which they arrived, as far as that is known: a locator that arrives alone, after the first list of its
kind, is later than all before it, and those of a list have no order.
"""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from topodns.cluster.model import Kind, LabelPairs, Node, NodeLocator, ObjectKey, PodLocator, RefusedAddresses
from topodns.dependency import Fact, address_facts, node_fact

MOST: Final = 100  # locators of one address that are compared

AnyLocator = NodeLocator | PodLocator


class LocatorClaim(NamedTuple):
    """An address in a locator."""

    key: ObjectKey  # of the locator; without a namespace it is a NodeLocator
    node_name: str
    of_node: bool  # the Node's own address, not that of a Pod
    later: bool  # it arrived after all claims before it

    @property
    def kind(self) -> Kind:
        return kind_of_key(self.key)

    @property
    def locator(self) -> str:
        """The locator, for a log line."""
        return f"{self.kind} {'/'.join(filter(None, self.key))}"


class _LabelCounts:
    """The different labels that PodLocators have of one Node, each with the number of these PodLocators.

    A change takes logarithmic time, so that a user who may write PodLocators cannot make it slow by their number.
    """

    __slots__ = ("_numbers", "_order")

    def __init__(self) -> None:
        self._numbers: dict[LabelPairs, int] = {}  # no zeros
        self._order: list[tuple[int, LabelPairs]] = []  # a heap of (-number, labels); other numbers are outdated

    def move(self, labels: LabelPairs, more: int) -> None:
        """So many more PodLocators have these labels; fewer if negative."""
        number = self._numbers.get(labels, 0) + more
        if number:
            self._numbers[labels] = number
            heappush(self._order, (-number, labels))
        else:
            del self._numbers[labels]
        if len(self._order) > 2 * len(self._numbers) + 2:
            self._order = [(-number, each) for each, number in self._numbers.items()]
            heapify(self._order)

    @property
    def most(self) -> LabelPairs:
        """The labels that most PodLocators have; of several the first in order of names and values, () for none."""
        while self._order and self._numbers.get(self._order[0][1]) != -self._order[0][0]:
            heappop(self._order)
        return self._order[0][1] if self._order else ()


class LocatorIndex:
    """The locators of one cluster, their addresses, and the Nodes that they describe.

    `listing`: whether the next changes are of a list, so that their order is unknown.
    """

    def __init__(self) -> None:
        self.node_locators: dict[tuple[str, str], NodeLocator] = {}  # the caller changes both, then calls `take`
        self.pod_locators: dict[tuple[str, str], PodLocator] = {}
        self.nodes: dict[str, Node] = {}  # by name: those of which locators have labels, with nothing else
        self._labels: dict[str, _LabelCounts] = {}  # by Node name: those in its PodLocators
        self.listing = False
        self.refusing: dict[ObjectKey, tuple[RefusedAddresses, ...]] = {}  # by key of the locator
        # By address the keys of its locators in order of arrival, each with whether it arrived after all before it.
        # A single key is stored without a dict: there may be 150,000 addresses.
        self._arrivals: dict[bytes, ObjectKey | dict[ObjectKey, bool]] = {}
        self._unchecked: set[bytes] = set()
        self._backlog: list[bytes] = []
        self._all_unchecked = False

    def take(self, key: ObjectKey, old: AnyLocator | None, new: AnyLocator | None) -> set[Fact]:
        """Update the index: a locator was added (old None), changed, or removed (new None).

        Returns the dependencies on addresses that it touched.
        """
        before, after = _placements(old), _placements(new)
        moved = before ^ after
        for address, _, _ in before - after:
            self._remove(address, key)
        for address, _, _ in after - before:
            self._add(address, key)
        before_refused, after_refused = (each.refused if each is not None else () for each in (old, new))
        if before_refused != after_refused:
            if after_refused:
                self.refusing[key] = after_refused
            else:
                del self.refusing[key]
        self._move_labels(old, new)
        addresses = [address for address, _, _ in moved]
        if not self._all_unchecked:
            self._unchecked.update(addresses)
        facts = address_facts(addresses)
        if before_refused != after_refused:
            facts.add(node_fact(key.name))  # in no answer; but a change without facts is not logged
        return facts

    def claims(self, address: bytes) -> tuple[LocatorClaim, ...]:
        """The locators with this address, in order of arrival; of more than 100 the first 101."""
        held = self._arrivals.get(address)
        if held is None:
            return ()
        if isinstance(held, ObjectKey):
            return (self._claim(address, held, later=False),)
        return tuple(self._claim(address, key, later) for key, later in islice(held.items(), MOST + 1))

    def refused(self) -> Counter[tuple[Kind, str]]:
        """The number of addresses that are refused in the present locators, by (kind, reason)."""
        counts: Counter[tuple[Kind, str]] = Counter()
        for key, several in self.refusing.items():
            for each in several:
                counts[kind_of_key(key), each.reason] += each.number
        return counts

    def recheck(self, addresses: Iterable[bytes]) -> None:
        """Have `next_unchecked` return these addresses, as far as locators have them."""
        if self._arrivals:
            self._unchecked.update(address for address in addresses if address in self._arrivals)

    def recheck_all(self) -> None:
        """Have `next_unchecked` return all addresses."""
        self._all_unchecked = True

    def next_unchecked(self) -> bytes | None:
        """An address whose claims, or the objects that they are compared with, have changed; None if there is none."""
        if self._all_unchecked:
            self._all_unchecked = False
            self._backlog = list(self._arrivals)
            self._unchecked = set()
        if self._unchecked:
            return self._unchecked.pop()
        return self._backlog.pop() if self._backlog else None

    @property
    def pending(self) -> bool:
        """Whether `next_unchecked` has an address to return."""
        return bool(self._unchecked or self._backlog or self._all_unchecked)

    def _claim(self, address: bytes, key: ObjectKey, later: bool) -> LocatorClaim:
        if key.namespace:
            return LocatorClaim(key, self.pod_locators[key].node_name, False, later)
        return LocatorClaim(key, key.name, address in self.node_locators[key].addresses, later)

    def _move_labels(self, old: AnyLocator | None, new: AnyLocator | None) -> None:
        """Update `nodes` by the labels of a locator, which were those of `old` and are those of `new`."""
        for each, number in ((old, -1), (new, 1)):
            if isinstance(each, PodLocator) and each.node_labels:
                counts = self._labels.setdefault(each.node_name, _LabelCounts())
                counts.move(each.node_labels, number)
                if not counts.most:
                    del self._labels[each.node_name]
        for name in {node_of(each) for each in (old, new) if each is not None}:
            self._set_node(name)

    def _set_node(self, name: str) -> None:
        own = self.node_locators.get(("", name))
        labels = own.labels if own is not None else {}
        if not labels and name in self._labels:
            labels = dict(self._labels[name].most)
        held = self.nodes.get(name)
        if not labels:
            self.nodes.pop(name, None)
        elif held is None or held.labels != labels:
            self.nodes[name] = Node(name, labels)

    def _add(self, address: bytes, key: ObjectKey) -> None:
        held = self._arrivals.get(address)
        if held is None:
            self._arrivals[address] = key
        elif isinstance(held, ObjectKey):
            self._arrivals[address] = {held: False, key: not self.listing}
        else:
            held[key] = not self.listing

    def _remove(self, address: bytes, key: ObjectKey) -> None:
        held = self._arrivals[address]
        if isinstance(held, ObjectKey):
            del self._arrivals[address]
            return
        del held[key]
        if len(held) == 1:
            (self._arrivals[address],) = held


def kind_of_key(key: ObjectKey) -> Kind:
    """The kind of the locator with this key: NodeLocators have no namespace, PodLocators always have one."""
    return "PodLocator" if key.namespace else "NodeLocator"


def node_of(locator: AnyLocator) -> str:
    """The name of the Node that a locator describes."""
    return locator.node_name if isinstance(locator, PodLocator) else locator.name


def _placements(locator: AnyLocator | None) -> frozenset[tuple[bytes, str, bool]]:
    """(address, Node name, whether it is the Node's own) of each address of a locator."""
    match locator:
        case NodeLocator():
            own = frozenset(locator.addresses)
            pods = ((address, locator.name, False) for address in locator.pod_ips if address not in own)
            return frozenset((*((address, locator.name, True) for address in own), *pods))
        case PodLocator():
            return frozenset((address, locator.node_name, False) for address in locator.addresses)
        case None:
            return frozenset()
