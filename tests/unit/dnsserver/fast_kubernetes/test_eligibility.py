"""Server blocks and origins that have a fast path to `kubernetes`."""

import pytest

from tests.support.corefile_settings import settings
from tests.support.generation_builder import assembly
from topodns.corefile.zones import ListenAt

ABOVE = "cluster.local in-addr.arpa"


def origins(corefile: str) -> list[str]:
    """The origins with a fast path on port 53, each with the label of its server block."""
    generation = assembly().build(settings(corefile))
    return sorted(
        f"{'.'.join(each.origin.name)} in {each.label}" for each in generation.tables[ListenAt("", 53)].fast_zones
    )


def of_block(lines: str, kubernetes: str = "") -> list[str]:
    return origins(f". {{\nkubernetes {ABOVE} {{\nmanifests /\n{kubernetes}\n}}\n{lines}\n}}\n")


HERE = ["cluster.local in ."]


@pytest.mark.parametrize(
    ("directives", "there"),
    [
        ("", True),
        ("errors\nhealth\nready\nprometheus\nreload\nloop\ntopology\nloadbalance\ncache 30\nforward . 192.0.2.1", True),
        ("bufsize 1400\ncancel\nmetadata\npprof\ndebug", True),
        ("whoami", True),  # below `kubernetes`
        ("log", False),
        ("loadbalance round_robin {\nprefer 10.0.0.0/8\n}", False),
        ("acl {\nblock net 10.0.0.0/8\n}", False),
        ("rewrite name a.example b.example", False),
        ("hosts {\n192.0.2.1 a.example\nfallthrough\n}", False),
        ("template IN AAAA . {\nrcode NXDOMAIN\n}", False),
        ("autopath @kubernetes", False),
        ("nsid", False),
        ("minimal", False),
        ("any", False),
        ("local", False),
        ("chaos", False),
        ("dns64", False),
        ("header {\nresponse set ra\n}", False),
        ("topology {\nunknown_client refuse\n}", True),
        ("topology {\nunknown_client all\n}", True),
    ],
)
def test_the_fast_path_is_there_where_no_plugin_above_has_a_say(directives: str, there: bool) -> None:
    assert of_block(directives) == (HERE if there else [])


@pytest.mark.parametrize(
    ("option", "there"),
    [
        ("pods verified\nttl 30\nendpoint_pod_names\nzonal", True),
        ("fallthrough in-addr.arpa ip6.arpa", True),
        ("fallthrough", False),
        ("fallthrough svc.cluster.local", False),
        ("fallthrough cluster.local", False),
        ("multicluster cluster.local", True),
        ("namespaces a", True),
        ("namespace_labels dns=yes", True),
        ("noendpoints", True),
        ("ignore empty_service", True),
    ],
)
def test_only_an_option_that_passes_names_on_bars_it(option: str, there: bool) -> None:
    assert of_block("", option) == (HERE if there else [])


KUBERNETES = "kubernetes cluster.local {\nmanifests /\n}"


@pytest.mark.parametrize(
    ("corefile", "found"),
    [
        (f"cluster.local {{\n{KUBERNETES}\n}}\n. {{\nwhoami\n}}", ["cluster.local in cluster.local."]),
        (f"local {{\n{KUBERNETES}\n}}\ncluster.local {{\nwhoami\n}}", []),
        (f"local {{\n{KUBERNETES}\n}}\na.svc.cluster.local {{\nwhoami\n}}", []),
        (f"svc.cluster.local {{\n{KUBERNETES}\n}}", []),
        (f"local {{\n{KUBERNETES}\n}}\nexample {{\nwhoami\n}}", ["cluster.local in local."]),
        (f". {{\n{KUBERNETES}\n}}\nlocal {{\nwhoami\n}}", []),
        ("a {\nkubernetes a b.a {\nmanifests /\n}\n}", ["b.a in a."]),
        (f". {{\nview v {{\nexpr true\n}}\n{KUBERNETES}\n}}", []),
    ],
)
def test_all_names_of_an_origin_have_to_come_to_the_block(corefile: str, found: list[str]) -> None:
    assert origins(corefile) == found
