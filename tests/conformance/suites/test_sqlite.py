"""The SQLite adapters are held to every clause."""

from conformance.clause import Port
from conformance.testcase import case_for
from tests.conformance.backends import sqlite

_SPECS = {spec.port: spec for spec in sqlite}

TestSqlitePersistence = case_for(_SPECS[Port.WORKFLOW_PERSISTENCE], module=__name__)
TestSqliteJobQueue = case_for(_SPECS[Port.JOB_QUEUE], module=__name__)
TestSqliteStepLedger = case_for(_SPECS[Port.STEP_LEDGER], module=__name__)
TestSqliteAICallLogger = case_for(_SPECS[Port.AI_CALL_LOGGER], module=__name__)
