"""The objects in a file, as an API server would hold them."""

from pathlib import Path

import yaml

from tests.support.fake_api.resources import Object


def objects_of(path: Path) -> list[Object]:
    """Those of all documents of a YAML or JSON file, lists taken apart."""
    with path.open(encoding="utf-8") as file:
        documents = [document for document in yaml.load_all(file, yaml.CSafeLoader) if document]
    return [value for document in documents for value in _items(document)]


def _items(document: Object) -> list[Object]:
    """The objects of a List of any kind, or the one that it is. Of a PodList, say, they do not say their own kind."""
    if "items" not in document:
        return [document]
    kind, _, _ = document["kind"].rpartition("List")
    own = {"apiVersion": document["apiVersion"], "kind": kind} if kind else {}
    return [{**own, **value} for value in document["items"]]
