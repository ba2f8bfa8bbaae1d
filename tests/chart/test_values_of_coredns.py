"""The values of CoreDNS's chart: each works here as it is, or is refused with a sentence that has the value to set."""

from typing import Any

import pytest

from tests.support.chart.helm import Object, Refused, Values, rendered
from tests.support.chart.matrix import OPTIONS_OF_COREDNS, VALUES_OF_COREDNS


def deployment(values: Values, name: str) -> Object:
    (found,) = (each for each in rendered(values) if (each["kind"], each["metadata"]["name"]) == ("Deployment", name))
    return found


def test_all_of_them_are_taken_but_the_image() -> None:
    assert deployment(VALUES_OF_COREDNS, "topodns")["spec"]["template"]["spec"]["serviceAccountName"] == "default"
    for repository in ("coredns/coredns", "docker.io/coredns/coredns", "registry.k8s.io/coredns/coredns"):
        with pytest.raises(Refused) as refusal:
            rendered({**VALUES_OF_COREDNS, "image": {"repository": repository}})
        sentence = f"image.repository: expected an image of topodns, found {repository}, which is CoreDNS's"
        assert sentence in str(refusal.value)
    assert rendered({"image": {"repository": "registry.example.com/coredns"}})


def test_no_cluster_service_is_mode_beside() -> None:
    with pytest.raises(
        Refused, match=r"isClusterService: expected true in mode replace, found false: set mode to beside"
    ):
        rendered({"isClusterService": False})
    for value in (False, True):
        assert rendered({"isClusterService": value, "mode": "beside"}) == rendered({"mode": "beside"})


def test_the_label_of_the_cluster_dns_may_be_given_and_no_other() -> None:
    assert rendered({"k8sAppLabelOverride": "kube-dns"}) == rendered({})
    for values in ({"k8sAppLabelOverride": "coredns"}, {"k8sAppLabelOverride": "kube-dns", "mode": "beside"}):
        with pytest.raises(Refused, match=r"k8sAppLabelOverride: expected kube-dns, and mode replace, .* podLabels"):
            rendered(values)


def test_values_of_the_autoscaler_reach_its_pods_and_its_configuration() -> None:
    pods = deployment(OPTIONS_OF_COREDNS, "topodns-autoscaler")["spec"]["template"]
    autoscaler, own = pods["spec"]["containers"]
    assert own["name"] == "users-own"
    assert pods["metadata"]["annotations"] == {"a": "b"}
    assert pods["spec"]["securityContext"]["runAsUser"] == 65534
    assert autoscaler["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert autoscaler["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8080}
    (annotations,) = (
        each["metadata"]["annotations"]
        for each in rendered(OPTIONS_OF_COREDNS)
        if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", "topodns-autoscaler")
    )
    assert annotations == {"strategy.spinnaker.io/versioned": "false"}


def test_a_liveness_probe_of_the_autoscaler_can_be_left_out() -> None:
    values: dict[str, Any] = {"autoscaler": {"enabled": True, "livenessProbe": {"enabled": False}}}
    (autoscaler,) = deployment(values, "topodns-autoscaler")["spec"]["template"]["spec"]["containers"]
    assert "livenessProbe" not in autoscaler


def test_templates_in_values_may_use_the_name_of_coredns_chart() -> None:
    (spread,) = deployment(OPTIONS_OF_COREDNS, "topodns")["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": {"app.kubernetes.io/name": "topodns"}}
