"""Tells the author of an adapter which clause of the ports' contract it breaks, why that matters, and how to see it.

    TestMyQueue = job_queue_conformance(make_queue)        # in a test file
    $ python -m conformance run my_package.testing:make_queue
    report = await conformance.run(spec)

Importing this package costs next to nothing; what it offers is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformance.backend import Env, Fixture, Spec
    from conformance.choice import Choice
    from conformance.clause import Level, Parameters, Port
    from conformance.native import acheck
    from conformance.outcome import ExitCode, Outcome, Result
    from conformance.report import Report
    from conformance.runner import run
    from conformance.testcase import (
        ConformanceTestCase,
        ai_call_logger_conformance,
        job_queue_conformance,
        step_ledger_conformance,
        workflow_persistence_conformance,
    )

__all__ = [
    "Choice",
    "ConformanceTestCase",
    "Env",
    "ExitCode",
    "Fixture",
    "Level",
    "Outcome",
    "Parameters",
    "Port",
    "Report",
    "Result",
    "Spec",
    "acheck",
    "ai_call_logger_conformance",
    "job_queue_conformance",
    "run",
    "step_ledger_conformance",
    "workflow_persistence_conformance",
]

_MODULES = {
    "backend": ("Env", "Fixture", "Spec"),
    "choice": ("Choice",),
    "clause": ("Level", "Parameters", "Port"),
    "native": ("acheck",),
    "outcome": ("ExitCode", "Outcome", "Result"),
    "report": ("Report",),
    "runner": ("run",),
    "testcase": (
        "ConformanceTestCase",
        "ai_call_logger_conformance",
        "job_queue_conformance",
        "step_ledger_conformance",
        "workflow_persistence_conformance",
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
