"""The independent judge, after Jepsen's checker for Chronos: what should have happened is computed here, from the definitions
alone, and compared with what programs, sinks and brokers wrote down.

It shares no code with what it judges: not the cron walk, not the hash of shards, no model. All functions are pure. One thing
it is told by the store: which shards a killed node owned (`Crash.shards`), because I8 lets only those repeat.
"""
