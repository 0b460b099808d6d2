"""No decision of the core depends on the order in which a set gives its members.

That order follows the process's hash seed: two nodes, or a run and its replay, would decide differently from the same
facts. The walk sees what syntax shows: set displays, `set(...)`, comprehensions, and names, fields and functions that
are annotated as sets. Where the order truly cannot be seen, the line says `# order-free: <why>`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SET_TYPES = frozenset({"AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"})
SET_METHODS = frozenset({"copy", "difference", "intersection", "symmetric_difference", "union"})
# What these make of their argument is the same in any order.
ORDER_FREE_CALLS = frozenset("all any bool frozenset isinstance len max min set sorted sum".split())
ORDER_SEEING_CALLS = frozenset("dict enumerate filter iter list map next reversed tuple zip".split())
EXCUSE = "# order-free: "


class _SetNames:
    """Which names of a module are sets, as far as annotations and plain assignments tell."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        self.fields: set[str] = set()
        self.functions: set[str] = set()
        for node in ast.walk(tree):
            self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.ClassDef(body=body):
                declared = [item for item in body if isinstance(item, ast.AnnAssign)]
                self.fields |= {ast.unparse(item.target) for item in declared if _is_set_type(item.annotation)}
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_set_type(annotation):
                self.names.add(name)
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if _is_set_type(annotation):
                self.names.add(name)
            case ast.FunctionDef(name=name, returns=ast.expr() as returns) if _is_set_type(returns):
                self.functions.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.holds(value):
                self.names.add(name)
            case _:
                pass

    def holds(self, node: ast.expr) -> bool:
        """Tells whether the expression's value is a set."""
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return name in self.names
            case ast.Attribute(attr=name):
                return name in self.fields
            case ast.Call(func=ast.Name(id=name)):
                return name in {"set", "frozenset"} | self.functions
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return name in self.functions or (name in SET_METHODS and self.holds(owner))
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                return self.holds(left) or self.holds(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.holds(body) or self.holds(orelse)
            case _:
                return False


def _is_set_type(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in SET_TYPES
        case ast.Subscript(value=value):
            return _is_set_type(value)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_set_type(left) or _is_set_type(right)
        case _:
            return False


def order_dependent_lines(source: str) -> list[int]:
    """Returns the lines of `source` on which the order of a set can be seen."""
    tree = ast.parse(source)
    lines = source.splitlines()
    found = {node.lineno for node in _order_seen(tree, _SetNames(tree))}
    return sorted(number for number in found if EXCUSE not in lines[number - 1])


def _order_seen(tree: ast.Module, sets: _SetNames) -> Iterator[ast.expr]:
    free = _order_free_generators(tree)
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=over) if sets.holds(over):
                yield over
            case ast.ListComp(generators=loops) | ast.DictComp(generators=loops):
                yield from (loop.iter for loop in loops if sets.holds(loop.iter))
            case ast.GeneratorExp(generators=loops) if node not in free:
                yield from (loop.iter for loop in loops if sets.holds(loop.iter))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in ORDER_SEEING_CALLS:
                yield from (argument for argument in arguments if sets.holds(argument))
            case ast.Call(func=ast.Attribute(attr="join"), args=[argument]) if sets.holds(argument):
                yield argument
            case ast.Call(func=ast.Attribute(value=owner, attr="pop"), args=[]) if sets.holds(owner):
                yield owner
            case ast.Starred(value=value) if sets.holds(value) and node not in free:
                yield value
            case _:
                pass


def _order_free_generators(tree: ast.Module) -> set[ast.expr]:
    """Generators and stars whose consumer gives the same answer in any order."""
    free: set[ast.expr] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in ORDER_FREE_CALLS:
                free.update(arguments)
            case ast.Set(elts=elements):
                free.update(elements)
            case _:
                pass
    return free


def test_given_the_core_then_no_decision_sees_the_order_of_a_set(root: Path) -> None:
    sources = sorted((root / "shared" / "tidegate_core").rglob("*.py"))
    found = [f"{path.relative_to(root)}:{line}" for path in sources for line in order_dependent_lines(path.read_text())]
    assert found == [], "wrap it in sorted(...), or say on the line '# order-free: <why>'"


@pytest.mark.parametrize(
    "snippet",
    [
        "for shard in {1, 2}: fire(shard)",
        "def f(seen: frozenset[str]) -> None:\n    for name in seen: fire(name)",
        "def f(seen: set[str] | None) -> list[str]:\n    return [name for name in seen or ()] + list(seen)",
        "class Progress:\n    seen: frozenset[str]\n    def rows(self) -> list[str]:\n        return [n for n in self.seen]",
        "def keys() -> set[str]: ...\nrows = tuple(keys() - {'x'})",
        "first = next(iter({1, 2}))",
        "text = ','.join({'a', 'b'})",
        "def f(waiting: set[str]) -> str:\n    return waiting.pop()",
        "rows = [*{1, 2}]",
        "waiting = set(names)\nrows = dict.fromkeys(x for x in waiting)",
    ],
)
def test_given_a_snippet_that_sees_the_order_then_the_walk_finds_it(snippet: str) -> None:
    assert order_dependent_lines(snippet) != []


@pytest.mark.parametrize(
    "snippet",
    [
        "for shard in sorted({1, 2}): fire(shard)",
        "both = {name for name in {1, 2}} | {*{3}}",
        "total = sum(size for size in {1, 2})",
        "def f(seen: set[str]) -> bool:\n    return 'a' in seen and len(seen) > 1",
        "for shard in {1, 2}: mark(shard)  # order-free: each mark touches its own shard only",
        "rows = [name for name in names]",
    ],
)
def test_given_a_snippet_that_does_not_then_the_walk_is_silent(snippet: str) -> None:
    assert order_dependent_lines(snippet) == []
