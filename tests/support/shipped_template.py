"""The template of our own manifests."""

import yaml

from tests.support.process import ROOT


def shipped_template() -> str:
    """As it stands in the ConfigMap."""
    path = ROOT / "config/kubernetes/node-cache/configmap.yaml"
    found = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    (text,) = (each["data"]["Corefile"] for each in found if each["kind"] == "ConfigMap")
    return str(text)
