"""config/kubernetes/node-cache: what its files say of each other, and that node-cache takes what they give it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.node_cache_template import ENVIRONMENT
from topodns.corefile.arguments import Address
from topodns.nodecache.corefile import NodeCorefile
from topodns.nodecache.flags import parse_flags
from topodns.nodecache.settings import NodeCacheFlags

FOLDER = Path(__file__).parents[3] / "config/kubernetes/node-cache"


def objects() -> dict[tuple[str, str], dict[str, Any]]:
    """By kind and name."""
    files = [path for path in FOLDER.iterdir() if path.name != "kustomization.yaml"]
    found = [each for path in files for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.fixture
def container() -> dict[str, Any]:
    pod = objects()["DaemonSet", "node-local-dns"]["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    return dict(only)


@pytest.fixture
def flags(container: dict[str, Any], tmp_path: Path) -> NodeCacheFlags:
    """The flags of the container's arguments, with the ConfigMap's files in a directory of the test."""
    (tmp_path / "Corefile.base").write_text(objects()["ConfigMap", "node-local-dns"]["data"]["Corefile"])
    (addresses,) = (each["value"] for each in container["env"] if each["name"] == "LOCAL_ADDRESSES")
    command, *arguments = (argument.replace("$(LOCAL_ADDRESSES)", addresses) for argument in container["args"])
    assert command == "node-cache"
    return parse_flags([*arguments, f"-basecorefile={tmp_path}/Corefile.base"], {"NODE_NAME": "node1"})


def test_every_file_is_applied() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted([*listed, "kustomization.yaml"]) == sorted(path.name for path in FOLDER.iterdir())


def test_it_has_the_objects_of_nodelocal_dnscache_and_no_rights() -> None:
    assert objects().keys() == {
        ("ConfigMap", "node-local-dns"),
        ("DaemonSet", "node-local-dns"),
        ("Service", "kube-dns-upstream"),
        ("Service", "node-local-dns"),
        ("ServiceAccount", "node-local-dns"),
    }
    assert {each["metadata"]["namespace"] for each in objects().values()} == {"kube-system"}


def test_the_template_can_be_served_and_is_probed_where_it_says(
    container: dict[str, Any], flags: NodeCacheFlags, tmp_path: Path
) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    corefile = NodeCorefile(flags, ENVIRONMENT, str(tmp_path / "resolv.conf"))
    rendered = corefile.render(corefile.read())
    assert rendered.problems == ()
    first, *_ = corefile.settings(rendered.text).blocks
    assert first.settings.get("health") is not None
    assert first.settings.get("ready") is not None
    probed = [container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")]
    assert [(each["path"], Address(each["host"], each["port"])) for each in probed] == [
        ("/health", first.settings["health"].listen),
        ("/ready", first.settings["ready"].listen),
    ]
    assert probed[0]["host"] == str(flags.local_ips[0])
    assert flags.node_name == "node1"


def test_a_pod_can_follow_another_on_its_node(container: dict[str, Any]) -> None:
    """With hostNetwork, what `ports` names only one pod of a node may have: the next one would wait for ever."""
    spec = objects()["DaemonSet", "node-local-dns"]["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["minReadySeconds"] > 0
    assert "ports" not in container
