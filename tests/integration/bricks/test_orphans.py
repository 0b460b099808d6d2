"""No Java outlives a program that is killed, and the next program can take its data over at once."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tidegate_bricks import DynamoDbBrick, KafkaBrick, start_together, stop_together

PROGRAM = """
import sys, time
from pathlib import Path
from tidegate_bricks import DynamoDbBrick, KafkaBrick, start_together
folder = Path(sys.argv[1])
bricks = [KafkaBrick(folder / "kafka"), DynamoDbBrick(folder / "dynamodb")]
start_together(bricks)
print(*(brick.pid for brick in bricks), flush=True)
time.sleep(600)
"""


def test_given_program_is_killed_then_both_servers_are_gone_and_data_can_be_taken_over(
    tmp_path: Path, alive: Callable[[int], bool], until: Callable[[Callable[[], bool], str], None]
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as program:
        assert program.stdout is not None
        servers = [int(pid) for pid in program.stdout.readline().split()]
        assert [alive(pid) for pid in servers] == [True, True]
        program.kill()
        until(lambda: not any(alive(pid) for pid in servers), "both servers end")
    bricks = [KafkaBrick(tmp_path / "kafka"), DynamoDbBrick(tmp_path / "dynamodb")]
    start_together(bricks)
    assert all(brick.running for brick in bricks)
    stop_together(bricks)
