"""Time triggers that leave out some, or most, of what they name: as properties draw them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ROME, TOKYO = "Europe/Rome", "Asia/Tokyo"


def cron(expression: str, *exclude: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, **({"exclude": list(exclude)} if exclude else {}), **fields}


MINUTES = st.sampled_from(["*", "*/2", "*/7", "1-59/2", "0", "15,45", "0-29"])
HOURS = st.sampled_from(["*", "2", "1-3", "0-11", "*/6", "12-23"])
ZONES = st.sampled_from(["UTC", ROME, TOKYO, "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"])
EXCLUDED = st.builds(
    lambda minutes, hours, days, zone: {"type": "cron", "expression": f"{minutes} {hours} {days} * *", "zone": zone},
    *(MINUTES, HOURS, st.sampled_from(["*", "27-31", "29"]), ZONES),
)
NAMING = st.one_of(
    st.builds(lambda minutes, hours, zone: cron(f"{minutes} {hours} * * *", zone=zone), MINUTES, HOURS, ZONES),
    st.builds(lambda period: {"type": "every", "period": period}, st.sampled_from(["7m", "10m", "70s", "3h", "100s"])),
    st.builds(
        lambda at, zone: {"type": "every", "period": {"days": 1}, "at": at, "zone": zone},
        *(st.sampled_from(["02:30", "00:00"]), ZONES),
    ),
)
UNION = st.builds(lambda specs: {"type": "times", "specs": specs}, st.lists(NAMING, min_size=1, max_size=3))
