"""``python -m experiments``, from the root of a checkout."""

import sys

from experiments.cli.app import main

sys.exit(main())
