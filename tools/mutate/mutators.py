"""Every way to break one expression or statement: a table from kinds of syntax to what may be done to them.

Texts are left alone (a message may be said otherwise), and so are annotations, decorators and log lines. Numbers count
only inside functions: a figure that a module names at its top is tuned, not decided.
"""

from __future__ import annotations

import ast
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.mutate.mutants import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Change(NamedTuple):
    """What stands in place of a node."""

    kind: Kind
    text: str
    before: str
    after: str


_OPPOSITE: Mapping[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_SWAPPED: Mapping[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript, ast.Tuple, ast.List, ast.Set, ast.Dict)
_OPTIONAL_LAST = frozenset({"get", "getattr", "max", "min", "next", "pop", "round", "sum"})
"""Functions that do without their last argument."""

_COMMUTATIVE = frozenset({"max", "min"})
"""Functions that do not mind the order of their arguments."""


def _said(node: ast.AST) -> str:
    return ast.unparse(node)


def _text(node: ast.expr) -> str:
    return _said(node) if isinstance(node, _ATOMS) else f"({_said(node)})"


def _instead(kind: Kind, node: ast.expr, other: ast.expr) -> Change:
    return Change(kind, _text(other), _said(node), _said(other))


def _with(node: Any, **fields: object) -> Any:  # noqa: ANN401 - returns a node of the type that it was given
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _without(items: Sequence[Any], place: int) -> list[Any]:
    return [*items[:place], *items[place + 1 :]]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))


def comparisons(node: ast.Compare) -> Iterator[Change]:
    """Have each operator include its limit, leave it out, or say the opposite."""
    for place, operator in enumerate(node.ops):
        ops = [*node.ops[:place], _OPPOSITE[type(operator)], *node.ops[place + 1 :]]
        yield _instead(Kind.COMPARISON, node, _with(node, ops=ops))


def negation(node: ast.UnaryOp) -> Iterator[Change]:
    """Take a ``not`` or a minus away."""
    if isinstance(node.op, (ast.Not, ast.USub)):
        yield _instead(Kind.CONDITION if isinstance(node.op, ast.Not) else Kind.TERM, node, node.operand)


def condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[tuple[ast.expr, Change]]:
    """Turn a condition that is neither a comparison nor a formula round; those have changes of their own."""
    if not isinstance(node.test, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        yield node.test, _instead(Kind.CONDITION, node.test, ast.UnaryOp(ast.Not(), node.test))


def branches(node: ast.IfExp) -> Iterator[Change]:
    """Choose the same whatever the condition is."""
    for value in (node.body, node.orelse):
        yield _instead(Kind.TERM, node, value)


def formula(node: ast.BoolOp) -> Iterator[Change]:
    """Leave a term out, or mistake ``and`` for ``or``."""
    for place in range(len(node.values)):
        left = _without(node.values, place)
        yield _instead(Kind.TERM, node, left[0] if len(left) == 1 else _with(node, values=left))
    yield _instead(Kind.TERM, node, _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And()))


def arithmetic(node: ast.BinOp) -> Iterator[Change]:
    """Leave a term out, or mistake plus for minus."""
    if _is_text(node.left) or _is_text(node.right):
        return
    yield _instead(Kind.TERM, node, node.left)
    yield _instead(Kind.TERM, node, node.right)
    if type(node.op) in _SWAPPED:
        yield _instead(Kind.TERM, node, _with(node, op=_SWAPPED[type(node.op)]))


def elements(node: ast.Tuple | ast.List | ast.Set) -> Iterator[Change]:
    """Leave out one of some values."""
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return
    for place, element in enumerate(node.elts):
        left = _without(node.elts, place)
        other = _with(node, elts=left) if left or not isinstance(node, ast.Set) else ast.Call(ast.Name("set"), [], [])
        yield Change(Kind.TERM, _text(other), f"[.. {_said(element)} ..]", "[.. ..]")


def entries(node: ast.Dict) -> Iterator[Change]:
    """Leave out an entry of a table."""
    for place, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        other = _with(node, keys=_without(node.keys, place), values=_without(node.values, place))
        entry = f"**{_said(value)}" if key is None else f"{_said(key)}: {_said(value)}"
        yield Change(Kind.TERM, _text(other), f"{{.. {entry} ..}}", "{.. ..}")


def filters(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Iterator[Change]:
    """Let everything through that a comprehension leaves out."""
    for place, each in enumerate(node.generators):
        for number, test in enumerate(each.ifs):
            loops = [
                *node.generators[:place],
                _with(each, ifs=_without(each.ifs, number)),
                *node.generators[place + 1 :],
            ]
            yield Change(Kind.TERM, _said(_with(node, generators=loops)), f"for .. if {_said(test)}", "for ..")


def guard(node: ast.match_case) -> Iterator[tuple[ast.expr, Change]]:
    """Let a case match whatever its guard says."""
    if node.guard is not None:
        yield node.guard, Change(Kind.TERM, "True", f"case .. if {_said(node.guard)}", "case ..")


def alternatives(node: ast.MatchOr) -> Iterator[Change]:
    """Leave out one of the patterns of a case."""
    for place in range(len(node.patterns)):
        other = _with(node, patterns=_without(node.patterns, place))
        yield Change(Kind.TERM, _said(other), f"case {_said(node)}", f"case {_said(other)}")


def arguments(node: ast.Call) -> Iterator[Change]:
    """Drop a keyword argument or an optional last one, or mix two up."""
    name = _said(node.func)
    for place, keyword in enumerate(node.keywords):
        other = _with(node, keywords=_without(node.keywords, place))
        yield Change(Kind.ARGUMENT, _said(other), f"{name}(.. {_said(keyword)} ..)", f"{name}(.. ..)")
    if len(node.args) > 1 and name.rpartition(".")[2] in _OPTIONAL_LAST:
        yield _instead(Kind.ARGUMENT, node, _with(node, args=node.args[:-1]))
    for place in range(0 if name in _COMMUTATIVE else len(node.args) - 1):
        one, two = node.args[place : place + 2]
        if _said(one) != _said(two) and not isinstance(one, ast.Starred) and not isinstance(two, ast.Starred):
            args = [*node.args[:place], two, one, *node.args[place + 2 :]]
            yield _instead(Kind.ARGUMENT, node, _with(node, args=args))


def values(node: ast.Constant) -> Iterator[Change]:
    """Mistake true for false, or a number for the next."""
    if isinstance(node.value, bool):
        yield _instead(Kind.ARGUMENT, node, ast.Constant(not node.value))
    elif isinstance(node.value, (int, float)):
        yield _instead(Kind.TERM, node, ast.Constant(node.value + 1))


def statement(node: ast.stmt) -> Iterator[Change]:
    """Leave out a statement that yields nothing: a call, a change of something, a jump, an error."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            is_needed = True
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            is_needed = all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
        case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise() | ast.Return(value=None):
            is_needed = True
        case _:
            is_needed = False
    if is_needed:
        yield Change(Kind.STATEMENT, "pass", _said(node), "pass")


MUTATORS: Mapping[type[ast.AST], tuple[Callable[[Any], Iterator[Change]], ...]] = {
    ast.Compare: (comparisons,),
    ast.UnaryOp: (negation,),
    ast.IfExp: (branches,),
    ast.BoolOp: (formula,),
    ast.BinOp: (arithmetic,),
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), (elements,)),
    ast.Dict: (entries,),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), (filters,)),
    ast.MatchOr: (alternatives,),
    ast.Call: (arguments,),
    ast.Constant: (values,),
    **dict.fromkeys((ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise), (statement,)),
    **dict.fromkeys((ast.Continue, ast.Break, ast.Return), (statement,)),
}
"""What may be done to a node."""
OF_PARTS: Mapping[type[ast.AST], Callable[[Any], Iterator[tuple[ast.expr, Change]]]] = {
    ast.If: condition,
    ast.While: condition,
    ast.IfExp: condition,
    ast.match_case: guard,
}
"""What may be done to a part of a node because of where it stands."""
