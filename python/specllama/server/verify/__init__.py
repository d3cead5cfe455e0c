"""/v1/verify: a target for remote clients that draft (verify-protocol.md)."""
