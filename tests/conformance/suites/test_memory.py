"""The memory adapters are held to every clause: they define the behaviour that the clauses describe."""

from conformance.clause import Port
from conformance.testcase import case_for
from tests.conformance.backends import memory

_SPECS = {spec.port: spec for spec in memory}

TestMemoryJobQueue = case_for(_SPECS[Port.JOB_QUEUE], module=__name__)
TestMemoryPersistence = case_for(_SPECS[Port.WORKFLOW_PERSISTENCE], module=__name__)
TestMemoryStepLedger = case_for(_SPECS[Port.STEP_LEDGER], module=__name__)
TestMemoryAICallLogger = case_for(_SPECS[Port.AI_CALL_LOGGER], module=__name__)
