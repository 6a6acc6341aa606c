"""docs/mcp.md is what the MCP server says of itself."""

from mcp_document import PAGE, document

from memoryd.client.programs.mcp.tools import CONNECTOR_TOOLS, TOOLS


def test_the_page_is_what_the_server_says() -> None:
    assert PAGE.read_text() == document(), "run: make protocol"


def test_each_tool_has_its_heading() -> None:
    headings = [line.removeprefix("### ") for line in PAGE.read_text().splitlines() if line.startswith("### ")]
    assert headings == [*TOOLS, *CONNECTOR_TOOLS]
