"""What `make bench` measures with: the real node against a real broker and DynamoDB Local, workload by workload.

- `workload.py`: what a workload is; the workloads themselves are modules of `tests/bench`.
- `stack.py`: the cluster that is measured, of this source tree or of another one.
- `meter.py`: CPU and memory from `/proc`, read and write units from the processes' own counters.
- `sink.py`, `sink_program.py`: the consumer of the sink, a process of its own, which writes down when it had each record.
- `load.py`, `one_shots.py`, `settled.py`: bulk requests, messages with an instant, and when all that was sent is dealt with.
- `quiet_node.py`, `wrappers.py`: a node whose launcher starts nothing, and what plays the programs' part.
- `results.py`, `table.py`, `compare.py`: JSON lines, the table, and two revisions side by side.

Not to be mixed up with `tidegate_testkit/bench.py`, the bench on which unit tests drive one actor.
"""
