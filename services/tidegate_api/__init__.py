"""The API process: start gate, reports of programs, views of stored state, and requests that go to Kafka."""
