"""Defines stored records, their keys, the item codec, and the effects of an actor.

Called by: all layers above, the adapters of the store, and the API's reads.
Authority: field names of records and keys are the stored format. Two releases read it at the same time.
Rows: the format of all. Only `language` is imported here.
"""
