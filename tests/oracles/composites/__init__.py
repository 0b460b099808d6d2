"""A second opinion on composite triggers: the rules of SEMANTICS 6 once more, in code that shares nothing with production."""
