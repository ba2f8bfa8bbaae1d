"""An explanation as a value, as a JSON object and as text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_METHODS: Final = {
    "nodes": "an address of the node: a process there, or a masqueraded Pod",
    "podcidr": "by its pod CIDR",
    "podcidr-unverified": "by its pod CIDR, unverified",
    "slices": "by an EndpointSlice",
    "pods": "by a Pod",
    "nodelocator": "by its NodeLocator",
    "podlocator": "by a PodLocator",
    "own": "this server's own",
    "given": "as given",
}
"""How a client was located, for the text; JSON has the words on the left."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All decisions behind one reply, ready to print."""

    client: str  # its address; "" if a Node was given instead
    node: str  # "" unknown
    method: str
    name: str
    qtype: str
    keys: tuple[str, ...]
    source: str  # where the keys come from; "" without keys
    problem: str  # of an invalid policy
    tried: tuple[tuple[str, str, int], ...]  # key, the client's value, matches
    winner: str
    reason: str  # of the selection, or of NXDOMAIN; "" for neither
    hint: str  # advice for the operator about an unlocated client; "" for none
    rcode: str
    answer: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The explanation as a JSON object."""
        return {
            "client": {"address": self.client or None, "node": self.node or None, "method": self.method},
            "question": {"name": self.name, "type": self.qtype},
            "policy": {"source": self.source or None, "keys": list(self.keys), "problem": self.problem or None},
            "tried": [{"key": key, "value": value, "matches": matches} for key, value, matches in self.tried],
            "winner": self.winner or None,
            "reason": self.reason,
            "hint": self.hint or None,
            "rcode": self.rcode,
            "answer": list(self.answer),
        }


def explanation_text(explained: Mapping[str, object]) -> str:
    """The object of `as_dict` as text for people. Raises KeyError or TypeError for any other object."""
    client, question, policy = (mapping(explained[part]) for part in ("client", "question", "policy"))
    lines = [
        f"client   {client['address'] or 'any'} on {_node_text(client)}",
        f"name     {question['name']} {question['type']}",
    ]
    if policy["keys"] or policy["problem"]:
        keys = ", ".join(str(key) for key in items(policy["keys"]))
        lines.append(f"policy   {policy['source']}: {policy['problem'] or keys}")
    for attempt in map(mapping, items(explained["tried"])):
        wins = "  <- wins" if attempt["key"] == explained["winner"] else ""
        value = f" = {attempt['value']}" if attempt["value"] else ""
        lines.append(f"tried    {attempt['key']}{value}: {attempt['matches']} matching{wins}")
    if explained["reason"]:
        lines.append(f"because  {explained['reason']}")
    if explained["hint"]:
        lines.append(f"hint     {explained['hint']}")
    lines.append(f"answer   {explained['rcode']}")
    lines += [f"         {record}" for record in items(explained["answer"])]
    return "\n".join(lines)


def _node_text(client: Mapping[str, object]) -> str:
    if not client["node"]:
        return "an unknown node"
    return f"node {client['node']} ({method_text(client['method'])})"


def method_text(method: object) -> str:
    """A method of locating clients in words for people, the method itself if there are none."""
    return _METHODS.get(str(method), str(method))


def mapping(value: object) -> Mapping[str, object]:
    """`value`, an object of JSON. Raises TypeError if it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {type(value).__name__}")
    return value


def items(value: object) -> Iterable[object]:
    """`value`, an array of JSON. Raises TypeError if it is none."""
    if not isinstance(value, list):
        raise TypeError(f"expected an array, found {type(value).__name__}")
    return value
