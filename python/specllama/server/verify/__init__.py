"""/v1/verify: a target for clients that draft elsewhere (docs/guides/remote.md)."""
