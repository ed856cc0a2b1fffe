"""Test classes with a method for each clause, for unittest and for everything that runs unittest's classes.

    TestMyQueue = job_queue_conformance(make_queue, capabilities={SupportsDefer})

The methods are synchronous; the adapter lives in a thread of the harness's own, so that no plugin's event loop and no
hanging adapter is in anybody's way.
"""

from __future__ import annotations

import inspect
import os
import sys
import unittest
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, Unpack

from conformance.backend import Factory, Spec, SpecOptions
from conformance.choice import DEFAULT_CHOICE, Choice
from conformance.clause import Clause, Port
from conformance.message import failure_text, replay_command
from conformance.native import acheck
from conformance.outcome import Outcome, Result
from conformance.profiles import of_profile
from conformance.registry import Registry, load
from conformance.report import text_of
from conformance.runner import check_spec
from conformance.session import Session
from workflow_adapters.clock import ManualClock

# unittest leaves the frames of modules that say so out of its tracebacks: the message comes first.
__unittest = True

_RUNNING_PYTEST: Final = "PYTEST_CURRENT_TEST"


class ConformanceWarning(UserWarning):
    """A SHOULD that is not met."""


class ConformanceTestCase(unittest.TestCase):
    """Base of the generated classes. Subclasses may add tests of their own, not replace a clause's."""

    spec: ClassVar[Spec]
    registry: ClassVar[Registry]
    choice: ClassVar[Choice]
    clause_methods: ClassVar[Mapping[str, Callable[[Any], None]]]
    _session: ClassVar[Session | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._refuse_overriding()

    @classmethod
    def setUpClass(cls) -> None:
        cls._refuse_overriding()
        cls._session = Session(cls.spec, cls.registry, cls.choice)

    @classmethod
    def tearDownClass(cls) -> None:
        session, cls._session = cls._session, None
        left = "" if session is None else session.close()
        if left:
            raise AssertionError(f"{cls.spec.name} is closed and has left behind: {left}")

    @classmethod
    async def acheck(cls, clause: str, adapter: object, *others: object, clock: ManualClock | None = None) -> Result:
        """`conformance.acheck` with what the class declares: one clause, in the caller's own loop, on its adapters."""
        return await acheck(
            cls.registry.get(clause),
            adapter,
            *others,
            clock=clock,
            parameters=cls.spec.parameters,
            capabilities=tuple(cls.spec.capabilities),
        )

    @classmethod
    def _refuse_overriding(cls) -> None:
        for name, method in getattr(cls, "clause_methods", {}).items():
            if getattr(cls, name) is not method:
                raise TypeError(
                    f"{cls.__name__}.{name} is a clause; declare a gap with its reason instead of overriding it"
                )

    def check(self, clause: Clause) -> None:
        assert self._session is not None
        result = self._session.check(clause.id)
        if result.outcome is Outcome.PASS:
            return
        if result.outcome is Outcome.NOT_APPLICABLE:
            self.skipTest(f"{clause.id} is not applicable: {result.reason}")
        if result.outcome is Outcome.WAIVED:
            self._expect(f"{clause.id} is a declared gap: {result.reason}")
        place, again = _location_of(type(self)), self.choice.again()
        replay = replay_command(place, clause.id, self._session.seed, self.choice.loop, again)
        message = failure_text(text_of(clause), result, replay)
        if result.outcome is Outcome.WARN:
            warnings.warn(ConformanceWarning(message), stacklevel=1)
            return
        self._fail_with(message)

    def _expect(self, gap: str) -> NoReturn:
        if _RUNNING_PYTEST in os.environ:
            import pytest

            pytest.xfail(gap)
        self.skipTest(gap)

    def _fail_with(self, message: str) -> NoReturn:
        if _RUNNING_PYTEST in os.environ:
            import pytest

            raise pytest.fail.Exception(message, pytrace=False)
        raise self.failureException(f"\n{message}")


def workflow_persistence_conformance(factory: Factory, **options: Unpack[SpecOptions]) -> type[ConformanceTestCase]:
    """A test class with a method for each clause of WorkflowPersistence; the options are those of `Spec`."""
    return _test_class(Port.WORKFLOW_PERSISTENCE, factory, options)


def job_queue_conformance(factory: Factory, **options: Unpack[SpecOptions]) -> type[ConformanceTestCase]:
    """A test class with a method for each clause of JobQueue; the options are those of `Spec`."""
    return _test_class(Port.JOB_QUEUE, factory, options)


def step_ledger_conformance(factory: Factory, **options: Unpack[SpecOptions]) -> type[ConformanceTestCase]:
    """A test class with a method for each clause of StepLedger; the options are those of `Spec`."""
    return _test_class(Port.STEP_LEDGER, factory, options)


def ai_call_logger_conformance(factory: Factory, **options: Unpack[SpecOptions]) -> type[ConformanceTestCase]:
    """A test class with a method for each clause of AICallLogger; the options are those of `Spec`."""
    return _test_class(Port.AI_CALL_LOGGER, factory, options)


def _test_class(port: Port, factory: Factory, options: SpecOptions) -> type[ConformanceTestCase]:
    return case_for(Spec(port=port, factory=factory, **options), module=_module_of_caller())


def _module_of_caller() -> str:
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return __name__ if frame is None else str(frame.f_globals["__name__"])


def case_for(
    spec: Spec, *, module: str, registry: Registry | None = None, choice: Choice = DEFAULT_CHOICE
) -> type[ConformanceTestCase]:
    """The class for a spec, with the clauses of the choice's profile; `module` is where it will be found.

    What the four public functions have in common.
    """
    known = registry or load()
    check_spec(spec, known)
    methods = {
        f"test_{clause.id.replace('-', '_')}_{clause.level.lower()}_{clause.function.__name__}": _method(clause)
        for clause in of_profile(known.clauses(spec.port), choice.profile)
        if spec.is_concerned_by(clause)
    }
    members: dict[str, Any] = {
        **methods,
        "spec": spec,
        "registry": known,
        "choice": choice,
        "clause_methods": methods,
        "__module__": module,
        "__doc__": f"The clauses of {spec.port.title} on {spec.name}.",
    }
    return type(f"{spec.port.title}Conformance", (ConformanceTestCase,), members)


def _method(clause: Clause) -> Callable[[ConformanceTestCase], None]:
    def try_clause(self: ConformanceTestCase) -> None:
        self.check(clause)

    try_clause.__doc__ = f"{clause.id} {clause.level}: {clause.text}"
    return try_clause


def _location_of(case: type[ConformanceTestCase]) -> str:
    """``module:name`` under which the command line finds the class, and with it all that is declared."""
    module = sys.modules.get(case.__module__)
    names = [name for name, value in vars(module).items() if value is case] if module is not None else []
    return f"{_importable(case.__module__)}:{names[0]}" if names else case.spec.location


def _importable(name: str) -> str:
    """The module as the command line finds it: by its name from here, else by its file.

    A test runner may have found it from the directory that it is in.
    """
    file = getattr(sys.modules[name], "__file__", None)
    here = Path.cwd()
    if file is None or not Path(file).is_relative_to(here):
        return name
    path = Path(file).relative_to(here)
    parts = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
    return name if ".".join(parts) == name else str(path)
