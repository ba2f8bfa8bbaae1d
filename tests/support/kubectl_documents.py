"""Documents of API objects, as kubectl prints them, and the value that each is decoded to."""

import json
from typing import Any, Final

from topodns.cluster.decode.objects import decode_again, decode_object
from topodns.cluster.model import ClusterObject

Document = dict[str, Any]

API_VERSIONS: Final = {
    "EndpointSlice": "discovery.k8s.io/v1",
    "ServiceImport": "multicluster.x-k8s.io/v1alpha1",
    "StatefulSet": "apps/v1",
}


def document(kind: str, name: str = "web", metadata: Document | None = None, **fields: Any) -> Document:
    """An object as `kubectl get -o json` prints it, with fields that topodns does not read."""
    return {
        "apiVersion": API_VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": "4f1b3f1e-8a0c-4f0e-9a57-0d7c7e0b1a11",
            "resourceVersion": "81234",
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
            **(metadata or {}),
        },
        **fields,
    }


def decoded(source: Document) -> ClusterObject:
    """The one value of a document: the same from the parsed document, from JSON, and from JSON decoded again."""
    (value,) = decode_object(source["kind"], source)
    text = json.dumps(source).encode()
    assert decode_object(source["kind"], text) == (value,)
    for held in (None, value):
        again = decode_again(lambda *_, held=held: held, source["kind"], text)
        assert again is not None
        assert again.objects == (value,)
    return value
