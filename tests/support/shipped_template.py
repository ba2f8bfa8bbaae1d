"""The template of config/kubernetes. `node_cache_template` must not import what this does: its modules are counted."""

import yaml

from tests.support.server_process import ROOT


def shipped_template() -> str:
    """From its ConfigMap."""
    path = ROOT / "config/kubernetes/node-cache/configmap.yaml"
    found = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    (text,) = (each["data"]["Corefile"] for each in found if each["kind"] == "ConfigMap")
    return str(text)
