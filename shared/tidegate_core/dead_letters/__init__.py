"""Dead letters as they lie on their topics, and what an operator has done about them."""
