"""Holdfast: modern MCP clients use legacy MCP servers, and neither side changes a line."""

__version__ = "0.1.0"
