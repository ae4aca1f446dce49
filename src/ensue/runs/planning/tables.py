"""A plan as tables for people, and as JSON for programs."""

from __future__ import annotations

from typing import Any

from ensue.report.table import Column, Table
from ensue.runs.planning.plan import Costs, Plan

_UNITS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float) -> str:
    """Write a large number with three digits and a letter.

    >>> amount(2_412_000), amount(17), amount(1.25e15), amount(999_960), amount(2.5e21)
    ('2.41 M', '17', '1.25 P', '1 M', '2,500 E')
    """
    for unit, letter in _UNITS:
        if value >= 0.9995 * unit:
            return f"{digits(value / unit, 3)} {letter}"
    return digits(value, 3)


def digits(value: float, count: int) -> str:
    """Write a number with so many digits, or whole where it has more before the point.

    >>> digits(0.2149, 2), digits(119.6, 2), digits(1234.5, 3)
    ('0.21', '120', '1,234')
    """
    return f"{value:,.0f}" if value >= 10 ** (count - 1) else f"{value:.{count}g}"


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(0.21), duration(95), duration(110), duration(7400), duration(400_000), duration(4e7)
    ('0.21 s', '95 s', '110 s', '2.1 h', '4.6 days', '463 days')
    """
    if seconds < 120:
        return f"{digits(seconds, 2)} s"
    if seconds < 7200:
        return f"{digits(seconds / 60, 3)} min"
    if seconds < 172_800:
        return f"{digits(seconds / 3600, 2)} h"
    return f"{digits(seconds / 86_400, 2)} days"


def size(count: float) -> str:
    """Write a number of bytes.

    >>> size(3 * 2**30), size(500), size(1012 * 2**10)
    ('3 GiB', '500 bytes', '1012 KiB')
    """
    for unit, word in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.{'4' if count >= 999.5 * unit else '3'}g} {word}"
    return f"{count:.0f} bytes"


def plan_tables(plan: Plan) -> list[Table]:
    """Return what is run, and what it takes."""
    return [_work(plan), _takes(plan)]


def _work(plan: Plan) -> Table:
    columns = [
        Column("model", words=True),
        Column("work", words=True),
        Column("texts"),
        Column("tokens\nalone", wide="tokens, each text alone"),
        Column("fed", wide="tokens fed, prefixes shared"),
        Column("asked", wide="places the head is asked"),
        Column("written", wide="tokens of hypotheses written"),
        Column("FLOPs"),
        Column("on one\ndevice", wide="time on one device"),
    ]
    title = f"{plan.benchmark} with {plan.model}: {amount(plan.items * plan.times)} items of "
    title += f"{amount(plan.clusters * plan.times)} documents or groups"
    table = Table(columns, title=title)
    for cost in plan.costs:
        tally = cost.tally
        table.add(
            cost.work.model,
            cost.work.what,
            *(amount(value) for value in (tally.texts, tally.given, tally.fed, tally.scored, tally.written)),
            amount(cost.operations),
            duration(cost.seconds),
        )
    return table


def _takes(plan: Plan) -> Table:
    device = plan.hardware
    table = Table(
        [Column("what", words=True), Column("how much"), Column("how it is known", words=True, fold=True)]
    )
    low, high = plan.interval
    many = f"{plan.devices} × {device.name}"
    reach = f"; {duration(low)} to {duration(high)} as texts differ (95 %)" if plan.spread else ""
    table.add("work on one device", duration(plan.seconds), _known(plan) + reach)
    table.add(
        "host work",
        duration(plan.host),
        f"as it took here, one core; {duration(plan.outside)} without tokenising and planning",
    )
    table.add("start", duration(plan.start), "each process: starting, reading weights, compiling if repaid")
    table.add(f"from start to end, {many}", duration(plan.wall), device.about)
    table.add("device-hours", f"{plan.device_hours:.3g}", f"{many}, starts included")
    if plan.money is not None:
        table.add("money", f"{plan.money:,.2f}", f"at {plan.price:g} a device-hour")
    if plan.memory:
        parts = ", ".join(f"{key} {size(value)}" for key, value in plan.memory.items() if value)
        table.add(
            "memory, each device",
            size(sum(plan.memory.values())),
            f"{parts}; there are {device.memory:g} GiB",
        )
    parts = ", ".join(f"{key} {size(value)}" for key, value in plan.disk.items())
    table.add("disk", size(sum(plan.disk.values())), parts)
    table.caption = "\n".join(plan.notes)
    return table


def _known(plan: Plan) -> str:
    ratios = [cost.measured for cost in plan.costs if cost.measured is not None]
    if ratios:
        said = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        return f"measured here on a part of the work: {said} × the profile {plan.hardware.name}"
    return f"profile {plan.hardware.name}, {plan.hardware.source}"


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as `ensue plan --json` prints it."""
    return {
        "benchmark": plan.benchmark,
        "model": plan.model,
        "hardware": plan.hardware.name,
        "source": plan.hardware.source,
        "devices": plan.devices,
        "items": round(plan.items * plan.times),
        "documents": round(plan.clusters * plan.times),
        "times": plan.times,
        "work": [_work_json(cost) for cost in plan.costs],
        "operations": plan.operations,
        "seconds": plan.seconds,
        "seconds_ci95": list(plan.interval) if plan.spread else None,
        "host_seconds": plan.host,
        "outside_seconds": plan.outside,
        "start_seconds": plan.start,
        "wall_seconds": plan.wall,
        "device_hours": plan.device_hours,
        "money": plan.money,
        "memory": {key: round(value) for key, value in plan.memory.items()},
        "disk": {key: round(value) for key, value in plan.disk.items()},
        "notes": plan.notes,
    }


def _work_json(cost: Costs) -> dict[str, Any]:
    work = cost.work
    return {
        "model": work.model,
        "what": work.what,
        "sampled": bool(work.blocks),
        **{key: round(value) for key, value in cost.tally.as_dict().items()},
        "operations": cost.operations,
        "seconds": cost.seconds,
        "measured_ratio": cost.measured,
        "weights": work.shape.weights,
        "dtype": work.dtype,
    }
