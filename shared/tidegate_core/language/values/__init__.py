"""Values of the language: instants, durations, names, ids, sizes, problems, documents."""
