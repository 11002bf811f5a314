ALTER TABLE accounts ADD COLUMN request_days INTEGER DEFAULT '45' NOT NULL

ALTER TABLE accounts ADD COLUMN responses_reason TEXT

ALTER TABLE accounts ADD COLUMN responses_until BIGINT

ALTER TABLE verification_evidence ADD COLUMN whole_until BIGINT

CREATE INDEX ix_zip_attempts_subject_index ON zip_attempts (subject_index)

CREATE INDEX ix_verification_evidence_whole_until ON verification_evidence (whole_until)
WHERE whole_until IS NOT NULL
