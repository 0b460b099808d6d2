"""Computes the shard of a request, by the rule of the ingest. The request id must be set."""

from __future__ import annotations

from tidegate_core.language.requests.requests import (
    ControlRequest,
    JobCancel,
    MessageCancel,
    MessageSend,
    Request,
    RunRequest,
)
from tidegate_core.language.values.derived_ids import (
    cluster_object_shard,
    message_shard,
    schedule_shard,
    shard_of_run,
)
from tidegate_core.language.values.problems import InvalidInput, Problem


def shard_of_request(request: Request, request_id: str, shards: int) -> int:
    """Returns the shard whose owner applies the request and stores its receipt.

    Raises:
        InvalidInput: A run or job id names a shard that the cluster does not have.
    """
    if request.CLUSTER_OBJECT is not None:
        return cluster_object_shard(request.CLUSTER_OBJECT, shards)
    match request:
        case MessageSend():
            return message_shard(request.namespace, request.key, request_id, shards)
        case MessageCancel():
            return message_shard(request.namespace, request.key, request.message_id or "", shards)
        case RunRequest(run_id=run):
            return run_shard(run, shards, "run_id")
        case JobCancel(job_id=run):
            return run_shard(run, shards, "job_id")
        case _:
            return schedule_shard(request.namespace, request.name, shards)


def run_shard(run_id: str, shards: int, field: str = "run_id") -> int:
    """Returns the shard that a run or job id names. Raises InvalidInput."""
    shard = shard_of_run(run_id)
    if shard >= shards:
        problem = Problem(field, f"names shard {shard}, the cluster has {shards}", "copy the id as it was printed")
        raise InvalidInput([problem])
    return shard


def subject_of(request: Request) -> str:
    """Returns the key of the request's record: the object that the request names, for readers of the topic."""
    match request:
        case MessageSend() | MessageCancel():
            return f"{request.namespace}/{request.key}" if request.key is not None else request.namespace
        case RunRequest(run_id=run) | JobCancel(job_id=run):
            return run
        case ControlRequest():
            return request.namespace or request.scope
        case _:
            return f"{request.namespace}/{request.name}"
