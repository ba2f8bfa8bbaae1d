"""Values that are worth rendering, by a name for each: every template, in each of its shapes."""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from tests.support.chart.helm import ROOT, Values

_COREDNS: Final = ROOT / "tests/support/chart/coredns_values.yaml"
# `servers` of CoreDNS's chart as its README shows them: zones of one port together, ports of their own, a scheme.
SERVERS_OF_COREDNS: Final[list[dict[str, Any]]] = yaml.safe_load(
    """
- zones:
  - zone: .
    use_tcp: true
  port: 53
  plugins:
  - name: errors
  - name: health
    configBlock: |-
      lameduck 10s
  - name: ready
  - name: kubernetes
    parameters: cluster.local in-addr.arpa ip6.arpa
    configBlock: |-
      pods verified
      fallthrough in-addr.arpa ip6.arpa
      ttl 30
  - name: prometheus
    parameters: 0.0.0.0:9153
  - name: forward
    parameters: . 192.0.2.53
  - name: cache
    parameters: 30
  - name: loadbalance
- zones:
  - zone: hello.world.
    scheme: dns://
  - zone: foo.bar.
  port: 5353
  servicePort: 1053
  plugins:
  - name: hosts
    configBlock: |-
      192.0.2.1 a.hello.world
      fallthrough
"""
)

# All values of CoreDNS's chart with topodns's image, and all of them that it leaves empty or comments out, set.
VALUES_OF_COREDNS: Final[dict[str, Any]] = {
    **yaml.safe_load(_COREDNS.read_text(encoding="utf-8")),
    "image": {"repository": "registry.example.com/topodns", "tag": "", "pullSecrets": [{"name": "registry"}]},
}
_SPREAD: Final = {
    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": '{{ template "coredns.name" . }}'}},
    "topologyKey": "topology.kubernetes.io/zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "ScheduleAnyway",
}
_CONFINED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_USERS_OWN: Final = {"name": "users-own", "image": "registry.example.com/own:1", "securityContext": _CONFINED}
OPTIONS_OF_COREDNS: Final[dict[str, Any]] = {
    "isClusterService": True,
    "k8sAppLabelOverride": "kube-dns",
    "topologySpreadConstraints": [_SPREAD],
    "autoscaler": {
        "enabled": True,
        "podAnnotations": {"a": "b"},
        "podSecurityContext": {"runAsUser": 65534},
        "customFlags": ["--nodelabels=topology.kubernetes.io/zone=us-east-1a"],
        "configmap": {"annotations": {"strategy.spinnaker.io/versioned": "false"}},
        "extraContainers": [_USERS_OWN],
    },
    "deployment": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.53"]}},
    "initContainers": [{**_USERS_OWN, "name": "users-own-first"}],
    "extraContainers": [_USERS_OWN],
}

MATRIX: Final[Mapping[str, Values]] = {
    "as it is": {},
    "with an address": {"service": {"clusterIP": "10.96.0.10"}},
    "dual-stack": {"service": {"clusterIPs": ["10.96.0.10", "fd00:10:96::a"]}, "nodeCache": {"enabled": True}},
    "beside": {"mode": "beside"},
    "beside, with a node cache": {
        "mode": "beside",
        "nodeCache": {"enabled": True, "intercept": False, "ports": {"health": 8090, "metrics": 9254}},
    },
    "the cluster's own Service": {"service": {"create": False}},
    "in place of a Deployment": {
        "fullnameOverride": "coredns",
        "deployment": {"selector": {"matchLabels": {"k8s-app": "kube-dns"}}},
        "service": {"create": False},
    },
    "with a snapshot": {"snapshot": {"enabled": True}},
    "with a snapshot on the node": {
        "snapshot": {
            "enabled": True,
            "parameters": "interval 1m max_age 48h",
            "volume": {"hostPath": {"path": "/var/lib/topodns/server", "type": "DirectoryOrCreate"}},
        }
    },
    "a server on each node": {"deployment": {"kind": "DaemonSet"}, "nodeSelector": {"edge": "true"}},
    "servers of CoreDNS's chart": {"servers": SERVERS_OF_COREDNS},
    "values of CoreDNS's chart": VALUES_OF_COREDNS,
    "options of CoreDNS's chart": OPTIONS_OF_COREDNS,
    "everything": {
        "service": {"clusterIP": "10.96.0.10", "trafficDistribution": "PreferSameZone", "annotations": {"a": "b"}},
        "prometheus": {
            "service": {"enabled": True},
            "monitor": {"enabled": True, "interval": "30s", "relabelings": [{"action": "labeldrop", "regex": "x"}]},
            "rules": {"enabled": True, "runbookUrl": "https://example.com/alerts.md"},
            "dashboards": {"enabled": True, "annotations": {"grafana_folder": "DNS"}},
        },
        "hpa": {"enabled": True},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "egress": [{}],
        },
        "nodeCache": {
            "enabled": True,
            "extraServerBlocks": "example.com:53 {\n    whoami\n}",
            "upstreamService": {"trafficDistribution": "PreferSameZone"},
            "persist": {"enabled": True, "interval": "2m"},
        },
        "customLabels": {"team": "net"},
        "customAnnotations": {"owner": "net"},
        "podAnnotations": {"c": "d"},
        "affinity": {"podAntiAffinity": {}},
        "zoneFiles": [{"filename": "example.db", "domain": "example.com", "contents": "example.com. IN NS ns.\n"}],
        "extraConfig": {"import": {"parameters": "/etc/coredns/custom/*.server"}},
        "extraVolumes": [{"name": "custom", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "custom", "mountPath": "/etc/coredns/custom"}],
        "extraSecrets": [{"name": "certs", "mountPath": "/etc/certs", "defaultMode": 440}],
        "image": {"pullSecrets": [{"name": "registry"}], "digest": "sha256:" + "0" * 64},
        "env": [{"name": "A", "value": "b"}],
        "rbac": {"additional": ["pods", "serviceimports", "clusterproperties"]},
    },
    "cluster-proportional": {"autoscaler": {"enabled": True, "max": 8, "customFlags": ["--v=4"]}},
    "the node cache alone": {
        "deployment": {"enabled": False},
        "admissionPolicy": {"enabled": False},
        "nodeCache": {"enabled": True, "dnsServer": ["10.96.0.10"]},
    },
    "locators": {"locator": {"enabled": True}, "prometheus": {"monitor": {"enabled": True}}},
    "one replica, nothing else": {
        "replicaCount": 1,
        "rbac": {"create": False},
        "serviceAccount": {"create": False},
        "admissionPolicy": {"enabled": False},
        "deployment": {"skipConfig": True, "check": False},
    },
}
