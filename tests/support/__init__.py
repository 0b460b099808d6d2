"""The testkit: simulated bus and launcher, the manual clock, builders and conformance suites. For tests only."""
