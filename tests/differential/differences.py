"""Every difference between CoreDNS 1.14.7 and topodns that these questions show and that is meant, with its reason.

docs/reference/differences-from-coredns.md lists the same names. One that no question shows any more is obsolete.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.differential.comparison import (
    AA,
    AD,
    ADDITIONAL,
    ANSWER,
    ASPECTS,
    AUTHORITY,
    EDNS,
    OPTIONS,
    QUESTION,
    RA,
    RCODE,
    REPLY,
    SECTIONS,
    SIZE,
    TC,
    TTL,
    Case,
)
from tests.differential.corefiles import KUBERNETES, LONG_ORIGIN
from tests.differential.names import CLUSTER, CLUSTERSET, EXTERNAL, Labels
from tests.differential.odd_names import (
    CLUSTER_OF_TWO_LABELS,
    addresses,
    external_without_records,
    of_dotted_pods,
    of_mixed_slices,
    of_no_service,
    of_shared_zones,
    without_records,
)
from tests.differential.questions import Question
from tests.differential.replies import Record, Reply, wire_labels
from tests.differential.upstream import MINIMUM
from tests.support.dns_messages import DO, ECS, EDE, KEEPALIVE

_ECHOED: Final = {3, 9, 10, KEEPALIVE, 12}  # NSID, EXPIRE, COOKIE, keepalive, PADDING
_FORMERR, _SERVFAIL, _NXDOMAIN, _NOTIMP, _REFUSED, _BADVERS = 1, 2, 3, 4, 5, 16
_NS, _CNAME, _SOA, _PTR, _MX, _AAAA, _SRV, _TRANSFERS = 2, 5, 6, 12, 15, 28, 33, (251, 252)
_CH: Final = 3
_RA: Final = 0x0080
_NOTIFY: Final = 4
_SEARCHED: Final = (b"red", b"svc", *CLUSTER)  # the search list's first domain of the Pod that asks
_ORIGINS: Final = (LONG_ORIGIN, CLUSTER, CLUSTERSET)
_UNASKED: Final = b"\x04bank\x07example\x03com\0"  # who is in upstream.py's lie
_EXTERNAL: Final = b"\x03k8s\x07example\x03org\0"  # the zone of k8s_external
_ADDING: Final = "rewrite edns0"  # the Corefile whose rules add options
_CHAOTIC: Final = ("refinements", "rewrite")  # Corefiles in which CH is asked for
_RESPELLING: Final = (
    "hosts",
    "rewrite",
    "template",
    "file",
    "forward",
    "cache",
    "dns64",
    "autopath",
    "external",
    "external headless",
)
_BY_POD: Final = [title for title, one in KUBERNETES.items() if "endpoint_pod_names" in one.text]
_DOTTED: Final = (b"\x10static-web-node1\x07example", b"\x03two\x06labels", b"\x05node1\x07example")  # of targetRefs
_MAX_NAME: Final = 255  # octets
_CUT: Final = 10  # CNAMEs of a zone in an answer of CoreDNS
_MOMENT: Final = 10  # seconds that a trial of the cache may take
_IP4_LABELS: Final = 6
_IP6_LABELS: Final = 34  # of a whole address's reverse name


@dataclass(frozen=True, slots=True)
class Difference:
    """In a case where `holds`, the replies may differ in `aspects`."""

    name: str
    reason: str
    aspects: frozenset[str]
    holds: Callable[[Case], bool]

    def explains(self, case: Case) -> frozenset[str]:
        """The aspects in which the replies differ because of this."""
        aspects = self.aspects & case.aspects
        return aspects if aspects and self.holds(case) else frozenset()


def unexplained(case: Case) -> frozenset[str]:
    return case.aspects.difference(*(difference.explains(case) for difference in DIFFERENCES))


_Both = Callable[[Case, Reply, Reply], bool]


def _difference(name: str, reason: str, *aspects: str) -> Callable[[_Both], Difference]:
    """Of two replies; the arguments of the function are CoreDNS's, then ours."""

    def made(both: _Both) -> Difference:
        def holds(case: Case) -> bool:
            return case.theirs is not None and case.ours is not None and both(case, case.theirs, case.ours)

        return Difference(name, reason, frozenset(aspects), holds)

    return made


@_difference("UDP size", "RFC 6891 section 6.2.3: an OPT record says what its sender takes", SIZE)
def _size(case: Case, theirs: Reply, ours: Reply) -> bool:
    return ours.size in (512, 1232, 4096)  # as `bufsize` says, or without it


@_difference("echoed options", "a COOKIE or keepalive that is repeated says what is not so", OPTIONS)
def _options(case: Case, theirs: Reply, ours: Reply) -> bool:
    added = case.corefile == _ADDING and not _without_subnet(ours)  # the upstream's reply has none
    return bool(case.question.options & _ECHOED) or added


@_difference("Client Subnet of `rewrite edns0`", "RFC 7871 section 7.2.2: a client gets back what it sent", OPTIONS)
def _subnet(case: Case, theirs: Reply, ours: Reply) -> bool:
    sent = ECS in case.question.options
    same = _without_subnet(theirs) == _without_subnet(ours)
    return case.corefile == _ADDING and same and any(code == ECS for code, _ in ours.options) is sent


@_difference("repeated EDNS options", "a client adds nothing to what `set` and `replace` say", ANSWER, OPTIONS)
def _repeated_options(case: Case, theirs: Reply, ours: Reply) -> bool:
    codes = [code for opt in case.question.opts for code, _ in opt.options]
    return case.corefile == _ADDING and len(set(codes)) < len(codes)


def _without_subnet(reply: Reply) -> list[tuple[int, bytes]]:
    return [option for option in reply.options if option[0] != ECS]


@_difference("extended errors", "RFC 8914: a reply that fails says why", OPTIONS)
def _extended_errors(case: Case, theirs: Reply, ours: Reply) -> bool:
    return ours.rcode in (_SERVFAIL, _REFUSED) and any(code == EDE for code, _ in ours.options)


@_difference("EDNS flags", "RFC 6891 section 6.1.4: undefined flags are 0", EDNS)
def _flags(case: Case, theirs: Reply, ours: Reply) -> bool:
    return case.question.opt is not None and bool(case.question.opt.flags & 0x7FFF)


@_difference("BADVERS", "RFC 3225 section 3: DO is copied, in this reply too", EDNS, OPTIONS)
def _badvers(case: Case, theirs: Reply, ours: Reply) -> bool:
    return theirs.rcode == ours.rcode == _BADVERS


@_difference("broken queries", "RFC 6891 section 6.1.1: a second OPT is FORMERR; so are octets left over", *ASPECTS)
def _broken(case: Case, theirs: Reply, ours: Reply) -> bool:
    return ours.rcode == _FORMERR and (bool(case.question.tail) or len(case.question.opts) > 1)


@_difference("transfers", "topodns serves no transfers, and requests none from upstreams", *ASPECTS)
def _transfers(case: Case, theirs: Reply, ours: Reply) -> bool:
    return case.question.qtype in _TRANSFERS and ours.rcode == _REFUSED


@_difference("copies of an endpoint", "an endpoint in two slices is one, also for the weight of SRV", ANSWER)
def _copies(case: Case, theirs: Reply, ours: Reply) -> bool:
    """Of equal records but for weights that are lower, by repeated ones."""
    if case.question.qtype != _SRV or _weightless_set(theirs.answer) != _weightless_set(ours.answer):
        return False
    return max(map(_weight, theirs.answer)) <= min(map(_weight, ours.answer))


def _weightless_set(records: Sequence[Record]) -> set[Record]:
    return set(map(_weightless, records))


def _weight(record: Record) -> bytes:
    return record.rdata[2:4]


def _weightless(record: Record) -> Record:
    return record._replace(rdata=record.rdata[:2] + record.rdata[4:]) if record.rtype == _SRV else record


@_difference(
    "slices of imported Services", "they are their ServiceImport's alone", AA, RA, RCODE, ANSWER, AUTHORITY, OPTIONS
)
def _imported(case: Case, theirs: Reply, ours: Reply) -> bool:
    left = [record for record in theirs.answer if b"\x07derived" not in record.rdata]
    return case.question.qtype == _PTR and len(left) < len(theirs.answer) and left == list(ours.answer)


@_difference(
    "reverse names with labels before", "they are no address's name", AA, TC, RA, RCODE, ANSWER, AUTHORITY, OPTIONS
)
def _long_reverse(case: Case, theirs: Reply, ours: Reply) -> bool:
    labels = case.question.labels
    longer = len(labels) > _IP6_LABELS or any(b"." in label for label in labels)  # CoreDNS splits at those dots too
    return case.question.is_below((b"ip6", b"arpa")) and longer


@_difference(
    "truncation",
    "what is left of a reply that is too long depends on the order of its records",
    *(TC, ANSWER, AUTHORITY, ADDITIONAL),
)
def _truncated(case: Case, theirs: Reply, ours: Reply) -> bool:
    return theirs.truncated and ours.truncated and bool(ours.answer) and TC not in case.aspects


@_difference("large UDP replies", "RFC 9715: larger ones are lost on the way", TC, ANSWER, ADDITIONAL)
def _fragments(case: Case, theirs: Reply, ours: Reply) -> bool:
    return ours.truncated and theirs.octets > 1232


@_difference("classes", "all records are of class IN", *ASPECTS)
def _classes(case: Case, theirs: Reply, ours: Reply) -> bool:
    served = case.question.qclass == _CH and case.corefile in _CHAOTIC
    return case.question.qclass != 1 and (ours.rcode in (_REFUSED, _BADVERS) or served)


@_difference(
    "DO that the query did not set", "RFC 3225 section 3: DO is copied from the query, also by `nsid` and `acl`", EDNS
)
def _dnssec_ok(case: Case, theirs: Reply, ours: Reply) -> bool:
    return theirs.edns is not None and bool(theirs.edns[1] & DO) and ours.edns == (0, 0)


@_difference(
    "EDNS that the query did not have", "RFC 6891 section 6.1.1: no OPT without one, also of `acl`", EDNS, SIZE, OPTIONS
)
def _unasked(case: Case, theirs: Reply, ours: Reply) -> bool:
    return not case.question.opts and ours.edns is None


@_difference(
    "spelling",
    "RFC 4343 section 4.1: the case of names is kept, and resolvers that mix it want it back",
    QUESTION,
    *SECTIONS,
)
def _spelling(case: Case, theirs: Reply, ours: Reply) -> bool:
    same = (_lowered(getattr(theirs, name)) == _lowered(getattr(ours, name)) for name in SECTIONS)
    return case.corefile in _RESPELLING and theirs.question.lower() == ours.question.lower() and all(same)


def _lowered(records: Sequence[Record]) -> list[Record]:
    """Sorted, without TTLs, which are looked at by themselves."""
    return sorted(each._replace(owner=each.owner.lower(), ttl=0, rdata=each.rdata.lower()) for each in records)


@_difference("spelling of ns.dns", "RFC 4343: it is there in any case", AA, RCODE, AUTHORITY, OPTIONS)
def _primary(case: Case, theirs: Reply, ours: Reply) -> bool:
    labels = case.question.labels
    return case.question.lowered[:2] == (b"ns", b"dns") and labels != case.question.lowered


@_difference("authority of answers", "clients of a forwarder do not use name servers", *SECTIONS)
def _name_servers(case: Case, theirs: Reply, ours: Reply) -> bool:
    same = _lowered(theirs.answer) == _lowered(ours.answer)
    return case.question.lowered[:1] == (b"delegated",) and not ours.authority and same


@_difference("Pods by all their addresses", "a Pod with two addresses has two", RCODE, *SECTIONS)
def _pod_ips(case: Case, theirs: Reply, ours: Reply) -> bool:
    return any(label.endswith(b"--88") for label in case.question.labels) and theirs.rcode == _NXDOMAIN


@_difference("cleaned answers", "RFC 5452 section 6: records that do not answer the question are not trusted", ANSWER)
def _cleaned(case: Case, theirs: Reply, ours: Reply) -> bool:
    kept = _lowered(ours.answer)
    return {record.owner for record in _lowered(theirs.answer) if record not in kept} == {_UNASKED}


@_difference(
    "answers about other names",
    "without those records the name would seem to have no address",
    *(RCODE, RA, AA, AD, TTL, OPTIONS, SIZE, *SECTIONS),
)
def _useless(case: Case, theirs: Reply, ours: Reply) -> bool:
    about = {record.owner for record in _lowered(theirs.answer)}
    return about == {_UNASKED} and (theirs.rcode, ours.rcode) == (0, _SERVFAIL)


@_difference("negative TTLs", "RFC 2308 section 5: not above the SOA's MINIMUM", TTL)
def _negative_ttl(case: Case, theirs: Reply, ours: Reply) -> bool:
    denied = case.corefile in ("cache", "file") and bool(ours.authority) and bool(theirs.authority)
    return denied and ours.authority[0].ttl <= MINIMUM < theirs.authority[0].ttl


@_difference(
    "denials behind a CNAME",
    "RFC 2308 section 2.1: they have the SOA of the denial, and are cached like others",
    *(TTL, ANSWER, AUTHORITY),
)
def _dangling(case: Case, theirs: Reply, ours: Reply) -> bool:
    behind = bool(theirs.answer) and all(record.rtype == _CNAME for record in theirs.answer)
    same = theirs.rcode == ours.rcode and _lowered(theirs.answer) == _lowered(ours.answer)
    denied = any(record.rtype == _SOA for record in ours.authority)
    return case.corefile in ("cache", "file") and behind and same and denied


@_difference(
    "aliases of NS",
    "RFC 1034 section 4.3.2: an alias is followed for this type as for others",
    *(RCODE, ANSWER, AUTHORITY, OPTIONS),
)
def _ns_aliases(case: Case, theirs: Reply, ours: Reply) -> bool:
    """SERVFAIL after the ninth one, or a ninth time round."""
    kept = set(_lowered(theirs.answer)) <= set(_lowered(ours.answer))
    failed = (theirs.rcode, ours.rcode) == (_SERVFAIL, 0) and bool(theirs.answer)
    return case.corefile == "file" and case.question.qtype == _NS and failed and kept


@_difference("long aliases", "an upstream's answer may have as many in a row", ANSWER, AUTHORITY, TTL)
def _long_aliases(case: Case, theirs: Reply, ours: Reply) -> bool:
    """Their answer ends in the tenth CNAME of a zone; ours has it and goes on."""
    cut = _lowered(theirs.answer)
    ended = len(cut) == _CUT and all(record.rtype == _CNAME for record in cut)
    return case.corefile == "file" and ended and theirs.rcode == ours.rcode and set(cut) < set(_lowered(ours.answer))


@_difference(
    "hosts behind a CNAME", "records of other servers are not completed with those of the zone", ANSWER, ADDITIONAL
)
def _outside_hosts(case: Case, theirs: Reply, ours: Reply) -> bool:
    """Of the answer the spelling may differ too."""
    same = _lowered(theirs.answer) == _lowered(ours.answer)
    outside = case.question.lowered[:1] == (b"outside",) and not ours.additional
    return case.corefile == "file" and outside and same and case.question.qtype in (_MX, _SRV)


@_difference("flags of `dns64`", "a reply that is made of another has its flags", AA, RA)
def _dns64_flags(case: Case, theirs: Reply, ours: Reply) -> bool:
    return case.corefile == "dns64" and case.question.qtype == _AAAA


@_difference(
    "`dns64` without an A", "RFC 6147 section 5.1: AAAA that are there, and failures, stay", RCODE, ANSWER, AUTHORITY
)
def _dns64_without(case: Case, theirs: Reply, ours: Reply) -> bool:
    found = any(record.rtype == _AAAA for record in theirs.answer)
    return case.corefile == "dns64" and case.question.qtype == _AAAA and not found


@_difference(
    "`autopath` and names of Services",
    "names of a deleted Service must not lead to domains that anyone may register",
    *(AA, RA, AD, RCODE, *SECTIONS, OPTIONS),
)
def _autopath(case: Case, theirs: Reply, ours: Reply) -> bool:
    if case.corefile != "autopath" or ours.rcode != _NXDOMAIN or not case.question.is_below(_SEARCHED):
        return False
    own = case.question.lowered[: -len(_SEARCHED)]
    endpoint = len(own) == 2 and b"-" in own[0]
    return endpoint or own[-1:] == (b"svc",) or any(label.startswith(b"_") for label in own)  # `svc` is a Service there


@_difference("`autopath` at the domain itself", "it is a name like any other", AA, RCODE, AUTHORITY, OPTIONS)
def _autopath_apex(case: Case, theirs: Reply, ours: Reply) -> bool:
    return case.corefile == "autopath" and case.question.lowered == _SEARCHED and theirs.rcode == _SERVFAIL


@_difference(
    "names that exist",
    "RFC 2308 section 2.2 and RFC 8020: NXDOMAIN is for all types, and for all names below",
    *(AA, RA, AD, RCODE, OPTIONS, *SECTIONS),
)
def _existing(case: Case, theirs: Reply, ours: Reply) -> bool:
    """With others below it, or with records of other types."""
    if theirs.rcode not in (_NXDOMAIN, _SERVFAIL) or ours.rcode != 0 or ours.answer:  # SERVFAIL: fallen through
        return False
    if case.question.is_below((b"arpa",)):
        return _exists_in_reverse(case.question)
    if case.corefile.startswith("external") and case.question.is_below(EXTERNAL):
        return case.question.lowered[: -len(EXTERNAL)] in external_without_records()
    return _below_origin(case.question) in without_records()


def _exists_in_reverse(question: Question) -> bool:
    """An address, asked for another type than PTR, or a network."""
    whole = len(question.labels) == (_IP6_LABELS if question.is_below((b"ip6", b"arpa")) else _IP4_LABELS)
    return not whole or (question.qtype != _PTR and question.lowered in addresses())


def _below_origin(question: Question) -> Labels:
    """The labels in front of the origin, in lower case; all of them if it is below none."""
    labels = question.lowered
    return next((labels[: -len(each)] for each in _ORIGINS if labels[-len(each) :] == each), labels)


@_difference("repeated records", "RFC 2181 section 5: a record is there once", ANSWER)
def _repeated(case: Case, theirs: Reply, ours: Reply) -> bool:
    """CNAMEs, perhaps with the records that follow them."""
    given = _lowered(theirs.answer)
    aliases = [record for record in given if record.rtype == _CNAME]
    return len(aliases) > len(set(aliases)) and set(given) == set(_lowered(ours.answer))


@_difference("TTL of SRV in `k8s_external`", "the option `ttl` is for all records", TTL, ANSWER)
def _external_ttl(case: Case, theirs: Reply, ours: Reply) -> bool:
    same = _weightless_set(_lowered(theirs.answer)) == _weightless_set(_lowered(ours.answer))
    return case.corefile == "external" and case.question.qtype == _SRV and same


@_difference(
    "FQDN slices in `k8s_external`",
    "names inside the cluster are of no use outside of it",
    *(ANSWER, AUTHORITY, ADDITIONAL, SIZE, OPTIONS),
)
def _external_aliases(case: Case, theirs: Reply, ours: Reply) -> bool:
    """Their SRV answer has records that ours lacks, all with targets outside the zone; or only ours has the CNAME."""
    if case.corefile != "external headless" or case.question.qtype not in (_SRV, _CNAME):
        return False
    if case.question.qtype == _CNAME:
        return not theirs.answer and [one.rtype for one in ours.answer] == [_CNAME]
    left = [one for one in _lowered(theirs.answer) if one.rdata.endswith(_EXTERNAL)]
    return len(left) < len(theirs.answer) and _weightless_set(left) == _weightless_set(_lowered(ours.answer))


@_difference("AA of cached replies", "it says that a reply was at hand, and that is a matter of the moment", AA)
def _cached(case: Case, theirs: Reply, ours: Reply) -> bool:
    return case.corefile == "cache" and _is_forwarded(ours)


@_difference("cached cluster names", "what is known needs no cache", TTL)
def _cluster_ttl(case: Case, theirs: Reply, ours: Reply) -> bool:
    later = _MOMENT if _is_forwarded(ours) else 0
    return case.corefile == "cache" and bool(_ttls(ours)) and _ttls(theirs)[-1] <= _ttls(ours)[-1] + later


def _is_forwarded(ours: Reply) -> bool:
    return bool(ours.flags & _RA)  # which replies about the cluster do not have


def _ttls(reply: Reply) -> list[int]:
    return sorted(record.ttl for record in (*reply.answer, *reply.authority, *reply.additional))


@_difference(
    "Pods whose names have dots",
    "an endpoint's name is one label: it is the dashed address, as for names of more than 63 octets",
    *(AA, RCODE, *SECTIONS, OPTIONS),
)
def _dotted(case: Case, theirs: Reply, ours: Reply) -> bool:
    """In SRV and PTR, and in the endpoint's own name, which CoreDNS denies."""
    if case.corefile not in _BY_POD:
        return False
    if theirs.rcode == _NXDOMAIN:
        return ours.rcode == 0 and case.question.lowered[:3] in of_dotted_pods()
    return _undotted(theirs) == _undotted(ours)


def _undotted(reply: Reply) -> set[Record]:
    """The records about other endpoints."""
    return {_weightless(one) for one in (*reply.answer, *reply.additional) if not _is_about_dotted(one)}


def _is_about_dotted(record: Record) -> bool:
    name = {_SRV: record.rdata[6:], _PTR: record.rdata}.get(record.rtype, record.owner)
    return name.startswith(_DOTTED) or wire_labels(name)[:3] in of_dotted_pods()


@_difference(
    "cluster ids of several labels",
    "KEP-2149 allows them, and the names are in SRV answers",
    *(RCODE, *SECTIONS, OPTIONS),
)
def _dotted_clusters(case: Case, theirs: Reply, ours: Reply) -> bool:
    own = case.corefile == "multicluster" and case.question.lowered[1:3] == CLUSTER_OF_TWO_LABELS
    return own and theirs.rcode == _NXDOMAIN and ours.rcode == 0


@_difference("zones of one address", "an endpoint's zone is its own", RCODE, *SECTIONS)
def _shared_zones(case: Case, theirs: Reply, ours: Reply) -> bool:
    labels = case.question.lowered
    at = labels.index(b"_zone") + 1 if b"_zone" in labels else len(labels)
    return case.corefile == "zonal" and labels[at : at + 2] in of_shared_zones()


@_difference("CNAME of several slices", "which slice comes first is chance", ANSWER, AUTHORITY)
def _some_cname(case: Case, theirs: Reply, ours: Reply) -> bool:
    owner = _below_origin(case.question)[-3:-1]
    return case.question.qtype == _CNAME and owner in of_mixed_slices() and len(ours.answer) == 1


def _too_long(case: Case) -> bool:
    """No reply, or one with targets that are no names and which ours lacks; or a truncated one where ours fits."""
    theirs, ours = case.theirs, case.ours
    if case.corefile != "long zone" or case.question.qtype not in (_SRV, _PTR) or ours is None:
        return False
    if theirs is None:
        return True
    kept = [one for one in theirs.answer if len(_target(one)) <= _MAX_NAME]
    if theirs.truncated and not ours.truncated:
        return _weightless_set(kept) <= _weightless_set(ours.answer)
    return len(kept) < len(theirs.answer) and _weightless_set(kept) == _weightless_set(ours.answer)


def _target(record: Record) -> bytes:
    return record.rdata[6:] if record.rtype == _SRV else record.rdata


def _notify(case: Case) -> bool:
    return case.question.opcode == _NOTIFY and case.ours is not None and case.ours.rcode == _NOTIMP


def _silent(case: Case) -> bool:
    return case.theirs is None and case.question.qtype == _PTR and case.question.lowered in of_no_service()


DIFFERENCES: Final = (
    _size,
    _options,
    _subnet,
    _repeated_options,
    _extended_errors,
    _flags,
    _badvers,
    _broken,
    _transfers,
    _copies,
    _imported,
    _long_reverse,
    _truncated,
    _fragments,
    _classes,
    _dnssec_ok,
    _unasked,
    _spelling,
    _primary,
    _name_servers,
    _pod_ips,
    _cleaned,
    _useless,
    _negative_ttl,
    _dangling,
    _ns_aliases,
    _long_aliases,
    _outside_hosts,
    _cached,
    _cluster_ttl,
    _dns64_flags,
    _dns64_without,
    _autopath,
    _autopath_apex,
    _existing,
    _repeated,
    _external_ttl,
    _external_aliases,
    _dotted,
    _dotted_clusters,
    _shared_zones,
    _some_cname,
    Difference(
        "names over 255 octets",
        "RFC 1035 section 2.3.4: the rest of the reply stays",
        frozenset((REPLY, RCODE, TC, *SECTIONS)),
        _too_long,
    ),
    Difference("NOTIFY", "nothing here is a secondary", frozenset((REPLY, *ASPECTS)), _notify),
    Difference("slices of no Service", "a PTR needs a Service's name", frozenset((REPLY,)), _silent),
)
