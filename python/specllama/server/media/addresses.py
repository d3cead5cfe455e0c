"""Which addresses images may be downloaded from."""

from __future__ import annotations

import ipaddress

_REFUSED = tuple(
    ipaddress.ip_network(one)
    for one in (
        # Services of a cloud for its own machines, at addresses that look public.
        "168.63.129.16/32",  # Azure
        "192.0.0.0/24",  # Oracle, and protocols of its own
        # IPv4 addresses in other clothes, private ones among them.
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "::/96",
    )
)


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public internet: not private, of this machine or
    link, of a cloud's metadata or multicast, and no such IPv4 address inside one of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if not found.is_global or found.is_multicast or found.is_reserved:
        return False
    return not any(found in one for one in _REFUSED if one.version == found.version)
