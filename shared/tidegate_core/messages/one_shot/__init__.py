"""Messages with one time: creates, cancels, replacements, and messages that a suspension holds.

If a cancel finds a message that may be on its way, it answers `too_late`; the message is then delivered or becomes a dead letter.
"""
