"""The `rewrite` directive (CoreDNS 1.14.7's plugin of that name): queries changed on their way down, answers back.

`rewriter` goes through the `rules`; what they want done to the response stands in `amendments`, `targets` and
`options`. Names are text here, as in the rules (`renaming`).
"""

from topodns.resolve.rewrite.options import OperatorOption, operator_options
from topodns.resolve.rewrite.rewriter import Rewriter

__all__ = ["OperatorOption", "Rewriter", "operator_options"]
