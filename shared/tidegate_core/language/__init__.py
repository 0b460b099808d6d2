"""The words of the system as frozen data: definitions, requests, events, receipts, ids. Import the modules, not this package."""
