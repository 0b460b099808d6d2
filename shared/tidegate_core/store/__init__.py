"""Store access as values: keys, items, conditional transactions, batches and reads. No client lives here."""
