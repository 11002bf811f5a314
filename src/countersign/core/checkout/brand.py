"""How an account is shown to buyers: its name, colour and logo."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, insert, select, update

from countersign.base.db.statements import SelectAmong
from countersign.base.db.tables import account_brands
from countersign.base.errors import InvalidArgument
from countersign.base.values import Mode
from countersign.core.access.account import URL_LENGTH_MAX, checked_account_name, origin_of
from countersign.core.access.audit import AuditAction, write_audit
from countersign.core.access.room import Access
from countersign.core.parties import DEPLOYMENT, PartyType, record_in_force
from countersign_evidence.cli.files import read_file

LOGO_BYTES_MAX: Final = 6 * 1024
"""A page and its logo are small together: phones load them before a purchase."""
FONTS: Final = ("sans", "serif", "rounded")
"""The stacks of `web/design/tokens.css`: what systems have already."""
TYPED: Final = "typed"
ADOPTED_ALLOWED: Final = "adopted_allowed"
"""How buyers of the account may enter initials: typed on each line, or also adopted by a press."""
_ADDRESS: Final = re.compile(r"[^\s@<>\"?&]{1,64}@[^\s@<>\"?&]{1,180}")
_COLOR: Final = re.compile(r"#[0-9a-f]{6}")
_KINDS: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), b"image/png"),
    (re.compile(rb"\xff\xd8\xff"), b"image/jpeg"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), b"image/webp"),
)
"""By the first bytes of a file. An SVG could contain scripts."""
_PARTS: Final = (*("color", "logo", "contact_url", "privacy_url", "support_email", "font"),)
_AMONG: Final = {"font": FONTS, "initials": (TYPED, ADOPTED_ALLOWED)}
_select: Final = SelectAmong(
    "SELECT a.id, a.name, b.name, b.color, b.logo_digest, b.contact_url, b.privacy_url,"
    " b.support_email, b.font, b.initials FROM accounts a"
    " LEFT JOIN account_brands b ON b.account_id = a.id WHERE a.id {}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brand:
    """An account as shown to buyers; `logo` is the SHA-256 of the picture, hexadecimal."""

    name: str
    color: str | None = None
    logo: str | None = None
    contact_url: str | None = None
    privacy_url: str | None = None
    support_email: str | None = None
    font: str | None = None
    initials: str = TYPED
    operator: str | None = None
    """The operator of the service, from its record in the log."""


def brand_of(connection: Connection, account_id: str) -> Brand:
    """How an account is shown; without a name for buyers, by the account's own."""
    [brand] = brands_of(connection, [account_id])
    return brand


def brands_of(connection: Connection, account_ids: Sequence[str]) -> list[Brand]:
    """An act for `read_batched`: how each of these accounts is shown."""
    record = record_in_force(connection, DEPLOYMENT, Mode.LIVE, PartyType.OPERATOR)
    operator = None if record is None else _legal_name(record.body)
    found = {
        id_: Brand(
            name=shown or name,
            initials=initials or TYPED,
            operator=operator,
            **dict(zip(_PARTS, parts, strict=True)),
        )
        for id_, name, shown, *parts, initials in _select(connection, set(account_ids))
    }
    return [found[id_] for id_ in account_ids]


@lru_cache(maxsize=8)
def _legal_name(record: bytes) -> str | None:
    found = json.loads(record).get("legal_name")
    return found if isinstance(found, str) else None


def read_logo(connection: Connection, digest: str) -> bytes | None:
    """The picture with this digest, if an account has it."""
    own = account_brands.c.logo_digest == digest
    return connection.execute(select(account_brands.c.logo).where(own).limit(1)).scalar()


def kind_of_logo(picture: bytes) -> bytes | None:
    """The media type of a PNG, JPEG or WebP file; None for any other."""
    return next((kind for form, kind in _KINDS if form.match(picture)), None)


def put_brand(
    connection: Connection,
    access: Access,
    account_id: str,
    /,
    *,
    name: str | None,
    color: str | None,
    logo: bytes | None,
    **ways: str | None,
) -> Brand:
    """Change how an account is shown; None leaves a part as it is, and "" removes it.

    `logo` is a picture (b"" removes it); `ways` are `contact_url`, `privacy_url`, `support_email`,
    `font`, and `initials`.

    Raises InvalidArgument if a part is not usable.
    """
    changes: dict[str, str | bytes | None] = {}
    if name is not None:
        changes["name"] = checked_account_name(name) if name else None
    if color is not None:
        changes["color"] = color.lower() or None
        if color and _COLOR.fullmatch(color.lower()) is None:
            raise InvalidArgument(f"{color!r} is not a colour of the form #rrggbb.")
    if logo is not None:
        picture = checked_picture(logo) if logo else None
        digest = None if picture is None else sha256(picture).hexdigest()
        changes |= {"logo": picture, "logo_digest": digest}
    for part, text in ways.items():
        if text:
            _check_way(part, text)
        if text is not None:
            changes[part] = text or None
    if not changes:
        return brand_of(connection, account_id)
    changed = [part for part in changes if part != "logo_digest"]
    said = {"initials": changes["initials"] or TYPED} if "initials" in changes else {}
    own = account_brands.c.account_id == account_id
    if not connection.execute(update(account_brands).where(own).values(changes)).rowcount:
        connection.execute(insert(account_brands), {"account_id": account_id, **changes})
    audit = access.audit.entry(AuditAction.BRAND_CHANGED, account_id, changed=changed, **said)
    write_audit(connection, audit)
    return brand_of(connection, account_id)


def _check_way(part: str, text: str) -> None:
    if part in _AMONG:
        is_usable = text in _AMONG[part]
    elif part == "support_email":
        is_usable = _ADDRESS.fullmatch(text) is not None
    else:
        is_usable = origin_of(text) is not None and len(text) <= URL_LENGTH_MAX
    if not is_usable:
        wanted = {part: f"one of {', '.join(names)}" for part, names in _AMONG.items()}
        wanted["support_email"] = "an e-mail address"
        raise InvalidArgument(f"{text!r} is not {wanted.get(part, 'an http or https address')}.")


def picture_in(path: str) -> bytes:
    """The picture in a file, if it can be shown as a logo. Raises InvalidArgument."""
    return checked_picture(read_file(Path(path), LOGO_BYTES_MAX), path)


def checked_picture(picture: bytes, named: str = "The logo") -> bytes:
    """The picture, if it can be shown as a logo. Raises InvalidArgument."""
    if len(picture) > LOGO_BYTES_MAX:
        raise InvalidArgument(f"{named} has more than {LOGO_BYTES_MAX // 1024} KiB.")
    if kind_of_logo(picture) is None:
        raise InvalidArgument(f"{named} is not a PNG, JPEG or WebP picture.")
    return picture
