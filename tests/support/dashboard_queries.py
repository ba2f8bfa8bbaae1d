"""A query of a dashboard as Grafana sends it, and the samples in its result that can be drawn."""

import math
from typing import Final

from tests.support.prometheus import Prometheus, Sample

_WINDOW: Final = "2m"  # longer than any scene is asked


def filled_in(expression: str, job: str) -> str:
    """With a value for each of Grafana's variables."""
    values = {"$__rate_interval": _WINDOW, "$__range": _WINDOW, "$job": job, "$instance": ".+"}
    values |= {"$price_per_gb": "0.01", "$mb_per_answer": "1"}
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression.replace("$1", ""), expression
    return expression


def drawn(prometheus: Prometheus, expression: str, job: str, most: float) -> list[Sample]:
    """The samples of it that can be drawn; each value is from 0 to `most`."""
    found = [sample for sample in prometheus.query(filled_in(expression, job)) if math.isfinite(sample.value)]
    assert all(0 <= sample.value <= most for sample in found), (expression, found)
    return found
