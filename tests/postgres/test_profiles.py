"""Other databases and other ways to one, held to the clauses that they may make a difference to."""

from conformance.backend import Spec
from conformance.choice import Choice
from conformance.clause import Port
from conformance.testcase import case_for
from tests.postgres import profiles
from tests.postgres.bouncer import is_installed

# Volumes, long races and interruptions are the same with a column less, or in another time zone.
QUICK = Choice(profile="quick")


def spec_of(specs: list[Spec], port: Port) -> Spec:
    return next(spec for spec in specs if spec.port is port)


TestBarePersistence = case_for(spec_of(profiles.bare, Port.WORKFLOW_PERSISTENCE), module=__name__)
TestBareJobQueue = case_for(spec_of(profiles.bare, Port.JOB_QUEUE), module=__name__)
TestBareStepLedger = case_for(spec_of(profiles.bare, Port.STEP_LEDGER), module=__name__)
TestBareAICallLogger = case_for(spec_of(profiles.bare, Port.AI_CALL_LOGGER), module=__name__)

TestWithoutVersionsPersistence = case_for(
    spec_of(profiles.without_versions, Port.WORKFLOW_PERSISTENCE), module=__name__, choice=QUICK
)
TestWithoutCostsStepLedger = case_for(spec_of(profiles.without_costs, Port.STEP_LEDGER), module=__name__, choice=QUICK)
TestWithoutCostsAICallLogger = case_for(
    spec_of(profiles.without_costs, Port.AI_CALL_LOGGER), module=__name__, choice=QUICK
)

TestKolkataJobQueue = case_for(spec_of(profiles.kolkata, Port.JOB_QUEUE), module=__name__, choice=QUICK)

if is_installed():
    TestPgBouncerPersistence = case_for(spec_of(profiles.pgbouncer, Port.WORKFLOW_PERSISTENCE), module=__name__)
    TestPgBouncerJobQueue = case_for(spec_of(profiles.pgbouncer, Port.JOB_QUEUE), module=__name__)
