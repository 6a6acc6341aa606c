"""The systems whose memories can be imported."""

from typing import NamedTuple


class System(NamedTuple):
    """A system to import from: its module here, and a description of PATH."""

    module: str
    path: str


SYSTEMS: dict[str, System] = {
    "claude-mem": System("claude_mem", "claude-mem.db, or the folder ~/.claude-mem"),
    "memori": System("memori", "the SQLite database that Memori was given"),
    "mem0": System("mem0", "the vector store (Qdrant, FAISS or Chroma on disk), history.db, or JSON of get_all()"),
    "basic-memory": System("basic_memory", "the folder of a project, or memory.db of ~/.basic-memory"),
    "mcp-memory": System("mcp_memory", "memory.jsonl of the MCP reference server"),
    "memory-md": System("memory_md", "MEMORY.md, or a folder with it and daily files, such as an agent's memory/"),
}
