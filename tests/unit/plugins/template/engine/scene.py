"""Templates of one text, rendered with some data."""

from topodns.plugins.template.engine.execute import render
from topodns.plugins.template.engine.parser import compile_template
from topodns.plugins.template.engine.values import Struct

KNOWN = {"Name": frozenset[str](), "Match": frozenset[str](), "Group": frozenset[str](), "Q": frozenset({"Type", "In"})}
DATA = Struct(
    {
        "Name": "web.example.",
        "Match": ("web.example.", "web", ""),
        "Group": {"a": "10", "b": "0a"},
        "Q": Struct({"Type": 1, "In": True}),
    }
)


def rendered(text: str) -> str:
    return render(compile_template(text, KNOWN), DATA)
