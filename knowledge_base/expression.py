"""Arithmetic that notes may carry: a whitelist over Python's expression grammar, never `eval`.

Allowed: numbers, names, + - * / // % **, unary minus, comparisons (chained too), and the calls in FUNCTIONS.
Everything is evaluated in float64, so a tower of powers overflows at once instead of growing an integer.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping

from projector.errors import InvalidDescription

MAX_CHARACTERS = 500
MAX_NODES = 200

FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "log": math.log,
    "sqrt": math.sqrt,
}

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: math.pow,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def names(expression: str) -> frozenset[str]:
    """The variables an expression reads, function names left out. InvalidDescription: not in the grammar."""
    tree = _parse(expression)
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) - FUNCTIONS.keys()


def evaluate(expression: str, values: Mapping[str, float]) -> float:
    """The number an expression stands for. InvalidDescription: outside the grammar, a name without value, no number."""
    root = _parse(expression)
    if isinstance(root, ast.Compare):
        raise InvalidDescription(f"{expression!r} is a comparison where a number is wanted")
    return _number(root, values, expression)


def holds(comparison: str, values: Mapping[str, float]) -> bool:
    """Whether a comparison such as "a < b" or "a < b <= c" is true at `values`. InvalidDescription as `evaluate`."""
    root = _parse(comparison)
    if not isinstance(root, ast.Compare):
        raise InvalidDescription(
            f"{comparison!r} is not a comparison", hint="an inequality relates two sides with <, <=, > or >="
        )
    sides = [_number(side, values, comparison) for side in (root.left, *root.comparators)]
    tests = [_COMPARISON[type(op)] for op in root.ops]
    return all(test(left, right) for test, left, right in zip(tests, sides, sides[1:], strict=False))


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_CHARACTERS:
        raise InvalidDescription(f"expression of {len(expression)} characters > {MAX_CHARACTERS}")
    try:
        root = ast.parse(expression.strip(), mode="eval").body
    # a parser may fail on hostile text with any of these; none of them is our mistake
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidDescription(f"{expression!r} is not an expression: {error}") from error
    nodes = sum(1 for _ in ast.walk(root))
    if nodes > MAX_NODES:
        raise InvalidDescription(f"expression of {nodes} terms > {MAX_NODES}")
    if isinstance(root, ast.Compare):
        for op in root.ops:
            if type(op) not in _COMPARISON:
                raise _refused(op, expression)
        operands = [root.left, *root.comparators]
    else:
        operands = [root]
    for operand in operands:
        _check(operand, expression)
    return root


def _check(node: ast.expr, expression: str) -> None:
    """Refuse every node outside the grammar before anything is evaluated."""
    match node:
        case ast.Constant(value=bool()):
            raise _refused(node, expression)
        case ast.Constant(value=int() | float()) | ast.Name():
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left, expression)
            _check(right, expression)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, expression)
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as arguments, keywords=[]) if name in FUNCTIONS:
            for argument in arguments:
                _check(argument, expression)
        case _:
            raise _refused(node, expression)


def _refused(node: ast.AST, expression: str) -> InvalidDescription:
    allowed = ", ".join(FUNCTIONS)
    return InvalidDescription(
        f"{type(node).__name__} is not allowed in {expression!r}",
        hint=f"numbers, names, + - * / // % **, < <= > >=, and the functions {allowed}",
    )


def _number(node: ast.expr, values: Mapping[str, float], expression: str) -> float:
    try:
        result = _evaluate(node, values, expression)
    # TypeError: a function called with the wrong number of arguments
    except (ArithmeticError, ValueError, TypeError) as error:
        raise InvalidDescription(f"{expression!r} has no value: {error}") from error
    if not math.isfinite(result):
        raise InvalidDescription(f"{expression!r} has no finite value")
    return result


def _evaluate(node: ast.expr, values: Mapping[str, float], expression: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            if name not in values:
                raise InvalidDescription(f"{expression!r} reads {name!r}, which has no value")
            return float(values[name])
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_evaluate(left, values, expression), _evaluate(right, values, expression))
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, values, expression)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return float(FUNCTIONS[name](*(_evaluate(argument, values, expression) for argument in arguments)))
    raise AssertionError(f"unchecked node {type(node).__name__}")
