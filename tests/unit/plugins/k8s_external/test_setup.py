"""The zones and the options of `k8s_external`."""

import pytest

from tests.support.corefile_settings import only_directive
from topodns.corefile.errors import ConfigError
from topodns.plugins.context import Context
from topodns.plugins.k8s_external.settings import K8sExternal
from topodns.plugins.k8s_external.setup import parse_k8s_external

ORG, NET = ("example", "org"), ("example", "net")

EXTERNAL = {
    "k8s_external": K8sExternal((ORG,)),
    "k8s_external Example.net example.org": K8sExternal((NET, ORG)),
    "k8s_external {\n apex NS\n ttl 30\n headless\n}": K8sExternal((ORG,), apex="ns", ttl=30, headless=True),
    "k8s_external {\n fallthrough\n}": K8sExternal((ORG,), fallthrough=((),)),
    "k8s_external {\n fallthrough example.net\n}": K8sExternal((ORG,), fallthrough=(NET,)),
}


@pytest.mark.parametrize(("text", "settings"), EXTERNAL.items())
def test_k8s_external_is_read_as_coredns_reads_it(text: str, settings: K8sExternal) -> None:
    assert parse_k8s_external(only_directive(text), Context((ORG,))) == settings


EXTERNAL_REFUSED = {
    "k8s_external {\n ttl 3601\n}": "Corefile:2: 'ttl' has '3601', expected a whole number from 0 to 3600",
    "k8s_external {\n apex a.b\n}": "Corefile:2: 'apex' has the arguments 'a.b', expected one label, without dots",
    "k8s_external {\n apex ..\n}": "Corefile:2: 'apex' has no label",
    "k8s_external {\n headless yes\n}": "Corefile:2: 'headless' has the arguments 'yes', expected none",
    "k8s_external {\n hedless\n}": "Corefile:2: unknown option 'hedless' of 'k8s_external', did you mean 'headless'?",
}


@pytest.mark.parametrize(("text", "problem"), EXTERNAL_REFUSED.items())
def test_k8s_external_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_k8s_external(only_directive(text), Context((ORG,)))
    assert str(refused.value).startswith(problem)
