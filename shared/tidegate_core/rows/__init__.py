"""What lies in the store, as frozen records with one codec. Every record knows its key and the row it becomes."""
