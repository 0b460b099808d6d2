"""The demo's pipeline: PySpark programs to copy from, their schedules, and a second opinion that does not use Spark."""
