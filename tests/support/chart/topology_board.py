"""The dashboard of topology: answers by outcome, unlocated clients, age of the state, push, locators."""

from typing import Final

from tests.support.chart.grafana import Board, Figure, Panel, Query

_YES: Final = {0: "no", 1: "yes"}
_SELECTIONS: Final = "sum(rate(topodns_selections_total{SEL}[$__rate_interval]))"
_LATENCY: Final = "coredns_kubernetes_dns_programming_duration_seconds_bucket{SEL}[$__rate_interval]"
_KNOWN: Final = 'sum(rate(topodns_selected_endpoints_total{SEL,distance!="unknown"}[$__rate_interval]))'


def _by_service(aggregation: str, metric: str) -> str:
    """By the labels of the metric, also where Prometheus keeps a target's own and renames these; see alerts.yaml."""
    named = f"""label_replace({metric}, "namespace", "$1", "exported_namespace", "(.+)")"""
    return f"""{aggregation} by (namespace, service) (
        label_replace({named}, "service", "$1", "exported_service", "(.+)"))"""


_ANSWERS: Final = (
    Panel(
        "Answers by outcome",
        "Answers about headless Services. no_match, unknown_client and denied: no endpoint.",
        "percentunit",
        (
            Query(
                "sum by (outcome) (rate(topodns_selections_total{SEL}[$__rate_interval])) / scalar("
                + _SELECTIONS
                + ")",
                "{{outcome}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Answers by the key that won",
        "Near keys mean near endpoints; * is a client that got all of them.",
        "percentunit",
        (
            Query(
                'sum by (key) (rate(topodns_selections_total{SEL,key!=""}[$__rate_interval])) / scalar('
                + _SELECTIONS
                + ")",
                "{{key}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Answers with nothing, by Service",
        "The ten Services whose keys leave most clients without an endpoint. The first 100 are counted by name.",
        "reqps",
        (Query("topk(10, sum by (name) (rate(topodns_misses_total{SEL}[$__rate_interval])))", "{{name}}"),),
    ),
    Panel(
        "Answers with nothing",
        "Over the whole time shown: which Service, and why.",
        "short",
        (Query("topk(20, sum by (name, outcome) (increase(topodns_misses_total{SEL}[$__range])))"),),
        table=True,
    ),
    Panel(
        "Share of unlocated clients",
        "They get what * allows. See docs/reference/topology.md for the ways to locate clients.",
        "percentunit",
        (
            Query(
                "sum(rate(topodns_unlocated_queries_total{SEL}[$__rate_interval])) / " + _SELECTIONS,
                "unlocated",
            ),
        ),
    ),
    Panel(
        "Where unlocated clients are",
        "By /24 and /56 of their addresses, the first 100 of them: a resolver in between, a network that is no node's.",
        "reqps",
        (
            Query(
                "topk(10, sum by (prefix) (rate(topodns_unlocated_sources_total{SEL}[$__rate_interval])))", "{{prefix}}"
            ),
        ),
    ),
    Panel(
        "Services with topology keys",
        "By where the keys come from, and whether they are valid.",
        "short",
        (Query("max by (source, valid) (topodns_policies{SEL})", "{{source}}, valid: {{valid}}"),),
    ),
    Panel(
        "Services whose keys break a rule",
        "They are unfiltered, or with on_invalid deny empty. The Service has an Event that says why.",
        "short",
        (Query(_by_service("max", "topodns_policy_invalid{SEL}") + " == 1"),),
        table=True,
    ),
    Panel(
        "Events written on Services",
        "Warnings about keys. denied: RBAC or admission does not let them be written.",
        "short",
        (
            Query(
                "sum by (outcome) (increase(topodns_service_events_total{SEL}[$__rate_interval]))",
                "{{outcome}}",
            ),
        ),
    ),
)

_DISTANCES: Final = (
    Panel(
        "Answers by distance",
        "Of the endpoints in an answer from the client. Estimated. unknown: one of both has no location.",
        "percentunit",
        (
            Query(
                "sum by (distance) (rate(topodns_selected_endpoints_total{SEL}[$__rate_interval])) / scalar("
                "sum(rate(topodns_selected_endpoints_total{SEL}[$__rate_interval])))",
                "{{distance}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Share of answers that stay in the zone",
        "On the client's node or in its zone, of those with a known distance.",
        "percentunit",
        (
            Query(
                'sum(rate(topodns_selected_endpoints_total{SEL,distance=~"node|zone"}[$__rate_interval])) / ' + _KNOWN,
                "in the zone",
            ),
        ),
    ),
    Panel(
        "Cost of leaving the zone, a day",
        "In the currency of the price per GB, IF each answer leads to the traffic that is typed in above: no server "
        "knows it. The ten Services that cost most.",
        "short",
        (
            Query(
                "topk(10, "
                + _by_service(
                    "sum",
                    'rate(topodns_selected_endpoints_total{SEL,distance=~"region|farther"}[$__rate_interval])',
                )
                + ") * 86400 * $mb_per_answer / 1000 * $price_per_gb",
                "{{service}} {{namespace}}",
            ),
        ),
    ),
)

_STATE: Final = (
    Panel(
        "Age of the state",
        "Since the last data of the API server for the kind that has been silent longest: normally at most a minute.",
        "s",
        (Query("max by (instance) (topodns_state_age_seconds{SEL})", "{{instance}}"),),
    ),
    Panel(
        "State complete",
        "The state that decides /ready.",
        "short",
        (Query("min by (instance) (topodns_state_synced{SEL})", "{{instance}}"),),
        words=_YES,
    ),
    Panel(
        "Programming latency",
        "From the time that the control plane notes on an EndpointSlice, in whole seconds, to its being served.",
        "s",
        (
            Query(f"histogram_quantile(0.99, sum by (service_kind, le) (rate({_LATENCY})))", "99 % {{service_kind}}"),
            Query(f"histogram_quantile(0.5, sum by (service_kind, le) (rate({_LATENCY})))", "50 % {{service_kind}}"),
        ),
    ),
    Panel(
        "Watches that fail",
        "The last request for this kind failed: 403 is a verb that RBAC denies, 0 no response.",
        "short",
        (
            Query(
                "max by (instance, kind, verb, status) (topodns_watch_failing{SEL})",
                "{{instance}}: {{verb}} {{kind}}: {{status}}",
            ),
        ),
        words=_YES,
    ),
    Panel(
        "Changes taken in",
        "From the watches, by kind.",
        "ops",
        (Query("sum by (kind) (rate(topodns_watch_events_total{SEL}[$__rate_interval]))", "{{kind}}"),),
    ),
    Panel(
        "Lists and repairs",
        "Complete lists after the first, and objects whose lost events such a list repaired.",
        "short",
        (
            Query("sum by (kind) (increase(topodns_relists_total{SEL}[$__rate_interval]))", "lists of {{kind}}"),
            Query("sum by (kind) (increase(topodns_resync_repairs_total{SEL}[$__rate_interval]))", "repaired {{kind}}"),
        ),
    ),
    Panel(
        "Objects held",
        "By kind, in the instance that has most.",
        "short",
        (Query("max by (kind) (topodns_state_objects{SEL})", "{{kind}}"),),
    ),
    Panel(
        "Requests to the API server",
        "By the code of the response.",
        "reqps",
        (
            Query(
                "sum by (code) (rate(coredns_kubernetes_rest_client_requests_total{SEL}[$__rate_interval]))",
                "{{code}}",
            ),
        ),
    ),
    Panel(
        "Memory",
        "Resident.",
        "bytes",
        (Query("process_resident_memory_bytes{SEL}", "{{instance}}"),),
    ),
)

_PUSH: Final = (
    Panel(
        "Sessions and subscriptions",
        "Of node caches and other clients, which get changes of their subscriptions at once.",
        "short",
        (
            Query("sum(topodns_push_sessions{SEL})", "sessions"),
            Query("sum(topodns_push_subscriptions{SEL})", "subscriptions"),
        ),
    ),
    Panel(
        "Changes pushed",
        "PUSH messages to all sessions.",
        "ops",
        (Query("sum(rate(topodns_push_messages_total{SEL}[$__rate_interval]))", "messages"),),
    ),
    Panel(
        "Push requests refused",
        "sessions, subscriptions and memory are limits: those clients wait for TTLs.",
        "short",
        (
            Query(
                "sum by (reason) (increase(topodns_push_refused_total{SEL}[$__rate_interval]))",
                "{{reason}}",
            ),
        ),
    ),
)

_LOCATORS: Final = (
    Panel(
        "Locators held",
        "NodeLocators and PodLocators, in the instance that has most.",
        "short",
        (Query('max by (kind) (topodns_state_objects{SEL,kind=~"NodeLocator|PodLocator"})', "{{kind}}"),),
    ),
    Panel(
        "Addresses in locators that contradict",
        "They locate no client: Nodes, Pods, podCIDRs or other locators have them on another node.",
        "short",
        (
            Query(
                "max by (kind, reason) (topodns_locator_contradictions{SEL})",
                "{{kind}}: {{reason}}",
            ),
        ),
    ),
    Panel(
        "Addresses in locators that are refused",
        "They locate no client either: loopback, link-local, malformed, or too many of one object.",
        "short",
        (
            Query(
                "max by (kind, reason) (topodns_locator_refused_addresses{SEL})",
                "{{kind}}: {{reason}}",
            ),
        ),
    ),
)

TOPOLOGY: Final = Board(
    "topodns-topology",
    "topodns: topology",
    "Answers about headless Services, their distances, unlocated clients, the state, pushed changes, and locators.",
    "topodns_state_synced",
    {
        "Answers about headless Services": _ANSWERS,
        "Distance of endpoints from clients": _DISTANCES,
        "State of the cluster": _STATE,
        "Push": _PUSH,
        "Locators": _LOCATORS,
    },
    (
        Figure("price_per_gb", "Price per GB between zones", "0.01"),
        Figure("mb_per_answer", "MB of traffic per answer (assumed)", "1"),
    ),
)
