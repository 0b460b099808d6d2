"""The command line `tidegate`: commands for users, and the entry to the processes of a cluster."""
