"""Answers why a schedule, an instant, a job or a run is where it is. Pure functions over stored rows, which call the code that decides.

Called by: the API for `tidegate why` and for lists of jobs; the simulator for its report.
Authority: none. It writes nothing.
"""
