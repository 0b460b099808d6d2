"""The part of DynamoDB's expression language that tidegate uses, evaluated in memory.

What is evaluated here is the very text that is sent to DynamoDB; the conformance suite compares both on thousands of
random pairs of item and expression.
"""

from __future__ import annotations

from tidegate_memory.expressions.attribute_types import InvalidExpression
from tidegate_memory.expressions.condition_parser import ParsedCondition, parse_condition
from tidegate_memory.expressions.update_parser import ParsedUpdate, parse_update

__all__ = ["InvalidExpression", "ParsedCondition", "ParsedUpdate", "parse_condition", "parse_update"]
