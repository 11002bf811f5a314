"""One ZIP file with everything that a stranger needs, the same bytes each time.

The container has one form only: no compression, no dates, no extra fields, the files in a fixed
order. A reader writes what it has read again and compares, so not a byte of it is left to chance.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

SUMS: Final = "SHA256SUMS"
CONTAINER_BYTES_MAX: Final = rules.BYTES_MAX


def sums(files: Mapping[str, bytes]) -> bytes:
    """The content of SHA256SUMS for these files."""
    return "".join(f"{sha256(data).hexdigest()}  {n}\n" for n, data in files.items()).encode()


write_container: Final = rules.write_zip
"""A ZIP file of these files, in their order."""
read_container: Final = by_the_rules(rules.read_zip)
"""The files of a ZIP file that `write_container` could have written."""
read_disclosures: Final = by_the_rules(rules.read_disclosures)
"""The encoded disclosures in a file of this name: the canonical JSON of an array of strings."""
