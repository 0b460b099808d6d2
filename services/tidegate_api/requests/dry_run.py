"""What an apply would do, by the functions that decide it, and what they would find wrong."""

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
    """Returns what the request would do now; writes nothing.

    Args:
        services: Of this process.
        wanted: The request.
        with_file: Whether the program's file is looked for here. At the apply a node looks for it, on its own host.
        if_match: The version came as a precondition: its failure is 412 and not 409.

    Raises:
        InvalidInput: It would be rejected.
        ApiProblem: 409 or 412, another version is expected.
    """
    now = services.clock.now_ms()
    try:
        # Its target alone: which namespaces the topic is for is a setting of the nodes'.
        authorize_request(wanted, EVERY, services.topics.requests)
    except RefusedRecord as refusal:
        # 400, as the apply has it from the owner's receipt; 403 is of pages and their hosts.
        raise InvalidInput(refusal.problems) from refusal

    async def found(stays: bool, making_up: CatchUp) -> tuple[Problem, ...]:
        # The owner decides by its own setting; this process's counts where no node has told its own.
        told = await services.schedules.minimum_period_of(wanted.spec.namespace, wanted.spec.name)
        minimum_ms = told or services.minimum_period_ms
        quota = quota_of(services.quotas, wanted.spec.namespace)
        # On a thread: an instant that never comes is searched for half a second, in which no program could start.
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
                    hint = "give the path of a file that nodes and API can read"
                    problems += (Problem(f"{field}.file", unusable, hint),)
        return problems

    return await services.schedules.try_apply(wanted, now, found, conflict=412 if if_match else 409)
