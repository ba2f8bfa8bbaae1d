"""The weights of a whole text, in all steps at once."""

from collections.abc import Generator

from topodns.plugins.loadbalance import weights
from topodns.plugins.loadbalance.weights import Weights


def parse_weights(text: str) -> Weights:
    """The weights of a weight file's text. Raises BadWeights."""

    def finish() -> Generator[None, None, None]:
        found.append((yield from weights.parse_weights(text.encode())))

    found: list[Weights] = []
    for _ in finish():
        pass
    return found[0]
