"""For people who write adapters: `check_adapter` runs the contract and fault cases that our own adapters must pass.

It needs no test framework; inside one, a single test is enough:

    from medicare_eval.testing import ChatCompletions, check_adapter

    def test_adapter():
        check_adapter(MyAdapter, dialect=ChatCompletions())

docs/plugins.md has a complete example. Nothing else in this project imports this package.
"""

from .check import AdapterCheckError, CaseResult, Report, check_adapter
from .server import ChatCompletions, Dialect, Response, Said

__all__ = [
    "AdapterCheckError",
    "CaseResult",
    "ChatCompletions",
    "Dialect",
    "Report",
    "Response",
    "Said",
    "check_adapter",
]
