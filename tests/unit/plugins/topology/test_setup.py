"""The options of `topology`."""

from ipaddress import ip_network

import pytest

from tests.support.corefile_settings import block_problem, only_block
from topodns.cluster.label_selector import parse_selector
from topodns.cluster.model import KeySource, Policy
from topodns.corefile.arguments import Address
from topodns.corefile.errors import listed
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import parse_blocks
from topodns.dns.name import ROOT
from topodns.plugins.context import Context
from topodns.plugins.topology.settings import PageSettings, TopologySettings
from topodns.plugins.topology.setup import parse_topology
from topodns.topology.client_locator import Method
from topodns.topology.keys import NAMED_SOURCES, DefaultKeys
from topodns.topology.select import OnInvalid, UnknownClient

SOURCES = listed([source.value for source in NAMED_SOURCES])
ZONES = Policy(("zone", "*"), KeySource.DEFAULT)
DEFAULT = "default KEYS [namespaces NAMESPACE...] [labels SELECTOR]"
NAMESPACE = "expected a namespace: lower-case letters, digits and '-', at most 63, with blanks between several"
NO_NAMESPACES = ("shop,data", "Shop", "shop*", "-shop", "shop.data", "s" * 64, "topodns.io/max-load")
METHODS = listed([method.value for method in Method])
KUBERNETES = "kubernetes cluster.local {\n manifests .\n}"
DEFAULTS_WRITTEN_OUT = """\
topology {
    keys annotation field openyurt            # sources in order
    locate nodes podcidr pods slices          # methods in order
    unknown_client strict
    on_invalid ignore
}"""


def topology(lines: str) -> TopologySettings:
    found: TopologySettings = only_block(f"{KUBERNETES}\n{lines}").settings["topology"]
    return found


def test_topology_alone_takes_the_defaults() -> None:
    assert topology("topology") == topology(DEFAULTS_WRITTEN_OUT) == TopologySettings()


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("keys hints annotation", TopologySettings(keys=(KeySource.HINTS, KeySource.ANNOTATION))),
        (
            "keys traffic-distribution internal-traffic-policy superedge",
            TopologySettings(
                keys=(KeySource.TRAFFIC_DISTRIBUTION, KeySource.INTERNAL_TRAFFIC_POLICY, KeySource.SUPEREDGE)
            ),
        ),
        ("locate pods nodes", TopologySettings(locate=(Method.PODS, Method.NODES))),
        ("locate podlocator nodelocator", TopologySettings(locate=(Method.PODLOCATOR, Method.NODELOCATOR))),
        (
            "trust 169.254.20.10/32 10.0.0.0/8 fd00::1",
            TopologySettings(trust=(ip_network("169.254.20.10"), ip_network("10.0.0.0/8"), ip_network("fd00::1"))),
        ),
        ("unknown_client strict", TopologySettings(unknown_client=UnknownClient.STRICT)),
        ("unknown_client all", TopologySettings(unknown_client=UnknownClient.ALL)),
        ("unknown_client refuse", TopologySettings(unknown_client=UnknownClient.REFUSE)),
        ("default zone,*", TopologySettings(defaults=(DefaultKeys(ZONES),))),
        (
            "default zone,* namespaces shop web labels env in (a, b),!canary",
            TopologySettings(defaults=(DefaultKeys(ZONES, ("shop", "web"), parse_selector("env in (a, b),!canary")),)),
        ),
        (
            "default zone,* labels app=db\ndefault !zone",
            TopologySettings(
                defaults=(
                    DefaultKeys(ZONES, (), parse_selector("app=db")),
                    DefaultKeys(Policy(("!zone",), KeySource.DEFAULT)),
                )
            ),
        ),
        ("on_invalid deny", TopologySettings(on_invalid=OnInvalid.DENY)),
        ("ttl 0", TopologySettings(ttl=0)),
        ("ttl 30", TopologySettings(ttl=30)),
        ("filter_hostnames", TopologySettings(filter_hostnames=True)),
        ("terminating_fallback", TopologySettings(terminating_fallback=True)),
        ("srv_priority", TopologySettings(srv_priority=True)),
        ("page", TopologySettings(page=PageSettings(Address("127.0.0.1", 8182)))),
        ("page 127.0.0.9:99", TopologySettings(page=PageSettings(Address("127.0.0.9", 99)))),
        ("page [::1]:99 queries", TopologySettings(page=PageSettings(Address("::1", 99), queries=True))),
        ("page queries public", TopologySettings(page=PageSettings(public=True, queries=True))),
        ("page :99 public", TopologySettings(page=PageSettings(Address("", 99), public=True))),
    ],
)
def test_options(option: str, expected: TopologySettings) -> None:
    assert topology(f"topology {{\n{option}\n}}") == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("keys annotations", "'keys' has 'annotations', did you mean 'annotation'?"),
        ("keys field field", "'keys' has a word twice, expected each once: field field"),
        (
            "keys",
            f"'keys' has no argument, expected some of {SOURCES}",
        ),
        ("locate identity", f"'locate' has 'identity', expected {METHODS}"),
        ("locate nodelocators", "'locate' has 'nodelocators', did you mean 'nodelocator'?"),
        ("locate", f"'locate' has no argument, expected some of {METHODS}"),
        ("trust 169.254.20.10/33", "'trust' has '169.254.20.10/33', expected a prefix length from 0 to 32"),
        ("trust everybody", "'trust' has 'everybody', expected an address or ADDRESS/LENGTH"),
        ("trust 10.0.0.0/255.0.0.0", "'trust' has '10.0.0.0/255.0.0.0', expected an address or ADDRESS/LENGTH"),
        ("trust", "'trust' has no argument, expected addresses or ADDRESS/LENGTH"),
        ("unknown_client any", "'unknown_client' has 'any', expected strict, all or refuse"),
        ("unknown_client", "'unknown_client' has no argument, expected strict, all or refuse"),
        ("default", "'default' has no argument, expected topology keys, separated by commas"),
        ("default none", "'default' has 'none', expected topology keys, separated by commas"),
        (
            "default zone,,*",
            "'default' has invalid topology keys: expected a label key or *, found nothing (a comma too many)",
        ),
        ("default *,zone", "'default': keys after * are ignored: zone"),
        ("default zone namespace shop", "'default' has 'namespace', did you mean 'namespaces'?"),
        *(
            (
                f"default {keys} namespaces shop",
                f"'default' has blanks in its keys '{keys}', expected one word such as zone,*",
            )
            for keys in ("zone, *", "zone , *", "zone ,*", "rack, zone, *")
        ),
        (
            "default zone labels app=db namespaces shop",
            f"'default' has 'namespaces' behind 'labels', expected {DEFAULT}",
        ),
        *((f"default zone namespaces {name}", f"'default' has '{name}', {NAMESPACE}") for name in NO_NAMESPACES),
        (
            "default zone,* namespaces shop min-endpoints 2",
            "'default' has 'min-endpoints': guards are annotations of Services, here topodns.io/min-endpoints",
        ),
        (
            "default zone,* max-load 1.5",
            "'default' has 'max-load': guards are annotations of Services, here topodns.io/max-load",
        ),
        ("default zone namespaces", f"'default' has nothing behind 'namespaces', expected {DEFAULT}"),
        ("default zone namespaces labels a", f"'default' has nothing behind 'namespaces', expected {DEFAULT}"),
        ("default zone labels", f"'default' has nothing behind 'labels', expected {DEFAULT}"),
        ("on_invalid deny now", "'on_invalid' has the arguments 'deny now', expected ignore or deny"),
        ("ttl 5s", "'ttl' has '5s', expected a whole number from 0 to 3600"),
        ("filter_hostnames off", "'filter_hostnames' has the arguments 'off', expected none"),
        ("terminating_fallback x", "'terminating_fallback' has the arguments 'x', expected none"),
        ("srv_priority 10", "'srv_priority' has the arguments '10', expected none"),
        ("srv_priorities", "unknown option 'srv_priorities' of 'topology', did you mean 'srv_priority'?"),
        ("page 8182", "'page' has '8182', expected HOST:PORT, public or queries"),
        ("page publik", "'page' has 'publik', did you mean 'public'?"),
        ("page public public", "'page' has a word twice, expected each once: public public"),
        ("page a:1 b:2", "'page' has the arguments 'a:1 b:2', expected one address HOST:PORT or :PORT at most"),
        ("page 127.0.0.1:99999", "'page' has '127.0.0.1:99999', expected a port from 1 to 65535"),
        *(
            (
                f"page {address}",
                f"'page' has the arguments '{address}', expected an address of loopback such as 127.0.0.1:8182, or the "
                "word 'public' behind it, as the page shows Nodes and addresses to all who can reach it",
            )
            for address in (":8182", "0.0.0.0:8182", "10.0.0.9:8182", "localhost:8182", "127.0.0.1.example:8182")
        ),
        ("unknown_clients all", "unknown option 'unknown_clients' of 'topology', did you mean 'unknown_client'?"),
    ],
)
def test_a_wrong_option_is_refused(option: str, expected: str) -> None:
    assert block_problem(f"{KUBERNETES}\ntopology {{\n{option}\n}}") == f"Corefile:6: {expected}"


@pytest.mark.parametrize(
    ("former", "latter", "shadowed"),
    [
        ("default rack", "default zone", True),
        ("default rack", "default zone namespaces shop labels app=db", True),
        ("default rack namespaces shop web", "default zone namespaces web", True),
        ("default rack labels app=db", "default zone labels app=db,tier=1", True),
        ("default rack namespaces shop", "default zone", False),
        ("default rack namespaces shop", "default zone namespaces shop web", False),
        ("default rack labels app=db", "default zone", False),
        ("default rack namespaces max-load", "default zone namespaces shop", False),
    ],
)
def test_a_default_that_a_former_one_shadows_is_warned_of(former: str, latter: str, shadowed: bool) -> None:
    (block,) = parse_blocks(tokenize(f". {{\ntopology {{\n{former}\n{latter}\n}}\n}}", "Corefile"))
    lines: list[str] = []
    parse_topology(block.directives[0], Context((ROOT,), warn=lines.append))
    warning = (
        "plugin/topology: this 'default' has no effect, since that at Corefile:3 holds for the same Services "
        "(Corefile:4)"
    )
    assert lines == [warning] * shadowed


def test_an_option_twice_is_refused() -> None:
    lines = "topology {\n ttl 1\n filter_hostnames\n ttl 2\n}"
    assert block_problem(f"{KUBERNETES}\n{lines}") == "Corefile:8: found 'ttl' again, first at Corefile:6"


def test_arguments_on_the_line_itself_are_refused() -> None:
    assert block_problem(f"{KUBERNETES}\ntopology strict") == (
        "Corefile:5: 'topology' has the arguments 'strict', expected none"
    )


def test_a_wrong_selector_of_a_default_is_refused_with_its_reason() -> None:
    problem = block_problem(f"{KUBERNETES}\ntopology {{\ndefault zone labels a in b\n}}")
    assert problem.startswith("Corefile:6: 'default' has no label selector: ")
