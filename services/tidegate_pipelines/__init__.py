"""Pipeline of the demo: PySpark programs as examples, their schedules, and an independent check without Spark."""
