"""Renders MCP results with the reference agent's own code.

Reads one JSON object a line, `{"id", "result"}`; writes one a line,
`{"id", "rendered", "blocks", "typed"}`. `rendered` is the reference's output, `blocks` the part
it makes of each block alone (null for none). A path of a file it wrote stands as
`file:<sha256>`, so that both sides compare bytes. HERMES_HOME names its cache.
"""

import hashlib
import json
import logging
import os
import sys
from pathlib import Path
from types import SimpleNamespace

logging.disable(logging.CRITICAL)

import gateway.platforms.base  # noqa: F401  the cache writers; a missing one must fail here
import mcp.types
from tools import mcp_tool_handlers as reference

CACHE = Path(os.environ["HERMES_HOME"]) / "cache"
SERVER = "peer"


def namespace(value, top=True):
    """What the SDK would hand over had it not refused the value: attributes for objects.

    Free-form parts (`_meta`, `structuredContent`) stay plain data, as in the SDK.
    """
    if isinstance(value, dict):
        fields = {}
        for key, item in value.items():
            if key in ("_meta", "meta"):
                fields["meta"] = item
            elif key == "structuredContent":
                fields["structured_content"] = item
            else:
                fields[key] = namespace(item, False)
        return SimpleNamespace(**fields)
    if isinstance(value, list):
        return [namespace(item, False) for item in value]
    return value


def files():
    return {path for path in CACHE.rglob("*") if path.is_file()} if CACHE.exists() else set()


def with_digests(text, before):
    for path in sorted(files() - before, key=lambda path: -len(str(path))):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        for spelling in {str(path), json.dumps(str(path), ensure_ascii=False)[1:-1]}:
            text = text.replace(spelling, "file:" + digest)
    return text


def render(result):
    before = files()
    return with_digests(reference._render_call_tool_result(result, SERVER), before)


def block_part(block):
    before = files()
    text, _, _ = reference._render_content_blocks(SimpleNamespace(content=[block]), SERVER)
    return with_digests(text, before) if text else None


for line in sys.stdin:
    case = json.loads(line)
    raw = case["result"]
    try:
        result = mcp.types.CallToolResult.model_validate(raw)
        typed = True
    except ValueError:
        result = namespace(raw)
        typed = False
    answer = {
        "id": case["id"],
        "rendered": render(result),
        "blocks": [block_part(block) for block in (result.content or [])],
        "typed": typed,
    }
    print(json.dumps(answer, ensure_ascii=False), flush=True)
