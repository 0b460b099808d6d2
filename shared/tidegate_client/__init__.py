"""What users import: the client of the HTTP API and builders for requests and events.

It knows the core's models, and no adapter and no service.
"""
