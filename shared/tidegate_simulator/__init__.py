"""Simulates schedules: the production decisions on a virtual clock, with simulated programs and a store in memory.

`simulate` runs definitions over a span and returns a `Report`, whose hash is equal on every machine. The package reads
no clock, file or environment variable.
"""

from tidegate_simulator.external_events import Happening, happenings_of
from tidegate_simulator.occurrence_record import Occurrence, Wait
from tidegate_simulator.run_plan import PlannedRun, RunPlan
from tidegate_simulator.simulate import DefinitionRefused, Outage, simulate
from tidegate_simulator.simulation_report import Report
from tidegate_simulator.virtual_cluster import TimeStandsStill

__all__ = [
    "DefinitionRefused",
    "Happening",
    "Occurrence",
    "Outage",
    "PlannedRun",
    "Report",
    "RunPlan",
    "TimeStandsStill",
    "Wait",
    "happenings_of",
    "simulate",
]
