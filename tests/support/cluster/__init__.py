"""A whole cluster as child processes on real bricks, a nemesis for it, and a judge that trusts only what came out of it.

- `cluster.py`, `process.py`: bricks, `tidegate init`, nodes, API; kill, restart, wait by real endpoints.
- `evidence_program.py`, `evidence.py`: what the programs of the schedules write about themselves, fsynced.
- `user_client.py`, `topic_reader.py`: requests and events with a log of what the broker acknowledged; what lies on a topic.
- `judging/`: lost, doubled, early, late, miscounted, overlapping: computed from those records and the definitions alone.
- `store_view.py`, `kill_nemesis.py`: look at the store to hit a moment, never to judge.
"""
