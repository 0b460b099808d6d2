"""`make demo`: runs a real pipeline on real data, kills a node half-way, and checks that nothing was lost."""
