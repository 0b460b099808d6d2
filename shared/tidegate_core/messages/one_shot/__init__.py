"""One-shot messages: creates, cancels, replacements, and messages that a scope suspension holds.

A cancel of a message that may be in delivery answers `too_late`; the message is then delivered or becomes a dead letter.
"""
