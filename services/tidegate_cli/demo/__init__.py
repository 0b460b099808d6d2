"""`make demo`: a real pipeline on real data, one node killed half-way, and a proof that nothing was lost."""
