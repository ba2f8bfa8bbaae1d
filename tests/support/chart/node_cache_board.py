"""The dashboard of node caches: their switch, repairs and answers."""

from typing import Final

from tests.support.chart.grafana import Board, Panel, Query

_YES: Final = {0: "no", 1: "yes"}
_ON: Final = {0: "off", 1: "on"}
_UPSTREAM: Final = "coredns_proxy_request_duration_seconds_bucket{SEL}[$__rate_interval]"

_SWITCH: Final = (
    Panel(
        "Nodes by switch",
        "on: the node's queries are led to its cache. off: they go to the cluster DNS.",
        "short",
        (
            Query("sum(topodns_nodecache_switched_on{SEL})", "on"),
            Query("count(topodns_nodecache_switched_on{SEL}) - sum(topodns_nodecache_switched_on{SEL})", "off"),
        ),
        stacked=True,
    ),
    Panel(
        "Switched on",
        "Node by node.",
        "short",
        (Query("topodns_nodecache_switched_on{SEL}", "{{instance}}"),),
        words=_ON,
    ),
    Panel(
        "Link and rules there",
        "At the last look, which is at once where the kernel reports a change.",
        "short",
        (
            Query("min by (instance) (topodns_nodecache_link_present{SEL})", "link {{instance}}"),
            Query("min by (instance) (topodns_nodecache_rules_present{SEL})", "rules {{instance}}"),
        ),
        words=_YES,
    ),
    Panel(
        "Repairs",
        "After another program removed or changed it.",
        "short",
        (
            Query(
                "sum by (instance, what) (increase(topodns_nodecache_repairs_total{SEL}[$__rate_interval])) > 0",
                "{{what}} {{instance}}",
            ),
        ),
    ),
    Panel(
        "Since the last repair",
        "Nodes that never needed one are not shown.",
        "s",
        (
            Query(
                "time() - (max by (instance, what) (topodns_nodecache_last_repair_timestamp_seconds{SEL}) > 0)",
                "{{what}} {{instance}}",
            ),
        ),
    ),
    Panel(
        "Setup errors",
        "Faults of rules, link and configuration; docs/operate/alerts.md explains each.",
        "short",
        (
            Query(
                "sum by (errortype) (increase(coredns_nodecache_setup_errors_total{SEL}[$__rate_interval]))",
                "{{errortype}}",
            ),
        ),
    ),
    Panel(
        "Configuration in force",
        "no: template or ConfigMap are faulty, and the previous configuration is in force.",
        "short",
        (Query("min by (instance) (topodns_nodecache_config_in_force{SEL})", "{{instance}}"),),
        words=_YES,
    ),
    Panel(
        "Age of the configuration",
        "Since it was read.",
        "s",
        (Query("time() - max by (instance) (topodns_nodecache_config_timestamp_seconds{SEL})", "{{instance}}"),),
    ),
    Panel(
        "Upstreams reachable",
        "no: its last result was a failed probe.",
        "short",
        (Query("min by (instance, to) (topodns_nodecache_upstream_reachable{SEL})", "{{to}} {{instance}}"),),
        words=_YES,
    ),
)

_CACHE: Final = (
    Panel(
        "Queries",
        "By transport.",
        "reqps",
        (Query("sum by (proto) (rate(coredns_dns_requests_total{SEL}[$__rate_interval]))", "{{proto}}"),),
    ),
    Panel(
        "Answered from memory",
        "Share of queries to the cache, stale answers included.",
        "percentunit",
        (
            Query(
                "sum(rate(coredns_cache_hits_total{SEL}[$__rate_interval]))"
                " / sum(rate(coredns_cache_requests_total{SEL}[$__rate_interval]))",
                "hits",
            ),
            Query(
                "sum(rate(coredns_cache_served_stale_total{SEL}[$__rate_interval]))"
                " / sum(rate(coredns_cache_requests_total{SEL}[$__rate_interval]))",
                "stale",
            ),
        ),
    ),
    Panel(
        "Hits and misses",
        "denial: NXDOMAIN, NODATA and failures.",
        "reqps",
        (
            Query("sum by (type) (rate(coredns_cache_hits_total{SEL}[$__rate_interval]))", "hits, {{type}}"),
            Query("sum(rate(coredns_cache_misses_total{SEL}[$__rate_interval]))", "misses"),
            Query("sum(rate(coredns_cache_prefetch_total{SEL}[$__rate_interval]))", "refreshed ahead"),
        ),
    ),
    Panel(
        "Entries",
        "Answers kept. A cache with several addresses stands under each of them, and is counted once here.",
        "short",
        (
            Query(
                "sum by (type) (max by (instance, type, zones, view) (coredns_cache_entries{SEL}))",
                "{{type}}",
            ),
        ),
    ),
    Panel(
        "Evictions",
        "Entries that had to make room.",
        "ops",
        (Query("sum by (type) (rate(coredns_cache_evictions_total{SEL}[$__rate_interval]))", "{{type}}"),),
    ),
    Panel(
        "Latency of upstreams",
        "From a query to its reply.",
        "s",
        (
            Query(f"histogram_quantile(0.99, sum by (to, le) (rate({_UPSTREAM})))", "99 % {{to}}"),
            Query(f"histogram_quantile(0.5, sum by (to, le) (rate({_UPSTREAM})))", "50 % {{to}}"),
        ),
    ),
    Panel(
        "Replies of upstreams",
        "By response code.",
        "reqps",
        (
            Query(
                "sum by (rcode) (rate(coredns_proxy_request_duration_seconds_count{SEL}[$__rate_interval]))",
                "{{rcode}}",
            ),
        ),
    ),
    Panel(
        "Dropped",
        "Queries without an answer: client, one of them had too many waiting; total, all of them had.",
        "reqps",
        (Query("sum by (reason) (rate(topodns_forward_dropped_total{SEL}[$__rate_interval]))", "{{reason}}"),),
    ),
    Panel(
        "Waiting for upstreams",
        "Queries now; at most 4096.",
        "short",
        (Query("sum by (instance) (topodns_forward_in_flight{SEL})", "{{instance}}"),),
    ),
    Panel(
        "Answers by code",
        "Response codes for clients.",
        "reqps",
        (Query("sum by (rcode) (rate(coredns_dns_responses_total{SEL}[$__rate_interval]))", "{{rcode}}"),),
    ),
    Panel("Memory", "Resident.", "bytes", (Query("process_resident_memory_bytes{SEL}", "{{instance}}"),)),
    Panel(
        "Processor",
        "Seconds of it in each second.",
        "percentunit",
        (Query("rate(process_cpu_seconds_total{SEL}[$__rate_interval])", "{{instance}}"),),
    ),
)

NODE_CACHE: Final = Board(
    "topodns-node-cache",
    "topodns: node cache",
    "The switch of each node's DNS cache, its repairs, and its answers from memory.",
    "topodns_nodecache_switched_on",
    {"The node's traffic": _SWITCH, "Answers": _CACHE},
)
