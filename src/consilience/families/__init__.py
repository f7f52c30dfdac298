"""How votes scatter around the truth: one family per file, several label spaces may share one."""
