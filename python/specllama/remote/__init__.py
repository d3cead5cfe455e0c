"""A target on another machine, drafts made here (docs/remote.md)."""
