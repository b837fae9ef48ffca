"""Dollar formulas of facts: read, filled with figures, and computed. Only arithmetic, no names but those given.

`dime(x)` rounds to the nearest 10 cents, as Medicare does with penalties; half a dime goes up.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

_TWO: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_CENT, _DIME = Decimal("0.01"), Decimal("0.1")
_LONGEST = 300
"""Characters. Nobody can check a longer formula, and a short one cannot nest too deeply."""
_LARGEST = 10**12


_CALLS: dict[str, Callable[..., Decimal]] = {
    "min": min, "max": max, "abs": abs, "dime": lambda amount: amount.quantize(_DIME, ROUND_HALF_UP),
}  # fmt: skip
_ONE_ARGUMENT = ("abs", "dime")


@lru_cache(maxsize=1024)
def names_in(formula: str) -> frozenset[str]:
    """The names that a formula needs values for. Raises ValueError if it is no formula."""
    tree = _parsed(formula)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def fill(formula: str, values: Mapping[str, Decimal]) -> str:
    """The formula with numbers in place of these names."""
    return re.sub(
        r"[A-Za-z_]\w*", lambda match: str(values[match.group()]) if match.group() in values else match.group(), formula
    )


def dollars(formula: str, values: Mapping[str, Decimal] | None = None) -> Decimal:
    """What a formula gives, to the cent.

    Raises ValueError if a name has no value, a division is by zero, or the amount is beyond all money.
    """
    try:
        amount = _value(_parsed(formula), values or {})
    except ArithmeticError:  # such as dime() of a number with more digits than Decimal keeps
        raise ValueError("a number on the way is too large or too small to compute with") from None
    if not abs(amount) <= _LARGEST:
        raise ValueError(f"it gives {amount:.3g}, which is no amount of dollars")
    return amount.quantize(_CENT, ROUND_HALF_UP)


@lru_cache(maxsize=1024)
def _parsed(formula: str) -> ast.expr:
    """The syntax tree, which nobody changes. The same few hundred formulas are read again and again."""
    if len(formula) > _LONGEST:
        raise ValueError(f"a formula has at most {_LONGEST} characters")
    try:
        tree = ast.parse(formula, mode="eval").body
    except (SyntaxError, ValueError):
        raise ValueError(f"{formula!r} is not a formula") from None
    for node in ast.walk(tree):
        _check(node, formula)
    return tree


def _check(node: ast.AST, formula: str) -> None:
    allowed = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Name, ast.Load, ast.Constant, ast.Call, *_TWO)
    plain_call = not isinstance(node, ast.Call) or _is_plain_call(node)
    number = not isinstance(node, ast.Constant) or _is_number(node.value)
    if not isinstance(node, allowed) or not plain_call or not number:
        raise ValueError(f"{formula!r}: use numbers up to {_LARGEST:,}, names, + - * / ( ) and {', '.join(_CALLS)}")


def _is_plain_call(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id not in _CALLS or call.keywords:
        return False
    return len(call.args) == 1 if call.func.id in _ONE_ARGUMENT else len(call.args) > 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= _LARGEST


def _value(node: ast.expr, values: Mapping[str, Decimal]) -> Decimal:
    if isinstance(node, ast.Constant):
        return Decimal(str(node.value))
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise ValueError(f"{node.id} has no value")
        return values[node.id]
    if isinstance(node, ast.UnaryOp):
        return -_value(node.operand, values)
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _CALLS[node.func.id](*(_value(one, values) for one in node.args))
    assert isinstance(node, ast.BinOp)
    left, right = _value(node.left, values), _value(node.right, values)
    if isinstance(node.op, ast.Div) and right == 0:
        raise ValueError("division by zero")
    return _TWO[type(node.op)](left, right)
