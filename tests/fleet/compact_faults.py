"""Compact a directory, and die at a chosen file operation. Arguments: DIRECTORY NUMBER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from ship_faults import dies_at

from queryprof.fleet.compaction import Compaction
from queryprof.fleet.location import Directory

if __name__ == "__main__":
    compaction = Compaction(Directory(sys.argv[1]), None, print)
    dies_at(int(sys.argv[2]))
    compaction.run()
    os._exit(0)
