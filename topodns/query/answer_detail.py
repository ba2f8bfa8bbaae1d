"""Details of an answer that the metrics of its plugin count, beside the labels that all answers have.

In one module of its own, so that importing it loads no plugin.
"""

from typing import NamedTuple


class CacheHit(NamedTuple):
    """An answer of `cache`: the labels of coredns_cache_hits_total that the general counters lack."""

    type: str  # CoreDNS's: "success" or "denial"
    zones: str  # of the directive
    stale: bool = False  # given beyond its TTL (RFC 8767)


class TemplateMatch(NamedTuple):
    """An answer of `template`: the labels of coredns_template_matches_total that the general counters lack."""

    origin: str  # of the directive, not of the server block
    qclass: str
    qtype: str


class LocalhostAnswer(NamedTuple):
    """An answer of `local` for localhost.<anything>, counted in coredns_local_localhost_requests_total."""


AnswerDetail = CacheHit | TemplateMatch | LocalhostAnswer
