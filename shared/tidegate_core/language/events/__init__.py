"""Events and event sources: what counts, and how a record of a user's topic is mapped."""
