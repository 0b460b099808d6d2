"""`tidegate_spark` runs inside users' environments: the standard library is all that it may count on."""

import ast
import sys
from pathlib import Path

# pyspark is there when the program is a Spark program, and only then: it may be named inside a function.
ONLY_INSIDE_FUNCTIONS = frozenset({"pyspark"})


def _foreign(source: str) -> list[str]:
    tree = ast.parse(source)
    inside = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    allowed = sys.stdlib_module_names | {"tidegate_spark"}
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name.partition(".")[0] for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module.partition(".")[0]]
            case _:
                continue
        permitted = allowed | ONLY_INSIDE_FUNCTIONS if node in inside else allowed
        found += [f"{node.lineno}: {module}" for module in modules if module not in permitted]
    return found


def test_given_the_program_side_then_it_imports_the_standard_library_only(root: Path) -> None:
    sources = sorted((root / "shared" / "tidegate_spark").rglob("*.py"))
    assert sources
    assert [f"{path.name}:{what}" for path in sources for what in _foreign(path.read_text())] == []


def test_given_a_library_at_the_top_then_the_walk_finds_it() -> None:
    assert _foreign("import requests") == ["1: requests"]
    assert _foreign("from pyspark.sql import SparkSession") == ["1: pyspark"]


def test_given_pyspark_inside_a_function_then_the_walk_is_silent() -> None:
    assert _foreign("def session() -> object:\n    from pyspark.sql import SparkSession\n    return SparkSession") == []
