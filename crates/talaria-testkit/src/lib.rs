//! Scripted MCP servers, clock and wait helpers for Talaria's own tests.
