"""Events, facts about runs, and event sources that map records of users' topics to events."""
