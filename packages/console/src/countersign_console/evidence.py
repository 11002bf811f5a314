"""A dossier in the pages: checked in the browser; and the page that goes on top for counsel."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from typing import Any, Final, NamedTuple
from zipfile import ZipFile

from markupsafe import Markup

from countersign.server.console_host import PageReply
from countersign_console.visit import Refused, Visit
from countersign_evidence.dossier import VERIFY_HTML, VERIFY_PY, read_container, verifier
from countersign_evidence.verification import verify_file

ZIP: Final = "application/zip"
LOOKS: Final = frozenset({"cover", "certificate", "check"})
_RECORD: Final = re.compile(r"records/([a-z]+_[0-9a-z]+)\.json")
_VERIFIER: Final = re.compile(
    r"<main>\n<h1>.*?</h1>\n(?P<page>.*?)</main>\n"
    r".*?(?P<policies><script type=\"application/json\" id=\"policies\">.*?</script>)\n"
    r"<script>(?P<script>.*?)</script>",
    re.DOTALL,
)
"""The parts of the page at /verify: its text, the policies of the service, the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """A dossier as it was just served."""

    name: str
    data: bytes

    @property
    def digest(self) -> str:
        """The hex SHA-256 of the ZIP file."""
        return sha256(self.data).hexdigest()

    @property
    def url(self) -> str:
        """The file itself: a link that holds it can save it, without a second look at it."""
        return f"data:{ZIP};base64,{b64encode(self.data).decode()}"


async def show(visit: Visit, order: Any, look: str, reason: str) -> PageReply:  # noqa: ANN401 - JSON
    """The evidence of an order; the look at it is in the audit. Raises Refused."""
    name = "certificate" if look == "certificate" else "dossier"
    id_, data = await _served(visit, order, name, reason)
    if look == "certificate":
        return saved(data, "application/pdf", f"{id_}.pdf")
    dossier = Dossier(name=f"{id_}-dossier.zip", data=data)
    return await (_check(visit, dossier) if look == "check" else _cover(visit, order, dossier))


async def dossiers(visit: Visit, orders: Sequence[Any], reason: str) -> PageReply:
    """One ZIP file with the dossier of each order that has one, and a list of the others.

    Raises Refused.
    """
    packed, known = BytesIO(), [one for one in orders if one["ack_id"] or one["clearance_id"]]
    if not known:
        raise Refused(422, "none_ticked", visit.words["none_acknowledged"])
    left = "".join(f"{order['order_id']}\n" for order in orders if order not in known)
    with ZipFile(packed, "w") as target:
        if left:
            target.writestr("without-dossier.txt", left)
        for order in known:
            id_, data = await _served(visit, order, "dossier", reason)
            target.writestr(f"{id_}-dossier.zip", data)
    return saved(packed.getvalue(), ZIP, "dossiers.zip")


async def _served(visit: Visit, order: Any, name: str, reason: str) -> tuple[str, bytes]:  # noqa: ANN401 - JSON
    """The evidence of the order's acknowledgment, else of its decision, and the id of that."""
    noun, id_ = "acknowledgments", order["ack_id"]
    if not id_:
        noun, id_ = "clearances", order["clearance_id"]
    return id_, await visit.call("GET", f"/v1/{noun}/{id_}/{name}", reason=reason)


def saved(data: bytes, kind: str, name: str) -> PageReply:
    """A file for the browser to save."""
    named = ("content-disposition", f'attachment; filename="{name}"')
    return PageReply(
        body=data, headers=[("content-type", kind), named, ("cache-control", "no-store")]
    )


async def _check(visit: Visit, dossier: Dossier) -> PageReply:
    """The dossier with its own verifier, which checks it in the browser.

    It is the page at /verify of this service, with the service's own policies.
    """
    served = await visit.call("GET", "/verify")
    found = _VERIFIER.search(served.decode())
    if found is None:
        raise AssertionError("the page at /verify has another form")
    return visit.show(
        "check.html",
        visit.words["check_title"],
        script="check.js",
        verifier=found["script"],
        reach=f"'self' {visit.host.public_url}",
        back=visit.back(),
        dossier=dossier,
        verify_page=Markup(found["page"] + found["policies"]),  # noqa: S704 - of this service
    )


class Held(NamedTuple):
    """A file of a dossier, or the files of a record in it."""

    name: str
    what: str
    """The name of the text that describes it."""


async def _cover(visit: Visit, order: Any, dossier: Dossier) -> PageReply:  # noqa: ANN401 - JSON
    """A page to print, which goes on top of the dossier.

    About the evidence it repeats the printed verdict, and no more.
    """
    verdict = verify_file(dossier.data)
    lines = verdict.dossier.summary if verdict.dossier else verdict.summary
    records = verdict.dossier.records if verdict.dossier else ()
    digests = {name: sha256(verifier(name)).hexdigest() for name in (VERIFY_PY, VERIFY_HTML)}
    mode = "?mode=test" if visit.place.is_test else ""
    return visit.show(
        "cover.html",
        visit.words["cover_title"],
        order=order,
        back=visit.back(),
        named={
            f"cover_{name}": next(filter(None, (one.shown.get(name) for one in records)), None)
            for name in ("order_reference", "session_id")
        },
        dossier=dossier,
        verdict=lines,
        fingerprint=verdict.facts.get("key_fingerprint", ""),
        held=[*_held(read_container(dossier.data))],
        digests=digests,
        policy=f"{visit.host.public_url}/v1/log/policy{mode}",
    )


def _held(files: Mapping[str, bytes]) -> Iterator[Held]:
    """The content of a dossier in order: one line for the three files of a record."""
    for name, body in files.items():
        if found := _RECORD.fullmatch(name):
            yield Held(f"records/{found[1]}", f"part_{json.loads(body)['type']}")
        elif not name.startswith("records/"):
            kind = "timestamps" if name.startswith("timestamps/") else name
            yield Held(name, f"file_{kind}")
