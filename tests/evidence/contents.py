"""Reads a dossier back to what `write_dossier` takes."""

import json

from countersign_evidence.dossier import (
    NOTICE,
    PDF,
    POLICY,
    README,
    VERIFY_HTML,
    VERIFY_PY,
    DossierContents,
    RecordFiles,
    read_container,
)
from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules


def contents_of(data: bytes) -> DossierContents:
    """Digests are not checked. Raises EvidenceError if the files are not those of a dossier."""
    files = read_container(data)
    ids, stamps = by_the_rules(rules.check_names)(files)
    records = {}
    for id_ in ids:
        record, disclosures, proof = (files[f"records/{id_}{end}"] for end in rules.ENDINGS)
        by_the_rules(rules.read_disclosures)(disclosures, id_)
        records[id_] = RecordFiles(record, tuple(json.loads(disclosures)), proof)
    return DossierContents(
        records=records,
        notice=files.get(NOTICE),
        policy=files[POLICY],
        timestamps={name: files[name] for name in stamps},
        pdf=files[PDF],
        verify_py=files[VERIFY_PY],
        verify_html=files[VERIFY_HTML],
        readme=files[README],
    )
