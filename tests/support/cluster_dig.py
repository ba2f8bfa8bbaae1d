"""A `kubernetes` step over a cluster given as objects, asked and answered in the words of dig."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

import pytest

from tests.support.deferred_results import at_once
from tests.support.model_builders import packed
from tests.support.query_builders import ask, client
from tests.support.rrset_text import lines
from topodns.cluster.model import ClusterObject, Deleted, Kind, Replaced, Upserted
from topodns.cluster.state import ClusterState
from topodns.dns.addresses import NetworkList
from topodns.dns.message import Edns, Query
from topodns.dns.name import parse_name
from topodns.dns.rrtype import QTYPES, RCODE_NAMES, Rcode
from topodns.plugins.kubernetes.handler import ClusterZone
from topodns.plugins.kubernetes.settings import KubernetesSettings
from topodns.plugins.kubernetes.zone import KubernetesZone
from topodns.plugins.topology.settings import TopologySettings
from topodns.query.cname import Chase
from topodns.query.plugin import Resolution
from topodns.topology.client_locator import ClientLocator
from topodns.topology.keys import key_reader

SERIAL = 1_499_347_823
PASSED = "(passed on to the next step)"
ORIGINS = ("cluster.local.", "in-addr.arpa.", "ip6.arpa.")


class ClusterDig:
    """`synced=False`: objects arrive one by one, and no kind has been listed whole."""

    def __init__(
        self,
        objects: Iterable[ClusterObject],
        settings: KubernetesSettings,
        topology: TopologySettings | None = None,
        synced: bool = True,
        own_addresses: Iterable[str] = (),
        chase: Chase | None = None,
    ) -> None:
        needed: frozenset[Kind] = frozenset(get_args(Kind))
        self.state = ClusterState(
            needed,
            key_reader(topology.keys) if topology is not None else None,
            topology is not None and topology.terminating_fallback,
            settings.endpoint_pod_names,
            cluster_id=settings.cluster_id,
        )
        if synced:
            for kind in sorted(needed):
                self.state.apply(Replaced(kind, ()), 0)
        for each in objects:
            self.apply(each)
        locator = (
            ClientLocator(self.state, topology.locate, NetworkList(topology.trust)) if topology is not None else None
        )
        own = tuple(map(packed, own_addresses))
        self.step = ClusterZone(KubernetesZone(settings, topology, self.state, locator, own, chase))

    def apply(self, change: ClusterObject | Deleted | Replaced) -> None:
        self.state.apply(change if isinstance(change, (Deleted, Replaced)) else Upserted(change), SERIAL)

    def resolve(self, question: str, source: str = "10.240.0.1", edns: Edns | None = None) -> Resolution:
        """The step's own answer to `NAME TYPE`, from a client with this address."""
        resolution = self._step(question, source, edns)
        assert resolution is not None
        return resolution

    def __call__(self, question: str, source: str = "10.240.0.1", edns: Edns | None = None) -> str:
        """The answer to `NAME TYPE` as text: see `transcript`."""
        return transcript(self._step(question, source, edns), question.split()[0])

    def _step(self, question: str, source: str, edns: Edns | None) -> Resolution | None:
        """None where the step passes."""
        resolution: object = at_once(self.step(query_of(question, edns), client(source)))
        return resolution if isinstance(resolution, Resolution) else None


def query_of(question: str, edns: Edns | None = None) -> Query:
    name, rtype = question.split()
    return ask(name, int(rtype[4:]) if rtype.startswith("TYPE") else QTYPES[rtype], edns=edns)


def settings(
    *origins: str,
    fallthrough: Iterable[str] = (),
    multicluster: Iterable[str] = (),
    **options: object,
) -> KubernetesSettings:
    """The settings of `kubernetes ORIGIN... { options }`; `cluster.local in-addr.arpa ip6.arpa` by default."""
    return KubernetesSettings(
        origins=tuple(map(parse_name, origins or ORIGINS)),
        fallthrough=tuple(map(parse_name, fallthrough)),
        multicluster=tuple(map(parse_name, multicluster)),
        **options,  # type: ignore[arg-type]  # the fields' own types
    )


def transcript(resolution: Resolution | None, qname: str) -> str:
    """A line per record: answers bare, the ADDITIONAL section behind `+`.

    Without an answer, the word NODATA or the RCODE, then the owner and TTL of the SOA where there is one.
    """
    if resolution is None:
        return PASSED
    response = resolution.response
    if response.answer:
        assert response.rcode == Rcode.NOERROR
        assert response.authority == ()
        extra = [f"+ {line}" for line in lines(response.additional, qname)]
        return "\n".join([*lines(response.answer, qname), *extra])
    assert response.additional == ()
    word = "NODATA" if response.rcode == Rcode.NOERROR else RCODE_NAMES[response.rcode]
    return " ".join([word, *(" ".join(line.split()[:2]) for line in lines(response.authority, qname))])


def expected(text: str) -> str:
    """A block of expected lines without its indentation."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


class ZoneText(NamedTuple):
    """Names and answers as in a zone file: with `$ORIGIN origin` and `$TTL ttl`."""

    origin: str
    soa: str = ""  # owner and TTL, as `transcript` has them behind NODATA and NXDOMAIN
    ttl: int = 5

    def absolute(self, name: str) -> str:
        """`NAME` or `NAME TYPE`: a name without a dot at its end is one below the origin, and `@` the origin itself."""
        name, *rtype = name.split()
        if not name.endswith("."):
            name = self.origin if name == "@" else f"{name}.{self.origin}"
        return " ".join([name, *rtype])

    def answer(self, question: str, *records: str) -> str:
        """The answer as `transcript` has it, from lines `[+] [NAME] TYPE DATA`. Without a name it is the question's.

        A line with TTL and class is taken as it is, and so is a line that begins with a word for none or `;`.
        """
        return "\n".join(self._line(record, self.absolute(question).split()[0]) for record in records)

    def _line(self, record: str, owner: str) -> str:
        words = record.split()
        if words[0] in ("NODATA", "NXDOMAIN"):
            return " ".join(filter(None, words if words[1:] else [*words, self.soa]))
        if words[0] == "+":
            return f"+ {self._line(record[2:], owner)}"
        if " IN " in record or not {*words[:2]} & QTYPES.keys():
            return record
        name, rtype, *data = words if words[0] not in QTYPES else [owner, *words]
        if rtype in ("SRV", "CNAME", "DNAME", "PTR", "NS", "MX"):
            data[-1] = self.absolute(data[-1])
        return " ".join([self.absolute(name), str(self.ttl), "IN", rtype, *data])


def cases(table: Mapping[str, Sequence[str]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test for each question and the records of its answer; the keys of the table say what they are about."""
    return pytest.mark.parametrize(("question", "records"), [(each[0], each[1:]) for each in table.values()], ids=table)
