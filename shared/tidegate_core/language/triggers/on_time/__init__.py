"""Triggers on time: `cron`, `every`, `at` and `times`."""
