"""/v1/verify: a target for those who draft elsewhere (docs/remote.md)."""
