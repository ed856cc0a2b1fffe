"""The memory adapters are held to every clause: they define the behaviour that the clauses describe."""

from conformance.clause import Port
from conformance.testcase import case_for
from tests.conformance.suites.memory_specs import spec

TestMemoryJobQueue = case_for(spec(Port.JOB_QUEUE), module=__name__)
