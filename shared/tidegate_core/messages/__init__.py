"""Delivers one-shot and recurring messages to topics, for high throughput and low lateness.

Authority: the delivery position in the progress row. Rows: message, timer, fence, key, held and interval rows. After a crash
the successor goes on from the stored position, so at most the messages after it are delivered twice. Other packages use
`MessageScheduler`, `RecurringQueue`, `RecurringChange`, `PendingCreate` and `FireSeries`.
"""
