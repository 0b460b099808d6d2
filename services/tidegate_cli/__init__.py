"""The command line: talks to the API, and starts the processes. It never reads tables or topics itself."""
