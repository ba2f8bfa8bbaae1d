"""Where a Service's topology keys come from, and which lists are refused or mended."""

import json
from dataclasses import replace

import pytest

from tests.support.model_builders import service
from tests.support.topology_key_cases import CASES, Case
from topodns.cluster.model import MAX_KEYS_TEXT, InvalidPolicy, KeySource, Policy, Service, TopologyInputs
from topodns.topology.keys import misplaced, overridden, policy_of

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
POOL = "apps.openyurt.io/nodepool"
DEFAULT_SOURCES = (KeySource.ANNOTATION, KeySource.FIELD, KeySource.OPENYURT)
EVERY_SOURCE = tuple(KeySource)
SIXTEEN_KEYS = tuple(f"example.com/key-{number}" for number in range(16))


def saying(inputs: TopologyInputs) -> Service:
    """A headless Service that says this about topology."""
    return replace(service("db"), topology=inputs)


def saying_with_cluster_ip(inputs: TopologyInputs) -> Service:
    return replace(service("web", namespace="shop", cluster_ips=["10.96.0.7"]), topology=inputs)


def keys_of(annotation: str) -> tuple[str, ...] | None:
    """The keys that a valid annotation asks for; None: no filtering."""
    policy = policy_of(service("db", annotation=annotation), DEFAULT_SOURCES)
    assert not isinstance(policy, InvalidPolicy), policy
    return policy.keys if policy else None


VALID_ANNOTATIONS = {
    "one key": (ZONE, (ZONE,)),
    "a comma list keeps its order": (f"{HOST},{ZONE},*", (HOST, ZONE, "*")),
    "blanks around commas are no part of a key": (f"  {HOST} ,\t{ZONE}\n", (HOST, ZONE)),
    "a JSON array means the same as a comma list": (f'["{HOST}", "{ZONE}", "*"]', (HOST, ZONE, "*")),
    "* alone": ("*", ("*",)),
    "a key without prefix": ("rack", ("rack",)),
    "a key keeps its case": ("Zone", ("Zone",)),
    "a name of 63 characters": ("a" * 63, ("a" * 63,)),
    "a prefix of 253 characters": ("a" * 251 + ".b/c", ("a" * 251 + ".b/c",)),
    "a name with dots, dashes and underscores inside": ("example.com/a.b-c_d", ("example.com/a.b-c_d",)),
    "sixteen keys": (",".join(SIXTEEN_KEYS), SIXTEEN_KEYS),
    "none switches topology off": ("none", None),
    "none with blanks around it": (" none ", None),
    "none in a JSON array": ('["none"]', None),
    "nothing at all is no filtering": ("", None),
    "only blanks are nothing": ("  ", None),
    "an empty JSON array is no filtering": ("[]", None),
}


@pytest.mark.parametrize(("annotation", "keys"), VALID_ANNOTATIONS.values(), ids=VALID_ANNOTATIONS)
def test_an_annotation_lists_keys(annotation: str, keys: tuple[str, ...] | None) -> None:
    assert keys_of(annotation) == keys


INVALID_ANNOTATIONS = {
    "seventeen keys": (",".join((*SIXTEEN_KEYS, "one-more")), "at most 16 keys, found 17"),
    "seventeen keys, one of them twice": (",".join((*SIXTEEN_KEYS, SIXTEEN_KEYS[0])), "at most 16 keys, found 17"),
    "an empty element": (f"{HOST},,{ZONE}", "found nothing"),
    "a comma at the end": (f"{ZONE},", "found nothing"),
    "an element of blanks": (f"{HOST},  ,{ZONE}", "found nothing"),
    "an empty string in JSON": ('[""]', "found nothing"),
    "blanks inside a key": ("my rack", "found 'my rack'"),
    "blanks around a key in JSON": ('[" rack"]', "found ' rack'"),
    "a name that begins with a dash": ("-rack", "found '-rack'"),
    "a name that ends with a dot": ("rack.", "found 'rack.'"),
    "a name of 64 characters": ("a" * 64, "a label key or *"),
    "a letter outside ASCII": ("zoné", "found 'zoné'"),
    "an empty prefix": ("/zone", "found '/zone'"),
    "an empty name": ("example.com/", "found 'example.com/'"),
    "two slashes": ("a/b/c", "found 'a/b/c'"),
    "a prefix in capitals": ("Example.com/zone", "found 'Example.com/zone'"),
    "a prefix of 254 characters": ("a" * 252 + ".b/c", "a label key or *"),
    "a prefix with an empty label": ("example..com/zone", "found 'example..com/zone'"),
    "a glob other than *": ("topology.*/zone", "found 'topology.*/zone'"),
    "two stars": ("**", "found '**'"),
    "a flaw after *, too": ("*,not valid", "found 'not valid'"),
    "a JSON object": ('{"keys": ["zone"]}', "a JSON array of strings"),
    "a JSON string": ('"zone"', "a JSON array of strings"),
    "a JSON array of numbers": ("[1, 2]", "a JSON array of strings"),
    "a JSON array of arrays": ('[["zone"]]', "a JSON array of strings"),
    "JSON that is cut off": ('["zone"', "a JSON array of strings"),
    "JSON with a tail": ('["zone"] zone', "a JSON array of strings"),
    "JSON nested beyond reason": ("[" * 8_000, "a JSON array of strings"),
    "a number beyond reason": (f"[{'9' * 5_000}]", "a JSON array of strings"),
}


@pytest.mark.parametrize(("annotation", "problem"), INVALID_ANNOTATIONS.values(), ids=INVALID_ANNOTATIONS)
def test_an_annotation_is_invalid_with(annotation: str, problem: str) -> None:
    policy = policy_of(service("db", annotation=annotation), DEFAULT_SOURCES)
    assert isinstance(policy, InvalidPolicy)
    assert policy.source is KeySource.ANNOTATION
    assert problem in policy.problem
    assert len(policy.problem) < 200, "a problem is one log line, however long the annotation"


MENDED = {
    "what follows * is cut off": (f"{HOST},*,{ZONE}", (HOST, "*"), f"keys after * are ignored: {ZONE}"),
    "a second * is cut off": ("*,*", ("*",), "keys after * are ignored: *"),
    "a repeated key counts once, where it first stands": (
        f"{ZONE},{HOST},{ZONE}",
        (ZONE, HOST),
        f"repeated keys are ignored: {ZONE}",
    ),
    "a key repeated twice is named once": ("a,a,a,b", ("a", "b"), "repeated keys are ignored: a"),
}


@pytest.mark.parametrize(("annotation", "keys", "warning"), MENDED.values(), ids=MENDED)
def test_a_list_that_can_be_mended_is_with_a_warning(annotation: str, keys: tuple[str, ...], warning: str) -> None:
    assert policy_of(service("db", annotation=annotation), DEFAULT_SOURCES) == Policy(
        keys, KeySource.ANNOTATION, warnings=(f"annotation 'topodns.io/topology-keys': {warning}",)
    )


def test_both_flaws_of_one_list_are_warned_of() -> None:
    policy = policy_of(service("db", annotation="a,a,*,b"), DEFAULT_SOURCES)
    assert isinstance(policy, Policy)
    assert policy.keys == ("a", "*")
    assert len(policy.warnings) == 2


FIELDS = {
    "keys": ((HOST, "*"), Policy((HOST, "*"), KeySource.FIELD)),
    "the word none is an ordinary key there": (("none",), Policy(("none",), KeySource.FIELD)),
    "an empty list says nothing": ((), None),
    "a bad key": (("no key",), InvalidPolicy(KeySource.FIELD, "expected a label key or *, found 'no key'")),
}


@pytest.mark.parametrize(("field", "policy"), FIELDS.values(), ids=FIELDS)
def test_spec_topology_keys_hold(field: tuple[str, ...], policy: Policy | InvalidPolicy | None) -> None:
    assert policy_of(service("db", field=field), DEFAULT_SOURCES) == policy


OPENYURT = {
    "hostname: the client's node": (HOST, Policy((HOST,), KeySource.OPENYURT)),
    "node pool: the pool, or the node where the client has none": (
        "openyurt.io/nodepool",
        Policy((POOL,), KeySource.OPENYURT, keys_if_unlabelled=(HOST,)),
    ),
    "kubernetes.io/zone: the pool as well": (
        "kubernetes.io/zone",
        Policy((POOL,), KeySource.OPENYURT, keys_if_unlabelled=(HOST,)),
    ),
    "the real zone label: unknown there, no filtering": (ZONE, None),
    "the label that holds the pool: unknown there, no filtering": (POOL, None),
    "a list of two known values: no filtering": (f"{HOST},kubernetes.io/zone", None),
    "a value with blanks: compared whole, no filtering": (f" {HOST}", None),
    "nothing: no filtering": ("", None),
    "*: no filtering": ("*", None),
}


@pytest.mark.parametrize(("annotation", "policy"), OPENYURT.values(), ids=OPENYURT)
def test_openyurt_topology_keys_mean(annotation: str, policy: Policy | None) -> None:
    assert policy_of(service("db", openyurt=annotation), DEFAULT_SOURCES) == policy


SUPEREDGE = {
    "a JSON array": ('["zone1", "*"]', Policy(("zone1", "*"), KeySource.SUPEREDGE)),
    "an empty array says nothing": ("[]", None),
    "nothing says nothing": ("", None),
    "a bare key is no array": (
        "zone1",
        InvalidPolicy(KeySource.SUPEREDGE, "expected a JSON array of strings, found 'zone1'"),
    ),
}


@pytest.mark.parametrize(("annotation", "policy"), SUPEREDGE.values(), ids=SUPEREDGE)
def test_superedge_topology_keys_are(annotation: str, policy: Policy | InvalidPolicy | None) -> None:
    assert policy_of(service("db", superedge=annotation), [KeySource.SUPEREDGE]) == policy


OPT_IN = {
    "PreferClose is the zone, else all": (
        KeySource.TRAFFIC_DISTRIBUTION,
        TopologyInputs(traffic_distribution="PreferClose"),
        (ZONE, "*"),
    ),
    "PreferSameZone is the zone, else all": (
        KeySource.TRAFFIC_DISTRIBUTION,
        TopologyInputs(traffic_distribution="PreferSameZone"),
        (ZONE, "*"),
    ),
    "PreferSameNode is the node, else the zone, else all": (
        KeySource.TRAFFIC_DISTRIBUTION,
        TopologyInputs(traffic_distribution="PreferSameNode"),
        (HOST, ZONE, "*"),
    ),
    "another distribution says nothing": (
        KeySource.TRAFFIC_DISTRIBUTION,
        TopologyInputs(traffic_distribution="example.com/spread"),
        None,
    ),
    "Local is the node or nothing": (
        KeySource.INTERNAL_TRAFFIC_POLICY,
        TopologyInputs(internal_traffic_policy="Local"),
        (HOST,),
    ),
    "Cluster says nothing": (
        KeySource.INTERNAL_TRAFFIC_POLICY,
        TopologyInputs(internal_traffic_policy="Cluster"),
        None,
    ),
}


@pytest.mark.parametrize(("source", "said", "keys"), OPT_IN.values(), ids=OPT_IN)
def test_a_field_that_users_already_set_counts_only_where_it_is_a_source(
    source: KeySource, said: TopologyInputs, keys: tuple[str, ...] | None
) -> None:
    assert policy_of(saying(said), DEFAULT_SOURCES) is None
    assert policy_of(saying(said), [*DEFAULT_SOURCES, source]) == (keys and Policy(keys, source))


def test_hints_are_followed_by_every_headless_service_that_says_nothing_else() -> None:
    sources = (*DEFAULT_SOURCES, KeySource.HINTS)
    assert policy_of(service("db"), sources) == Policy((), KeySource.HINTS)
    assert policy_of(service("db", annotation=ZONE), sources) == Policy((ZONE,), KeySource.ANNOTATION)


ALL_SPEAK = TopologyInputs(annotation="rack", field=("row",), openyurt=HOST, traffic_distribution="PreferClose")
PRECEDENCE = {
    "the annotation is first": (DEFAULT_SOURCES, ALL_SPEAK, ("rack",)),
    "then the field": (DEFAULT_SOURCES, replace(ALL_SPEAK, annotation=None), ("row",)),
    "then OpenYurt": (DEFAULT_SOURCES, replace(ALL_SPEAK, annotation=None, field=None), (HOST,)),
    "an empty field leaves the word to OpenYurt": (DEFAULT_SOURCES, TopologyInputs(field=(), openyurt=HOST), (HOST,)),
    "an OpenYurt value that means nothing there leaves the word to the next": (
        (KeySource.OPENYURT, KeySource.TRAFFIC_DISTRIBUTION),
        TopologyInputs(openyurt="rack", traffic_distribution="PreferClose"),
        (ZONE, "*"),
    ),
    "none ends the search": (EVERY_SOURCE, replace(ALL_SPEAK, annotation="none"), None),
    "a blank annotation is no value": (EVERY_SOURCE, replace(ALL_SPEAK, annotation=" "), ("row",)),
    "the operator's order is the order": ((KeySource.FIELD, KeySource.ANNOTATION), ALL_SPEAK, ("row",)),
    "a source that is not listed is not asked": ((KeySource.OPENYURT,), ALL_SPEAK, (HOST,)),
    "no sources: no policy": ((), ALL_SPEAK, None),
    "a Service that says nothing": (DEFAULT_SOURCES, TopologyInputs(), None),
}


@pytest.mark.parametrize(("sources", "said", "keys"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_the_first_source_that_says_something_decides(
    sources: tuple[KeySource, ...], said: TopologyInputs, keys: tuple[str, ...] | None
) -> None:
    policy = policy_of(saying(said), sources)
    assert not isinstance(policy, InvalidPolicy)
    assert (policy.keys if policy else None) == keys


def test_an_invalid_annotation_does_not_fall_through_to_the_field() -> None:
    policy = policy_of(service("db", annotation="not valid", field=(ZONE,)), DEFAULT_SOURCES)
    assert isinstance(policy, InvalidPolicy)


def test_only_a_headless_service_has_a_policy() -> None:
    assert policy_of(service("web", cluster_ips=["10.96.0.7"], annotation=ZONE), EVERY_SOURCE) is None
    assert policy_of(service("web", external_name="example.com", annotation=ZONE), EVERY_SOURCE) is None
    assert policy_of(service("web", cluster_ips=["10.96.0.7"], annotation="not valid"), EVERY_SOURCE) is None


MISPLACED = {
    "keys": (TopologyInputs(annotation=ZONE), True),
    "an invalid list": (TopologyInputs(annotation="not valid"), True),
    "none asks for nothing": (TopologyInputs(annotation="none"), False),
    "no annotation": (TopologyInputs(), False),
    "the field is kube-proxy's there": (TopologyInputs(field=(ZONE,)), False),
    "OpenYurt's annotation is YurtHub's there": (TopologyInputs(openyurt=HOST), False),
    "trafficDistribution is at home there": (TopologyInputs(traffic_distribution="PreferClose"), False),
}


@pytest.mark.parametrize(("said", "warned"), MISPLACED.values(), ids=MISPLACED)
def test_our_annotation_on_a_cluster_ip_is_warned_of(said: TopologyInputs, warned: bool) -> None:
    assert bool(misplaced(saying_with_cluster_ip(said), EVERY_SOURCE)) is warned
    assert misplaced(saying(said), EVERY_SOURCE) is None, "at home on a headless Service"


def test_the_warning_says_why_and_is_silent_where_annotations_are_not_read() -> None:
    web = saying_with_cluster_ip(TopologyInputs(annotation=ZONE))
    assert "not headless" in (misplaced(web, EVERY_SOURCE) or "")
    assert misplaced(web, [KeySource.FIELD]) is None


OVERRIDDEN = {
    "both": (TopologyInputs(annotation=ZONE, openyurt=HOST), EVERY_SOURCE, "annotation"),
    "ours asks for nothing": (TopologyInputs(annotation="none", openyurt=HOST), EVERY_SOURCE, "annotation"),
    "ours is invalid": (TopologyInputs(annotation="not valid", openyurt=HOST), EVERY_SOURCE, "annotation"),
    "OpenYurt's first": (
        TopologyInputs(annotation=ZONE, openyurt=HOST),
        [KeySource.OPENYURT, KeySource.ANNOTATION],
        "openyurt",
    ),
    "another source before both": (
        TopologyInputs(annotation=ZONE, openyurt=HOST, field=(ZONE,)),
        [KeySource.FIELD, KeySource.ANNOTATION, KeySource.OPENYURT],
        "field",
    ),
    "ours alone": (TopologyInputs(annotation=ZONE), EVERY_SOURCE, ""),
    "OpenYurt's alone": (TopologyInputs(openyurt=HOST), EVERY_SOURCE, ""),
    "a value that is none of OpenYurt's": (TopologyInputs(annotation=ZONE, openyurt="x"), EVERY_SOURCE, ""),
    "OpenYurt's is not asked": (TopologyInputs(annotation=ZONE, openyurt=HOST), [KeySource.ANNOTATION], ""),
}


@pytest.mark.parametrize(("said", "sources", "winner"), OVERRIDDEN.values(), ids=OVERRIDDEN)
def test_a_service_with_our_annotation_and_openyurt_s_has_a_notice_of_the_one_that_wins(
    said: TopologyInputs, sources: list[KeySource], winner: str
) -> None:
    notice = overridden(saying(said), sources)
    assert (f"`{winner}` is first in `keys`, and wins" in (notice or "")) if winner else notice is None
    assert overridden(saying_with_cluster_ip(said), sources) is None


TTLS = {
    "in range": ("30", 30, 0),
    "the lowest": ("1", 1, 0),
    "the highest": ("300", 300, 0),
    "blanks around it": (" 30 ", 30, 0),
    "below the lowest": ("0", 1, 1),
    "negative": ("-5", 1, 1),
    "above the highest": ("301", 300, 1),
    "far above it": ("9" * 18, 300, 1),
    "no number": ("soon", None, 1),
    "a duration": ("30s", None, 1),
    "a fraction": ("1.5", None, 1),
    "digits of another script": ("٣٠", None, 1),
    "nothing": ("", None, 1),
    "digits without end": ("9" * 10_000, None, 1),
}


@pytest.mark.parametrize(("text", "ttl", "warnings"), TTLS.values(), ids=TTLS)
def test_the_ttl_annotation_is_held_to_1_to_300_seconds(text: str, ttl: int | None, warnings: int) -> None:
    policy = policy_of(service("db", annotation=ZONE, ttl=text), DEFAULT_SOURCES)
    assert isinstance(policy, Policy)
    assert policy.ttl == ttl
    assert len(policy.warnings) == warnings


def test_a_ttl_goes_with_keys_of_any_source_and_alone_makes_no_policy() -> None:
    assert policy_of(service("db", field=(ZONE,), ttl="9"), DEFAULT_SOURCES) == Policy((ZONE,), KeySource.FIELD, ttl=9)
    assert policy_of(service("db", ttl="9"), DEFAULT_SOURCES) is None


@pytest.mark.parametrize(("text", "least"), [("1", 1), ("2", 2), (" 1000 ", 1000)])
def test_a_key_may_have_to_match_1_to_1000_endpoints(text: str, least: int) -> None:
    for source in (
        service("db", annotation=ZONE, min_endpoints=text),
        service("db", field=(ZONE,), min_endpoints=text),
    ):
        policy = policy_of(source, DEFAULT_SOURCES)
        assert isinstance(policy, Policy)
        assert (policy.keys, policy.min_endpoints) == ((ZONE,), least)


def test_guards_alone_make_no_policy_and_a_bad_one_leaves_the_keys() -> None:
    for keys in (None, "none"):
        assert policy_of(service("db", annotation=keys, min_endpoints="2", max_load="2"), DEFAULT_SOURCES) is None
    assert keys_of(ZONE) == (ZONE,)
    policy = policy_of(service("db", annotation=ZONE, min_endpoints="x", max_load="x", apply_to="x"), DEFAULT_SOURCES)
    assert policy == Policy((ZONE,), KeySource.ANNOTATION)


def test_a_list_means_the_same_in_both_spellings() -> None:
    keys = ["example.com/rack", HOST, "*"]
    assert keys_of(json.dumps(keys)) == keys_of(", ".join(keys)) == tuple(keys)


def test_superedge_topology_keys_of_too_many_characters_are_invalid() -> None:
    for text in (" " * (MAX_KEYS_TEXT + 1), '["zone1"]' + " " * MAX_KEYS_TEXT):
        invalid = InvalidPolicy(KeySource.SUPEREDGE, "expected at most 8192 characters")
        assert policy_of(service("db", superedge=text), [KeySource.SUPEREDGE]) == invalid


# The server's side of the table that tests/cluster/test_chart.py holds the chart's admission policy to.


@pytest.mark.parametrize("case", CASES, ids=[ascii(case.annotation)[:60] for case in CASES])
def test_the_server_reads_an_annotation_as_the_table_says(case: Case) -> None:
    service = Service("shop", "cache", headless=True, topology=TopologyInputs(annotation=case.annotation))
    policy = policy_of(service, [KeySource.ANNOTATION])
    assert isinstance(policy, InvalidPolicy) is (case.problem != "")
    if case.problem and isinstance(policy, InvalidPolicy):
        assert policy.problem == case.problem
