"""Every field of Onfido's answers, and what it is to us.

`run`, `task` and `report` are the three answers; `[]` stands for each item of a list; `.*` at the
end for everything below. A task's `output` is a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from countersign.identity.fields import Use

FIELDS: Final[Mapping[str, Use]] = {
    "run.id": Use.CHECKED,
    "run.status": Use.CHECKED,
    "run.customer_user_id": Use.CHECKED,
    "run.created_at": Use.OPTIONAL,
    # Moves with every change, also long after the decision.
    "run.updated_at": Use.IGNORED,
    "run.reasons[]": Use.OPTIONAL,
    "run.error.type": Use.OPTIONAL,
    # Whatever the workflow's author put there: only declared members are read.
    "run.output": Use.OPTIONAL,
    # Free text, which could name anything.
    "run.error.message": Use.IGNORED,
    # Links, labels and the other ends of references.
    "run.applicant_id": Use.IGNORED,
    "run.workflow_id": Use.IGNORED,
    "run.workflow_version_id": Use.IGNORED,
    "run.tags[]": Use.IGNORED,
    "run.link.*": Use.IGNORED,
    "run.dashboard_url": Use.IGNORED,
    "run.sdk_token": Use.IGNORED,
    "task.id": Use.CHECKED,
    "task.workflow_run_id": Use.CHECKED,
    "task.task_def_id": Use.CHECKED,
    "task.created_at": Use.OPTIONAL,
    "task.updated_at": Use.OPTIONAL,
    "task.output": Use.REQUIRED,
    "task.task_def_version": Use.IGNORED,
    # What went into the check, not what came of it.
    "task.input": Use.IGNORED,
    "report.id": Use.CHECKED,
    "report.name": Use.CHECKED,
    "report.status": Use.CHECKED,
    "report.result": Use.CHECKED,
    "report.sub_result": Use.CHECKED,
    "report.properties.date_of_birth": Use.REQUIRED,
    "report.properties.date_of_expiry": Use.REQUIRED,
    "report.properties.address_lines.postal_code": Use.REQUIRED,
    "report.properties.address_lines.country_code": Use.REQUIRED,
    "report.properties.address_lines.country": Use.OPTIONAL,
    "report.properties.address_lines.street_address": Use.OPTIONAL,
    "report.properties.address_lines.city": Use.OPTIONAL,
    "report.properties.address_lines.state": Use.OPTIONAL,
    "report.properties.first_name": Use.OPTIONAL,
    "report.properties.last_name": Use.OPTIONAL,
    # Into the fingerprint; the number is dropped then.
    "report.properties.document_numbers[].type": Use.OPTIONAL,
    "report.properties.document_numbers[].value": Use.OPTIONAL,
    "report.properties.document_type": Use.OPTIONAL,
    "report.properties.issuing_country": Use.OPTIONAL,
    "report.properties.issuing_state": Use.OPTIONAL,
    # The verdict of each part is kept as a check; why it came to it is not.
    "report.breakdown.*": Use.OPTIONAL,
    # The same facts again as the barcode, the chip or the reader has them: whether they agree is
    # in the breakdown.
    "report.properties.barcode[].*": Use.IGNORED,
    "report.properties.nfc.*": Use.IGNORED,
    "report.properties.extracted_data.*": Use.IGNORED,
    "report.properties.document_classification.*": Use.IGNORED,
    # Whatever else a document tells of a life, or of itself; `address` is the lines in one.
    "report.properties.personal_number": Use.IGNORED,
    "report.properties.middle_name": Use.IGNORED,
    "report.properties.gender": Use.IGNORED,
    "report.properties.nationality": Use.IGNORED,
    "report.properties.issuing_date": Use.IGNORED,
    "report.properties.valid_from": Use.IGNORED,
    "report.properties.categorisation": Use.IGNORED,
    "report.properties.mrz_line1": Use.IGNORED,
    "report.properties.mrz_line2": Use.IGNORED,
    "report.properties.mrz_line3": Use.IGNORED,
    "report.properties.address": Use.IGNORED,
    "report.properties.place_of_birth": Use.IGNORED,
    "report.properties.spouse_name": Use.IGNORED,
    "report.properties.widow_name": Use.IGNORED,
    "report.properties.alias_name": Use.IGNORED,
    "report.properties.issuing_authority": Use.IGNORED,
    "report.properties.remarks": Use.IGNORED,
    "report.properties.civil_state": Use.IGNORED,
    "report.properties.expatriation": Use.IGNORED,
    "report.properties.father_name": Use.IGNORED,
    "report.properties.mother_name": Use.IGNORED,
    "report.properties.religion": Use.IGNORED,
    "report.properties.type_of_permit": Use.IGNORED,
    "report.properties.version_number": Use.IGNORED,
    "report.properties.document_subtype": Use.IGNORED,
    "report.properties.profession": Use.IGNORED,
    "report.properties.security_document_number": Use.IGNORED,
    "report.properties.tax_number": Use.IGNORED,
    "report.properties.nist_identity_evidence_strength": Use.IGNORED,
    "report.properties.has_issuance_confirmation": Use.IGNORED,
    "report.properties.real_id_compliance": Use.IGNORED,
    "report.properties.security_tier": Use.IGNORED,
    "report.check_id": Use.IGNORED,
    "report.created_at": Use.IGNORED,
    "report.documents[].id": Use.IGNORED,
    "report.href": Use.IGNORED,
}
