import sys

from tests.mutants.batch import main

sys.exit(main())
