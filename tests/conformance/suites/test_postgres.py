"""The Postgres adapters are held to every clause."""

from conformance.clause import Port
from conformance.testcase import case_for
from tests.conformance.backends import postgres

_SPECS = {spec.port: spec for spec in postgres}

TestPostgresPersistence = case_for(_SPECS[Port.WORKFLOW_PERSISTENCE], module=__name__)
TestPostgresJobQueue = case_for(_SPECS[Port.JOB_QUEUE], module=__name__)
TestPostgresStepLedger = case_for(_SPECS[Port.STEP_LEDGER], module=__name__)
TestPostgresAICallLogger = case_for(_SPECS[Port.AI_CALL_LOGGER], module=__name__)
