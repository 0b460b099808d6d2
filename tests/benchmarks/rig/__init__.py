"""What `make bench` measures with: the real node against a real broker and DynamoDB Local, workload by workload.

- `workload.py`: what a workload is; the workloads themselves are modules of `tests/benchmarks/workloads`.
- `cluster.py`: the cluster that is measured, of this source tree or of another one.
- `resource_meter.py`: CPU and memory from `/proc`, read and write units from the processes' own counters.
- `sink.py`, `sink_process.py`: the consumer of the sink, a process of its own, which writes down when it had each record.
- `bulk_producer.py`, `one_shot_messages.py`, `quiescence.py`: bulk requests, messages with an instant, and when all that was sent is dealt with.
- `null_launcher_node.py`, `gate_player.py`: a node whose launcher starts nothing, and what plays the programs' part.
- `results.py`, `result_table.py`, `revision_comparison.py`: JSON lines, the table, and two revisions side by side.

Not to be mixed up with `harness/actor_harness.py`, the bench on which unit tests drive one actor.
"""
