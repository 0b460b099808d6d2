"""Formats of documents: plain JSON, CloudEvents, records of Clockwork and CDAP, and the generated reference pages."""
