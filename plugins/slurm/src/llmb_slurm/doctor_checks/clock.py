"""Check of the cluster's clock, with which llmb compares times of this machine."""

import time
from collections.abc import Mapping

from llmb import DoctorCheck

MAX_CLOCK_DIFFERENCE_S = 30


def check_clock(facts: Mapping[str, str]) -> DoctorCheck:
    """Compare the clock of the host, in seconds since 1970, with that of this machine."""
    if not facts.get("clock", "").isdigit():
        return DoctorCheck(name="clock", ok=False, detail="cannot read the clock", remedy="run `date +%s` on the host")
    difference_s = abs(int(facts["clock"]) - int(time.time()))
    ok = difference_s <= MAX_CLOCK_DIFFERENCE_S
    detail = f"differs from the clock of this machine by {difference_s} s"
    return DoctorCheck(
        name="clock",
        ok=ok,
        detail=detail,
        remedy="" if ok else "synchronise both clocks with NTP: run `sudo timedatectl set-ntp true` on both machines",
    )
