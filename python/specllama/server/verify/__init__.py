"""/v1/verify: a target for clients that draft elsewhere (docs/reference/verify-protocol.md)."""
