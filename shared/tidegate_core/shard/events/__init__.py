"""Events of one shard: who subscribes to which, what is counted, and which events of runs go out.

The low watermark says up to which append time every event is counted or lies in the inbox.
"""
