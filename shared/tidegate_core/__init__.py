"""The core: data and pure functions. No I/O, no clock, no randomness, no logging; `now` and ids are arguments."""
