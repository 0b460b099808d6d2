"""DynamoDB's expression language, as far as tidegate uses it, evaluated in memory.

It evaluates the same text that is sent to DynamoDB. The conformance suite compares both on thousands of
random pairs of item and expression.
"""

from __future__ import annotations

from tidegate_memory.expressions.attribute_types import InvalidExpression
from tidegate_memory.expressions.condition_parser import ParsedCondition, parse_condition
from tidegate_memory.expressions.update_parser import ParsedUpdate, parse_update

__all__ = ["InvalidExpression", "ParsedCondition", "ParsedUpdate", "parse_condition", "parse_update"]
