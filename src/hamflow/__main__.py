"""``python -m hamflow`` is the command ``hamflow``."""

import sys

from hamflow.cli.main import main

sys.exit(main())
