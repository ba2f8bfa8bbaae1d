"""The JSON Schema of the documents of explain, who and audit, and a check of a document by it.

`python -m tests.support.document_schema` writes docs/reference/inspect.schema.json, made of `inspect.documents`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from tests.support.demo import ROOT
from topodns.inspect.documents import AuditDocument, ExplainDocument, PodWhoDocument, TopDocument, WhoDocument

SCHEMA: Final = ROOT / "docs" / "reference" / "inspect.schema.json"

_DOCUMENTS: Final = (ExplainDocument, WhoDocument, PodWhoDocument, TopDocument, AuditDocument)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def schema_text() -> str:
    """The schema of all documents, as the file has it."""
    either, definitions = msgspec.json.schema_components(_DOCUMENTS, ref_template="#/$defs/{name}")
    for each in definitions.values():
        each["description"] = " ".join(str(each["description"]).split())
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The documents of topodns explain, who and audit",
        "anyOf": list(either),
        "$defs": dict(sorted(definitions.items())),
    }
    return json.dumps(schema, indent=2) + "\n"


def faults(document: object, name: str) -> list[str]:
    """Where a document differs from the definition of this name in the file; a member that it lacks counts, too."""
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return list(_faults(document, {"$ref": f"#/$defs/{name}"}, definitions, name))


def _faults(value: object, rule: Mapping[str, Any], definitions: Mapping[str, Any], at: str) -> Iterator[str]:
    if "$ref" in rule:
        rule = definitions[rule["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in rule:
        if all(any(_faults(value, each, definitions, at)) for each in rule["anyOf"]):
            yield f"{at}: {value!r}"
        return
    if "enum" in rule:
        if value not in rule["enum"]:
            yield f"{at}: {value!r}"
        return
    expected = _TYPES[rule["type"]]
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        yield f"{at}: {value!r} is no {rule['type']}"
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _faults(each, rule["items"], definitions, f"{at}[{number}]")
    elif isinstance(value, dict):
        yield from (f"{at}: {name} is missing" for name in rule.get("required", ()) if name not in value)
        for name, each in value.items():
            member = rule.get("properties", {}).get(name, rule.get("additionalProperties"))
            if member is None:
                yield f"{at}: {name} is in no schema"
            else:
                yield from _faults(each, member, definitions, f"{at}.{name}")


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
