"""The IP addresses that images may be downloaded from."""

from __future__ import annotations

import ipaddress

_REFUSED = tuple(
    ipaddress.ip_network(one)
    for one in (
        # Clouds' services for their own machines, at addresses that look public.
        "168.63.129.16/32",  # Azure
        "192.0.0.0/24",  # Oracle, and IETF protocols
        # IPv6 forms of IPv4 addresses, which may be private.
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "::/96",
    )
)


def is_public(address: str) -> bool:
    """Return whether an IP address is on the public internet: not private, loopback, link-local,
    multicast or a cloud's metadata, and not an IPv6 form of such an IPv4 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    if not found.is_global or found.is_multicast or found.is_reserved:
        return False
    return not any(found in one for one in _REFUSED if one.version == found.version)
