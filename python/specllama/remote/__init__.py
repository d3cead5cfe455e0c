"""A target on another machine; its drafts are made here (docs/guides/remote.md)."""
