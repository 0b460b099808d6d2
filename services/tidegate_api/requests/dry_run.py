"""Dry run of an apply: its effect and its problems, computed by the functions that decide a real apply. It writes nothing."""

from __future__ import annotations

from tidegate_api.dependencies import Services
from tidegate_client.views import DryRun
from tidegate_core.language.definitions.catch_up_policy import CatchUp
from tidegate_core.language.definitions.quotas import quota_of
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.requests.record_authorization import authorize_request
from tidegate_core.language.requests.requests import ScheduleApply
from tidegate_core.language.targets.programs import PysparkProgram
from tidegate_core.language.values.names import EVERY
from tidegate_core.language.values.problems import InvalidInput, Problem, RefusedRecord
from tidegate_ports.common.program_file_check import FileSystemSilent
from tidegate_ports.common.refused_conf import refused_conf


async def dry_run(
    services: Services, wanted: ScheduleApply, *, with_file: bool = True, if_match: bool = False
) -> DryRun:
    """Returns the effect that the request would have now; writes nothing.

    Args:
        services: Services of this process.
        wanted: The request.
        with_file: Whether to check the program's file on this host. At an apply a node checks it on its own host.
        if_match: Whether the expected version came as a precondition; then a conflict is 412 and not 409.

    Raises:
        InvalidInput: The request would be rejected.
        ApiProblem: 409 or 412: the schedule has another version than expected.
    """
    now = services.clock.now_ms()
    try:
        # Only the target is checked here: the allowed namespaces of the topic are a setting of the nodes.
        authorize_request(wanted, EVERY, services.topics.requests)
    except RefusedRecord as refusal:
        # 400, as an apply gets it from the owner's receipt; 403 is only for the Host and Origin checks.
        raise InvalidInput(refusal.problems) from refusal

    async def found(stays: bool, making_up: CatchUp) -> tuple[Problem, ...]:
        # An apply is decided by the owner's setting. If no node has reported it, this process's setting is used.
        reported = await services.schedules.minimum_period_of(wanted.spec.namespace, wanted.spec.name)
        minimum_ms = reported or services.minimum_period_ms
        quota = quota_of(services.quotas, wanted.spec.namespace)
        # On a thread: the search for an instant that never comes takes half a second, and would delay starts of programs.
        problems = await services.pools.read(
            lambda: check_schedule(
                wanted.spec,
                now=now,
                minimum_period_ms=minimum_ms,
                quota=quota,
                trigger_stays=stays,
                making_up=making_up,
            )
        )
        for field, program in wanted.spec.target_rules.programs.items():
            refused = refused_conf(program.conf) if isinstance(program, PysparkProgram) else None
            if refused is not None:
                hint = "its runs would all be rejected: change conf, or the node"
                problems += (Problem(field, refused, hint),)
            if with_file:
                try:
                    unusable = await services.pools.looks.problem_with(program.file, "the API's host")
                except FileSystemSilent as silent:
                    unusable = str(silent)
                if unusable is not None:
                    hint = "use the path of a file that nodes and API can read"
                    problems += (Problem(f"{field}.file", unusable, hint),)
        return problems

    return await services.schedules.try_apply(wanted, now, found, conflict=412 if if_match else 409)
