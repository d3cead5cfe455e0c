"""A target on another machine, for which drafts are made here (docs/guides/remote.md)."""
