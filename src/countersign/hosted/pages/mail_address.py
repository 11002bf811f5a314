"""An e-mail address that a buyer has typed: the usual forms alone, so that nothing hides in one."""

from __future__ import annotations

import re
from typing import Final

ADDRESS_LENGTH_MAX: Final = 254
"""RFC 5321 §4.5.3.1.3, without the angle brackets; also as it is sent, in ASCII."""
_LOCAL: Final = re.compile(
    r"(?=.{1,64}\Z)(?!.*=\?)[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*", re.ASCII
)
"""A dot-atom (RFC 5322 §3.2.3) in ASCII: no quotes, spaces, comments or lines.

No encoded word (RFC 2047) either: mail libraries decode it, and the mail goes to another address.
"""
_DOMAIN: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9-]{1,63}\.)+(?=[^.]*[a-z])[a-z0-9-]{2,63}")
"""At least two labels, the last not a number, so that no IP address matches."""


def mail_address(text: str) -> str | None:
    """The address in ASCII for a mail server; None if it is not valid."""
    local, _, domain = text.strip(" \t\r\n").rpartition("@")
    if len(text) > 2 * ADDRESS_LENGTH_MAX or _LOCAL.fullmatch(local) is None:
        return None
    named = _in_ascii(domain)
    if _DOMAIN.fullmatch(named) is None or len(local) + len(named) >= ADDRESS_LENGTH_MAX:
        return None
    return f"{local}@{named}"


def _in_ascii(domain: str) -> str:
    """The domain as DNS looks it up; "" if it is not valid."""
    import idna  # noqa: PLC0415 - its tables are large, and few processes need them

    try:
        # Not Python's own codec: by the rules of 2003, `ß` would lead to another domain.
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        return ""


def counted_as(address: str) -> str:
    """A key shared by the addresses that usually reach one mailbox.

    Case, dots in the local part and what follows a plus are left out.
    """
    local, _, domain = address.lower().rpartition("@")
    box = local.partition("+")[0].replace(".", "")
    return f"{box or local}@{domain}"
