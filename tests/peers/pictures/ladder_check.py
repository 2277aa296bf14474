"""Whether the ladder in `ladders.py` answers what the reference agent's own code answers.

`ladder_check.py HOME`: reads a JSON list of paths, writes a JSON object from path to bool.
"""

import base64
import json
import logging
import os
import sys
import types
from pathlib import Path

import ladders

logging.disable(logging.CRITICAL)
os.environ["HERMES_HOME"] = sys.argv[1]
# Only its downloads use it, and its own requirements are not installed.
sys.modules.setdefault("httpx", types.ModuleType("httpx"))

from tools.vision_tools import _resize_image_for_vision as resize

report = {}
for path in json.load(sys.stdin):
    theirs = resize(Path(path), max_base64_bytes=ladders.BUDGET, max_dimension=ladders.SIDE,
                    force_jpeg=True)
    data, media_type = ladders.reference(Path(path).read_bytes())
    report[path] = theirs == f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"
json.dump(report, sys.stdout)
