"""``python -m workflow_adapters.cli``."""

from workflow_adapters.cli import main

main()
