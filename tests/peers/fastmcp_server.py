"""A server made with fastmcp, over Streamable HTTP: `fastmcp_server.py PORT FOLDER`.

FOLDER holds shot.png, tone.wav and report.pdf; the tools hand them out in every block kind.
"""

import sys
from pathlib import Path

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import ToolResult
from fastmcp.utilities.types import Audio, File, Image
from mcp.types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
mcp = FastMCP("fastmcp peer")


@mcp.tool
def picture():
    return Image(path=FOLDER / "shot.png")


@mcp.tool
def sound():
    return Audio(path=FOLDER / "tone.wav")


@mcp.tool
def document():
    return File(path=FOLDER / "report.pdf")


@mcp.tool
def mixed():
    return ToolResult(
        content=[
            TextContent(type="text", text="one of each"),
            ResourceLink(type="resource_link", uri="note://first", name="first", title="First",
                         mimeType="text/plain", size=11),
            EmbeddedResource(type="resource", resource=TextResourceContents(
                uri="note://inline", mimeType="text/plain", text="inline words")),
        ],
        structured_content={"count": 3, "ok": True},
    )


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b


@mcp.tool
def large(size: int) -> File:
    return File(data=bytes(index % 251 for index in range(size)), format="octet-stream", name="large")


@mcp.tool
async def slow(ctx: Context, steps: int) -> str:
    import asyncio

    for step in range(steps):
        await ctx.report_progress(step, steps)
        await asyncio.sleep(0.1)
    return "slow is done"


@mcp.tool
def fails():
    raise ToolError("the well is dry")


@mcp.resource("note://first", mime_type="text/plain")
def first() -> str:
    return "a real note"


@mcp.prompt
def greet(name: str) -> str:
    return f"Say hello to {name}."


mcp.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
