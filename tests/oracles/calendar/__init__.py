"""An oracle for calendars: a walker that looks at every day and every time of it, and random questions to put to it.

It shares no code with what it judges: expressions are made together with their meaning, so that no reading of the text is
trusted, and local times become instants by `zoneinfo`'s own arithmetic. `python -m tests.oracles.calendar` runs it.
"""
