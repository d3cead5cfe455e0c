"""Conversations with tools: prompts, and answers split into thoughts, content and tool calls."""
