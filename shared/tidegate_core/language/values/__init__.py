"""Values of the language: documents, names, ids, instants, durations, sizes, states and problems."""
