"""The API process: the start gate and reports of programs, views of what is stored, writes that go to Kafka."""
