"""/v1/verify: a target for clients that draft elsewhere (verify-protocol.md)."""
