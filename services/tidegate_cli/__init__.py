"""The command line. It calls the API and starts the processes. It never reads tables or topics directly."""
