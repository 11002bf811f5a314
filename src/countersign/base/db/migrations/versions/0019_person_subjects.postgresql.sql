CREATE TABLE accounts (
  id VARCHAR(40) NOT NULL,
  name VARCHAR(100) NOT NULL,
  created_at BIGINT NOT NULL,
  disabled_at BIGINT,
  closed_at BIGINT,
  evidence_years INTEGER,
  reviewers INTEGER DEFAULT '1' NOT NULL,
  CONSTRAINT pk_accounts PRIMARY KEY (id),
  CONSTRAINT uq_accounts_name UNIQUE (name)
);

CREATE TABLE acknowledgment_uses (
  ack_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_acknowledgment_uses_mode CHECK (mode IN ('test', 'live')),
  cbid VARCHAR(40),
  cbid_index BYTEA NOT NULL,
  order_index BYTEA,
  clearance_id VARCHAR(40),
  closed_at BIGINT,
  CONSTRAINT pk_acknowledgment_uses PRIMARY KEY (ack_id)
);

CREATE INDEX ix_acknowledgment_uses_cbid ON acknowledgment_uses (cbid);

CREATE TABLE anchors (
  log_id INTEGER NOT NULL,
  size BIGINT NOT NULL,
  kind VARCHAR(20) NOT NULL,
  name VARCHAR(300) NOT NULL,
  at BIGINT NOT NULL,
  body BYTEA NOT NULL,
  digest VARCHAR(64) NOT NULL,
  renews VARCHAR(64),
  ends_at BIGINT,
  CONSTRAINT pk_anchors PRIMARY KEY (log_id, size, kind, name, at)
);

CREATE INDEX ix_anchors_ends_at ON anchors (ends_at);

CREATE INDEX ix_anchors_renews ON anchors (renews);

CREATE TABLE audit_log (
  id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  actor VARCHAR(100) NOT NULL,
  action VARCHAR(40) NOT NULL,
  subject VARCHAR(80) NOT NULL,
  details TEXT NOT NULL,
  CONSTRAINT pk_audit_log PRIMARY KEY (id)
);

CREATE INDEX ix_audit_log_subject ON audit_log (subject);

CREATE TABLE buyer_documents (
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_buyer_documents_mode CHECK (mode IN ('test', 'live')),
  fingerprint BYTEA NOT NULL,
  cbid VARCHAR(40) NOT NULL,
  CONSTRAINT pk_buyer_documents PRIMARY KEY (mode, fingerprint)
);

CREATE INDEX ix_buyer_documents_cbid ON buyer_documents (cbid);

CREATE TABLE checkout_sessions (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_checkout_sessions_mode CHECK (mode IN ('test', 'live')),
  revision INTEGER NOT NULL,
  token_digest BYTEA NOT NULL,
  session_index BYTEA NOT NULL,
  cbid_index BYTEA,
  status VARCHAR(10) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  ended_at BIGINT,
  expiry_due_at BIGINT,
  ack_id VARCHAR(40),
  clearance_id VARCHAR(40),
  check_revision INTEGER NOT NULL,
  consents INTEGER NOT NULL,
  content BYTEA,
  reference_index BYTEA,
  CONSTRAINT pk_checkout_sessions PRIMARY KEY (id),
  CONSTRAINT uq_checkout_sessions_token_digest UNIQUE (token_digest)
);

CREATE INDEX ix_checkout_sessions_account_id_mode_id ON checkout_sessions (account_id, mode, id);

CREATE INDEX ix_checkout_sessions_ack_id ON checkout_sessions (ack_id);

CREATE INDEX ix_checkout_sessions_cbid_index ON checkout_sessions (cbid_index);

CREATE INDEX ix_checkout_sessions_ended_at ON checkout_sessions (ended_at);

CREATE INDEX ix_checkout_sessions_expiry_due_at ON checkout_sessions (expiry_due_at);

CREATE INDEX ix_checkout_sessions_session_index ON checkout_sessions (session_index);

CREATE TABLE checkpoints (
  log_id INTEGER NOT NULL,
  size BIGINT NOT NULL,
  root BYTEA NOT NULL,
  note BYTEA NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_checkpoints PRIMARY KEY (log_id, size)
);

CREATE TABLE clearance_keys (
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_clearance_keys_mode CHECK (mode IN ('test', 'live')),
  number INTEGER NOT NULL,
  kid VARCHAR(60) NOT NULL,
  public_key BYTEA NOT NULL,
  seed BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  signs_from BIGINT NOT NULL,
  CONSTRAINT pk_clearance_keys PRIMARY KEY (mode, number),
  CONSTRAINT uq_clearance_keys_kid UNIQUE (kid)
);

CREATE TABLE clearances (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_clearances_mode CHECK (mode IN ('test', 'live')),
  ack_id VARCHAR(40),
  kid VARCHAR(60),
  expires_at BIGINT,
  at BIGINT NOT NULL,
  CONSTRAINT pk_clearances PRIMARY KEY (id)
);

CREATE INDEX ix_clearances_ack_id ON clearances (ack_id);

CREATE TABLE data_keys (
  id VARCHAR(40) NOT NULL,
  scope VARCHAR(40) NOT NULL,
  month INTEGER NOT NULL,
  wrapped BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_data_keys PRIMARY KEY (id),
  CONSTRAINT uq_data_keys_scope UNIQUE (scope, month)
);

CREATE TABLE deployment (
  name VARCHAR(40) NOT NULL,
  value BYTEA NOT NULL,
  CONSTRAINT pk_deployment PRIMARY KEY (name)
);

CREATE TABLE deployment_records (
  id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_deployment_records_mode CHECK (mode IN ('test', 'live')),
  type VARCHAR(20) NOT NULL,
  at BIGINT NOT NULL,
  digest BYTEA NOT NULL,
  body BYTEA NOT NULL,
  CONSTRAINT pk_deployment_records PRIMARY KEY (id)
);

CREATE TABLE disclosures (
  record_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_disclosures_mode CHECK (mode IN ('test', 'live')),
  session_index BYTEA,
  cbid_index BYTEA,
  payload BYTEA NOT NULL,
  reference_index BYTEA,
  CONSTRAINT pk_disclosures PRIMARY KEY (record_id)
);

CREATE INDEX ix_disclosures_cbid_index ON disclosures (cbid_index);

CREATE INDEX ix_disclosures_session_index ON disclosures (session_index);

CREATE TABLE erasure_requests (
  cbid VARCHAR(40) NOT NULL,
  requested_at BIGINT NOT NULL,
  CONSTRAINT pk_erasure_requests PRIMARY KEY (cbid)
);

CREATE TABLE erasures (
  record_id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  erasure_id VARCHAR(40) NOT NULL,
  CONSTRAINT pk_erasures PRIMARY KEY (record_id)
);

CREATE TABLE events (
  seq BIGSERIAL NOT NULL,
  tx BIGINT NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_events_mode CHECK (mode IN ('test', 'live')),
  type VARCHAR(30) NOT NULL,
  object_id VARCHAR(64) NOT NULL,
  version VARCHAR(64),
  at BIGINT NOT NULL,
  triggered BOOLEAN DEFAULT false NOT NULL,
  reasons TEXT,
  first_seq BIGINT,
  objects TEXT,
  CONSTRAINT pk_events PRIMARY KEY (seq)
);

CREATE INDEX ix_events_account_id_mode_at ON events (account_id, mode, at);

CREATE INDEX ix_events_account_id_mode_tx_seq ON events (account_id, mode, tx, seq);

CREATE TABLE fulfilments (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_fulfilments_mode CHECK (mode IN ('test', 'live')),
  clearance_id VARCHAR(40) NOT NULL,
  ack_id VARCHAR(40) NOT NULL,
  adult_signature BOOLEAN NOT NULL,
  closes BOOLEAN NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_fulfilments PRIMARY KEY (id)
);

CREATE INDEX ix_fulfilments_ack_id ON fulfilments (ack_id);

CREATE TABLE idempotency_keys (
  slot BYTEA NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_idempotency_keys_mode CHECK (mode IN ('test', 'live')),
  fingerprint BYTEA NOT NULL,
  response BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  about VARCHAR(40),
  CONSTRAINT pk_idempotency_keys PRIMARY KEY (slot)
);

CREATE INDEX ix_idempotency_keys_expires_at ON idempotency_keys (expires_at);

CREATE TABLE legal_holds (
  id VARCHAR(40) NOT NULL,
  subject VARCHAR(80) NOT NULL,
  reason TEXT NOT NULL,
  placed_at BIGINT NOT NULL,
  released_at BIGINT,
  matter_id VARCHAR(40),
  CONSTRAINT pk_legal_holds PRIMARY KEY (id)
);

CREATE INDEX ix_legal_holds_subject ON legal_holds (subject);

CREATE TABLE log_entries (
  log_id INTEGER NOT NULL,
  leaf_index BIGINT NOT NULL,
  record_id VARCHAR(40) NOT NULL,
  digest BYTEA NOT NULL,
  CONSTRAINT pk_log_entries PRIMARY KEY (log_id, leaf_index),
  CONSTRAINT uq_log_entries_record_id UNIQUE (record_id)
);

CREATE TABLE log_pending (
  record_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_log_pending_mode CHECK (mode IN ('test', 'live')),
  digest BYTEA NOT NULL,
  CONSTRAINT pk_log_pending PRIMARY KEY (record_id)
);

CREATE TABLE log_rosters (
  number INTEGER NOT NULL,
  threshold INTEGER NOT NULL,
  approvers TEXT NOT NULL,
  proposal_id VARCHAR(40) NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_log_rosters PRIMARY KEY (number)
);

CREATE TABLE log_tiles (
  log_id INTEGER NOT NULL,
  level INTEGER NOT NULL,
  tile_index BIGINT NOT NULL,
  hashes BYTEA NOT NULL,
  root BYTEA NOT NULL,
  CONSTRAINT pk_log_tiles PRIMARY KEY (log_id, level, tile_index)
);

CREATE TABLE logs (
  id INTEGER NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_logs_mode CHECK (mode IN ('test', 'live')),
  epoch INTEGER NOT NULL,
  origin VARCHAR(300) NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_logs PRIMARY KEY (id),
  CONSTRAINT uq_logs_mode UNIQUE (mode, epoch),
  CONSTRAINT uq_logs_origin UNIQUE (origin)
);

CREATE TABLE notice_versions (
  notice_id VARCHAR(64) NOT NULL,
  version VARCHAR(64) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  body BYTEA NOT NULL,
  CONSTRAINT pk_notice_versions PRIMARY KEY (notice_id, version)
);

CREATE TABLE parties (
  scope VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_parties_mode CHECK (mode IN ('test', 'live')),
  type VARCHAR(20) NOT NULL,
  number INTEGER NOT NULL,
  record_id VARCHAR(40) NOT NULL,
  digest BYTEA NOT NULL,
  CONSTRAINT pk_parties PRIMARY KEY (scope, mode, type, number),
  CONSTRAINT uq_parties_record_id UNIQUE (record_id),
  CONSTRAINT uq_parties_digest UNIQUE (digest)
);

CREATE TABLE provider_sessions (
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_provider_sessions_mode CHECK (mode IN ('test', 'live')),
  session_index BYTEA NOT NULL,
  cbid VARCHAR(40) NOT NULL,
  reference_index BYTEA,
  verified_at BIGINT,
  CONSTRAINT pk_provider_sessions PRIMARY KEY (mode, session_index)
);

CREATE INDEX ix_provider_sessions_cbid ON provider_sessions (cbid);

CREATE TABLE remembered (
  id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_remembered_mode CHECK (mode IN ('test', 'live')),
  cbid VARCHAR(40) NOT NULL,
  kind VARCHAR(10) NOT NULL,
  lookup BYTEA NOT NULL,
  public_key BYTEA,
  sign_count BIGINT,
  user_handle BYTEA,
  signed_out_at BIGINT,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_remembered PRIMARY KEY (id),
  CONSTRAINT uq_remembered_lookup UNIQUE (lookup)
);

CREATE INDEX ix_remembered_cbid ON remembered (cbid);

CREATE INDEX ix_remembered_expires_at ON remembered (expires_at);

CREATE TABLE remembered_uses (
  id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_remembered_uses_mode CHECK (mode IN ('test', 'live')),
  cbid VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  kind VARCHAR(10) NOT NULL,
  verified BOOLEAN NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_remembered_uses PRIMARY KEY (id)
);

CREATE INDEX ix_remembered_uses_at ON remembered_uses (at);

CREATE INDEX ix_remembered_uses_cbid ON remembered_uses (cbid);

CREATE TABLE shred_keys (
  record_id VARCHAR(40) NOT NULL,
  key BYTEA NOT NULL,
  CONSTRAINT pk_shred_keys PRIMARY KEY (record_id)
);

CREATE TABLE webhook_attempts (
  endpoint_id VARCHAR(40) NOT NULL,
  event_seq BIGINT NOT NULL,
  number INTEGER NOT NULL,
  at BIGINT NOT NULL,
  duration_ms INTEGER NOT NULL,
  outcome VARCHAR(20) NOT NULL,
  status INTEGER,
  CONSTRAINT pk_webhook_attempts PRIMARY KEY (endpoint_id, event_seq, number)
);

CREATE TABLE webhook_deliveries (
  endpoint_id VARCHAR(40) NOT NULL,
  event_seq BIGINT NOT NULL,
  status VARCHAR(10) NOT NULL,
  attempts INTEGER NOT NULL,
  step INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  due_at BIGINT,
  CONSTRAINT pk_webhook_deliveries PRIMARY KEY (endpoint_id, event_seq)
);

CREATE INDEX ix_webhook_deliveries_endpoint_id_due_at ON webhook_deliveries (endpoint_id, due_at);

CREATE TABLE account_brands (
  account_id VARCHAR(40) NOT NULL,
  name VARCHAR(100),
  color VARCHAR(7),
  logo BYTEA,
  logo_digest VARCHAR(64),
  contact_url VARCHAR(2048),
  privacy_url VARCHAR(2048),
  support_email VARCHAR(254),
  font VARCHAR(8),
  initials VARCHAR(16),
  CONSTRAINT pk_account_brands PRIMARY KEY (account_id),
  CONSTRAINT fk_account_brands_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE account_origins (
  account_id VARCHAR(40) NOT NULL,
  origin VARCHAR(300) NOT NULL,
  added_at BIGINT NOT NULL,
  CONSTRAINT pk_account_origins PRIMARY KEY (account_id, origin),
  CONSTRAINT fk_account_origins_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE api_keys (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_api_keys_mode CHECK (mode IN ('test', 'live')),
  kind VARCHAR(2) NOT NULL,
  digest BYTEA NOT NULL,
  hint VARCHAR(40) NOT NULL,
  scopes TEXT,
  created_at BIGINT NOT NULL,
  lifetime_seconds BIGINT,
  expires_at BIGINT,
  revoked_at BIGINT,
  last_used_at BIGINT,
  replaces VARCHAR(40),
  CONSTRAINT pk_api_keys PRIMARY KEY (id),
  CONSTRAINT fk_api_keys_account_id FOREIGN KEY(account_id) REFERENCES accounts (id),
  CONSTRAINT uq_api_keys_digest UNIQUE (digest),
  CONSTRAINT fk_api_keys_replaces FOREIGN KEY(replaces) REFERENCES api_keys (id)
);

CREATE INDEX ix_api_keys_account_id ON api_keys (account_id);

CREATE TABLE buyers (
  cbid VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_buyers_mode CHECK (mode IN ('test', 'live')),
  status VARCHAR(20) NOT NULL,
  reasons TEXT NOT NULL,
  verified_at BIGINT,
  expires_at BIGINT,
  simulated BOOLEAN NOT NULL,
  proofs TEXT NOT NULL,
  same_as VARCHAR(40),
  expiry_due_at BIGINT,
  reminder_due_at BIGINT,
  attempted_by VARCHAR(40),
  dismissed VARCHAR(40),
  proposal TEXT,
  CONSTRAINT pk_buyers PRIMARY KEY (cbid),
  CONSTRAINT fk_buyers_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_buyers_account_id_mode_expiry_due_at ON buyers (account_id, mode, expiry_due_at);

CREATE INDEX ix_buyers_account_id_mode_reminder_due_at ON buyers (account_id, mode, reminder_due_at);

CREATE INDEX ix_buyers_attempted_by_status ON buyers (attempted_by, status);

CREATE INDEX ix_buyers_expiry_due_at ON buyers (expiry_due_at);

CREATE INDEX ix_buyers_reminder_due_at ON buyers (reminder_due_at);

CREATE INDEX ix_buyers_same_as ON buyers (same_as);

CREATE TABLE clearance_settings (
  account_id VARCHAR(40) NOT NULL,
  acknowledgment_max_age INTEGER NOT NULL,
  lifetime INTEGER NOT NULL,
  product_class_required BOOLEAN NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_clearance_settings PRIMARY KEY (account_id),
  CONSTRAINT fk_clearance_settings_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE further_providers (
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_further_providers_mode CHECK (mode IN ('test', 'live')),
  provider VARCHAR(20) NOT NULL,
  revision INTEGER NOT NULL,
  base_url TEXT,
  credentials BYTEA NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_further_providers PRIMARY KEY (account_id, mode, provider),
  CONSTRAINT fk_further_providers_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE log_heads (
  log_id INTEGER NOT NULL,
  size BIGINT NOT NULL,
  root BYTEA NOT NULL,
  at BIGINT NOT NULL,
  keys_revision INTEGER NOT NULL,
  CONSTRAINT pk_log_heads PRIMARY KEY (log_id),
  CONSTRAINT fk_log_heads_log_id FOREIGN KEY(log_id) REFERENCES logs (id)
);

CREATE TABLE log_keys (
  vkey VARCHAR(2100) NOT NULL,
  log_id INTEGER NOT NULL,
  seed BYTEA,
  token_id BYTEA,
  created_at BIGINT NOT NULL,
  retires_at BIGINT,
  CONSTRAINT pk_log_keys PRIMARY KEY (vkey),
  CONSTRAINT fk_log_keys_log_id FOREIGN KEY(log_id) REFERENCES logs (id)
);

CREATE INDEX ix_log_keys_log_id ON log_keys (log_id);

CREATE TABLE log_proposals (
  id VARCHAR(40) NOT NULL,
  log_id INTEGER NOT NULL,
  text BYTEA NOT NULL,
  keys BYTEA NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_log_proposals PRIMARY KEY (id),
  CONSTRAINT fk_log_proposals_log_id FOREIGN KEY(log_id) REFERENCES logs (id)
);

CREATE TABLE notice_events (
  id VARCHAR(40) NOT NULL,
  notice_id VARCHAR(64) NOT NULL,
  version VARCHAR(64) NOT NULL,
  type VARCHAR(20) NOT NULL,
  at BIGINT NOT NULL,
  details TEXT NOT NULL,
  CONSTRAINT pk_notice_events PRIMARY KEY (id),
  CONSTRAINT fk_notice_events_notice_id FOREIGN KEY(notice_id, version) REFERENCES notice_versions (notice_id, version)
);

CREATE TABLE pending_sessions (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_pending_sessions_mode CHECK (mode IN ('test', 'live')),
  session_index BYTEA NOT NULL,
  asked_index BYTEA NOT NULL,
  cbid VARCHAR(40),
  request BYTEA NOT NULL,
  polls INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  next_poll_at BIGINT NOT NULL,
  CONSTRAINT pk_pending_sessions PRIMARY KEY (id),
  CONSTRAINT uq_pending_sessions_account_id UNIQUE (account_id, mode, asked_index),
  CONSTRAINT fk_pending_sessions_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_pending_sessions_cbid ON pending_sessions (cbid);

CREATE INDEX ix_pending_sessions_next_poll_at ON pending_sessions (next_poll_at);

CREATE INDEX ix_pending_sessions_session_index ON pending_sessions (session_index);

CREATE TABLE provider_messages (
  account_id VARCHAR(40) NOT NULL,
  message_index BYTEA NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_provider_messages PRIMARY KEY (account_id, message_index),
  CONSTRAINT fk_provider_messages_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_provider_messages_at ON provider_messages (at);

CREATE TABLE records (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_records_mode CHECK (mode IN ('test', 'live')),
  type VARCHAR(20) NOT NULL,
  notice_id VARCHAR(64),
  at BIGINT NOT NULL,
  digest BYTEA NOT NULL,
  body BYTEA NOT NULL,
  CONSTRAINT pk_records PRIMARY KEY (id),
  CONSTRAINT fk_records_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_records_account_id_mode_type_id ON records (account_id, mode, type, id);

CREATE TABLE started_checks (
  reference VARCHAR(40) NOT NULL,
  attempt INTEGER NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_started_checks_mode CHECK (mode IN ('test', 'live')),
  provider VARCHAR(20) NOT NULL,
  session_index BYTEA NOT NULL,
  zip_index BYTEA NOT NULL,
  revision INTEGER NOT NULL,
  cbid VARCHAR(40),
  verification_id VARCHAR(40),
  status VARCHAR(20),
  reasons TEXT,
  started_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_started_checks PRIMARY KEY (reference, attempt, session_index),
  CONSTRAINT uq_started_checks_account_id UNIQUE (account_id, mode, session_index),
  CONSTRAINT fk_started_checks_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_started_checks_cbid ON started_checks (cbid);

CREATE INDEX ix_started_checks_started_at ON started_checks (started_at);

CREATE TABLE test_clocks (
  account_id VARCHAR(40) NOT NULL,
  ahead_ms BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_test_clocks PRIMARY KEY (account_id),
  CONSTRAINT fk_test_clocks_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE test_faults (
  account_id VARCHAR(40) NOT NULL,
  fault VARCHAR(30) NOT NULL,
  calls_left INTEGER,
  delay_ms INTEGER NOT NULL,
  planned_at BIGINT NOT NULL,
  CONSTRAINT pk_test_faults PRIMARY KEY (account_id),
  CONSTRAINT fk_test_faults_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE verification_settings (
  account_id VARCHAR(40) NOT NULL,
  revision INTEGER NOT NULL,
  provider VARCHAR(20) NOT NULL,
  base_url TEXT,
  rules TEXT NOT NULL,
  credentials BYTEA NOT NULL,
  changed_at BIGINT NOT NULL,
  CONSTRAINT pk_verification_settings PRIMARY KEY (account_id),
  CONSTRAINT fk_verification_settings_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE TABLE webhook_endpoints (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_webhook_endpoints_mode CHECK (mode IN ('test', 'live')),
  url TEXT NOT NULL,
  description TEXT NOT NULL,
  event_types TEXT,
  created_at BIGINT NOT NULL,
  disabled_at BIGINT,
  disabled_reason VARCHAR(20),
  deleted_at BIGINT,
  cursor_tx BIGINT NOT NULL,
  cursor_seq BIGINT NOT NULL,
  recovered_at BIGINT,
  CONSTRAINT pk_webhook_endpoints PRIMARY KEY (id),
  CONSTRAINT fk_webhook_endpoints_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_webhook_endpoints_account_id_mode ON webhook_endpoints (account_id, mode);

CREATE TABLE zip_attempts (
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_zip_attempts_mode CHECK (mode IN ('test', 'live')),
  subject_index BYTEA NOT NULL,
  zip_index BYTEA NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT uq_zip_attempts_account_id UNIQUE (account_id, mode, subject_index, zip_index),
  CONSTRAINT fk_zip_attempts_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_zip_attempts_at ON zip_attempts (at);

CREATE TABLE log_approvals (
  proposal_id VARCHAR(40) NOT NULL,
  approver VARCHAR(400) NOT NULL,
  line BYTEA NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_log_approvals PRIMARY KEY (proposal_id, approver),
  CONSTRAINT fk_log_approvals_proposal_id FOREIGN KEY(proposal_id) REFERENCES log_proposals (id)
);

CREATE TABLE verification_evidence (
  record_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_verification_evidence_mode CHECK (mode IN ('test', 'live')),
  payload BYTEA NOT NULL,
  CONSTRAINT pk_verification_evidence PRIMARY KEY (record_id),
  CONSTRAINT fk_verification_evidence_record_id FOREIGN KEY(record_id) REFERENCES records (id)
);

CREATE TABLE verifications (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_verifications_mode CHECK (mode IN ('test', 'live')),
  cbid VARCHAR(40) NOT NULL,
  provider VARCHAR(20) NOT NULL,
  subject_index BYTEA,
  zip_index BYTEA,
  status VARCHAR(20) NOT NULL,
  reasons TEXT NOT NULL,
  at BIGINT NOT NULL,
  session_index BYTEA,
  CONSTRAINT pk_verifications PRIMARY KEY (id),
  CONSTRAINT fk_verifications_account_id FOREIGN KEY(account_id) REFERENCES accounts (id),
  CONSTRAINT fk_verifications_cbid FOREIGN KEY(cbid) REFERENCES buyers (cbid)
);

CREATE INDEX ix_verifications_cbid ON verifications (cbid);

CREATE TABLE webhook_secrets (
  id VARCHAR(40) NOT NULL,
  endpoint_id VARCHAR(40) NOT NULL,
  public_key VARCHAR(60) NOT NULL,
  sealed BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  CONSTRAINT pk_webhook_secrets PRIMARY KEY (id),
  CONSTRAINT fk_webhook_secrets_endpoint_id FOREIGN KEY(endpoint_id) REFERENCES webhook_endpoints (id)
);

CREATE INDEX ix_webhook_secrets_endpoint_id ON webhook_secrets (endpoint_id);

CREATE FUNCTION records_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE stays boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT
NOT EXISTS (SELECT 1 FROM %1$I.ended_records WHERE record_id = $1)
OR EXISTS (SELECT 1 FROM %1$I.disclosures WHERE record_id = $1)
', TG_TABLE_SCHEMA)
      INTO stays USING OLD.id;
    IF NOT stays THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'records is append-only';
END $$;

CREATE TRIGGER records_no_change BEFORE UPDATE OR DELETE ON records FOR EACH ROW EXECUTE FUNCTION records_append_only();

CREATE TRIGGER records_no_truncate BEFORE TRUNCATE ON records FOR EACH STATEMENT EXECUTE FUNCTION records_append_only();

ALTER TABLE records ENABLE ALWAYS TRIGGER records_no_change;

ALTER TABLE records ENABLE ALWAYS TRIGGER records_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON records FROM PUBLIC;

CREATE FUNCTION notice_versions_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'notice_versions is append-only'; END $$;

CREATE TRIGGER notice_versions_no_change BEFORE UPDATE OR DELETE ON notice_versions FOR EACH ROW EXECUTE FUNCTION notice_versions_append_only();

CREATE TRIGGER notice_versions_no_truncate BEFORE TRUNCATE ON notice_versions FOR EACH STATEMENT EXECUTE FUNCTION notice_versions_append_only();

ALTER TABLE notice_versions ENABLE ALWAYS TRIGGER notice_versions_no_change;

ALTER TABLE notice_versions ENABLE ALWAYS TRIGGER notice_versions_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON notice_versions FROM PUBLIC;

CREATE FUNCTION notice_events_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'notice_events is append-only'; END $$;

CREATE TRIGGER notice_events_no_change BEFORE UPDATE OR DELETE ON notice_events FOR EACH ROW EXECUTE FUNCTION notice_events_append_only();

CREATE TRIGGER notice_events_no_truncate BEFORE TRUNCATE ON notice_events FOR EACH STATEMENT EXECUTE FUNCTION notice_events_append_only();

ALTER TABLE notice_events ENABLE ALWAYS TRIGGER notice_events_no_change;

ALTER TABLE notice_events ENABLE ALWAYS TRIGGER notice_events_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON notice_events FROM PUBLIC;

CREATE FUNCTION deployment_records_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'deployment_records is append-only'; END $$;

CREATE TRIGGER deployment_records_no_change BEFORE UPDATE OR DELETE ON deployment_records FOR EACH ROW EXECUTE FUNCTION deployment_records_append_only();

CREATE TRIGGER deployment_records_no_truncate BEFORE TRUNCATE ON deployment_records FOR EACH STATEMENT EXECUTE FUNCTION deployment_records_append_only();

ALTER TABLE deployment_records ENABLE ALWAYS TRIGGER deployment_records_no_change;

ALTER TABLE deployment_records ENABLE ALWAYS TRIGGER deployment_records_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON deployment_records FROM PUBLIC;

CREATE FUNCTION logs_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'logs is append-only'; END $$;

CREATE TRIGGER logs_no_change BEFORE UPDATE OR DELETE ON logs FOR EACH ROW EXECUTE FUNCTION logs_append_only();

CREATE TRIGGER logs_no_truncate BEFORE TRUNCATE ON logs FOR EACH STATEMENT EXECUTE FUNCTION logs_append_only();

ALTER TABLE logs ENABLE ALWAYS TRIGGER logs_no_change;

ALTER TABLE logs ENABLE ALWAYS TRIGGER logs_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON logs FROM PUBLIC;

CREATE FUNCTION log_entries_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'log_entries is append-only'; END $$;

CREATE TRIGGER log_entries_no_change BEFORE UPDATE OR DELETE ON log_entries FOR EACH ROW EXECUTE FUNCTION log_entries_append_only();

CREATE TRIGGER log_entries_no_truncate BEFORE TRUNCATE ON log_entries FOR EACH STATEMENT EXECUTE FUNCTION log_entries_append_only();

ALTER TABLE log_entries ENABLE ALWAYS TRIGGER log_entries_no_change;

ALTER TABLE log_entries ENABLE ALWAYS TRIGGER log_entries_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON log_entries FROM PUBLIC;

CREATE FUNCTION log_tiles_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'log_tiles is append-only'; END $$;

CREATE TRIGGER log_tiles_no_change BEFORE UPDATE OR DELETE ON log_tiles FOR EACH ROW EXECUTE FUNCTION log_tiles_append_only();

CREATE TRIGGER log_tiles_no_truncate BEFORE TRUNCATE ON log_tiles FOR EACH STATEMENT EXECUTE FUNCTION log_tiles_append_only();

ALTER TABLE log_tiles ENABLE ALWAYS TRIGGER log_tiles_no_change;

ALTER TABLE log_tiles ENABLE ALWAYS TRIGGER log_tiles_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON log_tiles FROM PUBLIC;

CREATE FUNCTION checkpoints_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE stays boolean;
BEGIN
  IF TG_OP = 'DELETE' THEN
    EXECUTE format('SELECT
$3 > -86400000
  + (SELECT at FROM %1$I.checkpoints WHERE log_id = $1 ORDER BY size DESC LIMIT 1)
OR EXISTS (SELECT 1 FROM %1$I.anchors WHERE log_id = $1 AND size = $2)
OR EXISTS (SELECT 1 FROM %1$I.log_keys AS k, %1$I.checkpoints AS n
  WHERE k.log_id = $1 AND n.log_id = $1
  AND n.size = (SELECT min(size) FROM %1$I.checkpoints WHERE log_id = $1 AND size > $2)
  AND (k.created_at BETWEEN $3 - 120000 AND n.at + 120000
  OR k.retires_at BETWEEN $3 - 120000 AND n.at + 120000))
', TG_TABLE_SCHEMA)
      INTO stays USING OLD.log_id, OLD.size, OLD.at;
    IF NOT stays THEN RETURN OLD; END IF;
  END IF;
  RAISE EXCEPTION 'checkpoints is append-only';
END $$;

CREATE TRIGGER checkpoints_no_change BEFORE UPDATE OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION checkpoints_append_only();

CREATE TRIGGER checkpoints_no_truncate BEFORE TRUNCATE ON checkpoints FOR EACH STATEMENT EXECUTE FUNCTION checkpoints_append_only();

ALTER TABLE checkpoints ENABLE ALWAYS TRIGGER checkpoints_no_change;

ALTER TABLE checkpoints ENABLE ALWAYS TRIGGER checkpoints_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON checkpoints FROM PUBLIC;

CREATE FUNCTION anchors_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'anchors is append-only'; END $$;

CREATE TRIGGER anchors_no_change BEFORE UPDATE OR DELETE ON anchors FOR EACH ROW EXECUTE FUNCTION anchors_append_only();

CREATE TRIGGER anchors_no_truncate BEFORE TRUNCATE ON anchors FOR EACH STATEMENT EXECUTE FUNCTION anchors_append_only();

ALTER TABLE anchors ENABLE ALWAYS TRIGGER anchors_no_change;

ALTER TABLE anchors ENABLE ALWAYS TRIGGER anchors_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON anchors FROM PUBLIC;

CREATE FUNCTION log_rosters_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'log_rosters is append-only'; END $$;

CREATE TRIGGER log_rosters_no_change BEFORE UPDATE OR DELETE ON log_rosters FOR EACH ROW EXECUTE FUNCTION log_rosters_append_only();

CREATE TRIGGER log_rosters_no_truncate BEFORE TRUNCATE ON log_rosters FOR EACH STATEMENT EXECUTE FUNCTION log_rosters_append_only();

ALTER TABLE log_rosters ENABLE ALWAYS TRIGGER log_rosters_no_change;

ALTER TABLE log_rosters ENABLE ALWAYS TRIGGER log_rosters_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON log_rosters FROM PUBLIC;

CREATE FUNCTION log_proposals_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'log_proposals is append-only'; END $$;

CREATE TRIGGER log_proposals_no_change BEFORE UPDATE OR DELETE ON log_proposals FOR EACH ROW EXECUTE FUNCTION log_proposals_append_only();

CREATE TRIGGER log_proposals_no_truncate BEFORE TRUNCATE ON log_proposals FOR EACH STATEMENT EXECUTE FUNCTION log_proposals_append_only();

ALTER TABLE log_proposals ENABLE ALWAYS TRIGGER log_proposals_no_change;

ALTER TABLE log_proposals ENABLE ALWAYS TRIGGER log_proposals_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON log_proposals FROM PUBLIC;

CREATE FUNCTION log_approvals_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'log_approvals is append-only'; END $$;

CREATE TRIGGER log_approvals_no_change BEFORE UPDATE OR DELETE ON log_approvals FOR EACH ROW EXECUTE FUNCTION log_approvals_append_only();

CREATE TRIGGER log_approvals_no_truncate BEFORE TRUNCATE ON log_approvals FOR EACH STATEMENT EXECUTE FUNCTION log_approvals_append_only();

ALTER TABLE log_approvals ENABLE ALWAYS TRIGGER log_approvals_no_change;

ALTER TABLE log_approvals ENABLE ALWAYS TRIGGER log_approvals_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON log_approvals FROM PUBLIC;

CREATE FUNCTION erasures_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'erasures is append-only'; END $$;

CREATE TRIGGER erasures_no_change BEFORE UPDATE OR DELETE ON erasures FOR EACH ROW EXECUTE FUNCTION erasures_append_only();

CREATE TRIGGER erasures_no_truncate BEFORE TRUNCATE ON erasures FOR EACH STATEMENT EXECUTE FUNCTION erasures_append_only();

ALTER TABLE erasures ENABLE ALWAYS TRIGGER erasures_no_change;

ALTER TABLE erasures ENABLE ALWAYS TRIGGER erasures_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON erasures FROM PUBLIC;

CREATE FUNCTION audit_log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'audit_log is append-only'; END $$;

CREATE TRIGGER audit_log_no_change BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_append_only();

CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION audit_log_append_only();

ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_change;

ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON audit_log FROM PUBLIC;

CREATE FUNCTION parties_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'parties is append-only'; END $$;

CREATE TRIGGER parties_no_change BEFORE UPDATE OR DELETE ON parties FOR EACH ROW EXECUTE FUNCTION parties_append_only();

CREATE TRIGGER parties_no_truncate BEFORE TRUNCATE ON parties FOR EACH STATEMENT EXECUTE FUNCTION parties_append_only();

ALTER TABLE parties ENABLE ALWAYS TRIGGER parties_no_change;

ALTER TABLE parties ENABLE ALWAYS TRIGGER parties_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON parties FROM PUBLIC;

CREATE FUNCTION shred_keys_of_records() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE kept boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM %1$I.records WHERE id = $1)'
    ' AND NOT EXISTS (SELECT FROM %1$I.erasures WHERE record_id = $1)', TG_TABLE_SCHEMA)
    INTO kept USING OLD.record_id;
  IF kept THEN RAISE EXCEPTION 'the shred key of a record goes only with its erasure'; END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER shred_keys_of_records BEFORE DELETE ON shred_keys FOR EACH ROW EXECUTE FUNCTION shred_keys_of_records();

ALTER TABLE shred_keys ENABLE ALWAYS TRIGGER shred_keys_of_records;

CREATE INDEX ix_records_account_id_mode_type_notice_id_id ON records (account_id, mode, type, notice_id, id);

CREATE TABLE buyer_references (
  reference VARCHAR(40) NOT NULL,
  cbid VARCHAR(40) NOT NULL,
  CONSTRAINT pk_buyer_references PRIMARY KEY (reference)
);

CREATE INDEX ix_buyer_references_cbid ON buyer_references (cbid);

CREATE TABLE waiting_erasures (
  record_id VARCHAR(40) NOT NULL,
  reason VARCHAR(20) NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT pk_waiting_erasures PRIMARY KEY (record_id)
);

CREATE INDEX ix_idempotency_keys_about ON idempotency_keys (about) WHERE about IS NOT NULL;

CREATE INDEX ix_events_of_buyers ON events (object_id) WHERE substr(type, 1, 6) = 'buyer.';

ALTER SEQUENCE events_seq_seq INCREMENT BY 64;

SELECT setval('events_seq_seq', 65);

CREATE TABLE blind_recent (
  record_id VARCHAR(40) NOT NULL,
  session_index BYTEA,
  cbid_index BYTEA,
  reference_index BYTEA,
  CONSTRAINT pk_blind_recent PRIMARY KEY (record_id)
);

CREATE TABLE blind_runs (
  run INTEGER NOT NULL,
  "key" BYTEA NOT NULL,
  record_id VARCHAR(40) NOT NULL,
  CONSTRAINT pk_blind_runs PRIMARY KEY (run, "key", record_id)
);

CREATE UNLOGGED TABLE rate_shares (
  name BYTEA NOT NULL,
  empty_at BIGINT NOT NULL,
  granted INTEGER NOT NULL,
  CONSTRAINT pk_rate_shares PRIMARY KEY (name)
);

CREATE TABLE ended_records (
  record_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_ended_records_mode CHECK (mode IN ('test', 'live')),
  at BIGINT NOT NULL,
  CONSTRAINT pk_ended_records PRIMARY KEY (record_id)
);

CREATE FUNCTION ended_records_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'ended_records is append-only'; END $$;

CREATE TRIGGER ended_records_no_change BEFORE UPDATE OR DELETE ON ended_records FOR EACH ROW EXECUTE FUNCTION ended_records_append_only();

CREATE TRIGGER ended_records_no_truncate BEFORE TRUNCATE ON ended_records FOR EACH STATEMENT EXECUTE FUNCTION ended_records_append_only();

ALTER TABLE ended_records ENABLE ALWAYS TRIGGER ended_records_no_change;

ALTER TABLE ended_records ENABLE ALWAYS TRIGGER ended_records_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON ended_records FROM PUBLIC;

CREATE INDEX ix_disclosures_reference_index ON disclosures (reference_index) WHERE reference_index IS NOT NULL;

CREATE INDEX ix_checkout_sessions_reference_index ON checkout_sessions (reference_index) WHERE reference_index IS NOT NULL;

CREATE TABLE audit_chain (
  position BIGINT NOT NULL,
  entry_id VARCHAR(40) NOT NULL,
  salt BYTEA NOT NULL,
  digest BYTEA NOT NULL,
  CONSTRAINT pk_audit_chain PRIMARY KEY (position),
  CONSTRAINT uq_audit_chain_entry_id UNIQUE (entry_id)
);

CREATE TABLE people (
  id VARCHAR(40) NOT NULL,
  name VARCHAR(100) NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_people PRIMARY KEY (id)
);

CREATE TABLE person_grants (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40),
  role VARCHAR(12) NOT NULL,
  granted_at BIGINT NOT NULL,
  granted_by VARCHAR(100) NOT NULL,
  CONSTRAINT pk_person_grants PRIMARY KEY (id),
  CONSTRAINT uq_person_grants_person_id UNIQUE (person_id, account_id),
  CONSTRAINT fk_person_grants_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT fk_person_grants_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_person_grants_account_id ON person_grants (account_id);

CREATE UNIQUE INDEX ix_person_grants_person_id ON person_grants (person_id) WHERE account_id IS NULL;

CREATE TABLE person_links (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  kind VARCHAR(10) NOT NULL,
  digest BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_person_links PRIMARY KEY (id),
  CONSTRAINT uq_person_links_person_id UNIQUE (person_id),
  CONSTRAINT fk_person_links_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_links_digest UNIQUE (digest)
);

CREATE TABLE person_passkeys (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  lookup BYTEA NOT NULL,
  public_key BYTEA NOT NULL,
  sign_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  CONSTRAINT pk_person_passkeys PRIMARY KEY (id),
  CONSTRAINT fk_person_passkeys_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_passkeys_lookup UNIQUE (lookup)
);

CREATE INDEX ix_person_passkeys_person_id ON person_passkeys (person_id);

CREATE TABLE person_sessions (
  id VARCHAR(40) NOT NULL,
  person_id VARCHAR(40) NOT NULL,
  digest BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  passkey_at BIGINT NOT NULL,
  CONSTRAINT pk_person_sessions PRIMARY KEY (id),
  CONSTRAINT fk_person_sessions_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_sessions_digest UNIQUE (digest)
);

CREATE INDEX ix_person_sessions_person_id ON person_sessions (person_id);

CREATE FUNCTION audit_chain_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'audit_chain is append-only'; END $$;

CREATE TRIGGER audit_chain_no_change BEFORE UPDATE OR DELETE ON audit_chain FOR EACH ROW EXECUTE FUNCTION audit_chain_append_only();

CREATE TRIGGER audit_chain_no_truncate BEFORE TRUNCATE ON audit_chain FOR EACH STATEMENT EXECUTE FUNCTION audit_chain_append_only();

ALTER TABLE audit_chain ENABLE ALWAYS TRIGGER audit_chain_no_change;

ALTER TABLE audit_chain ENABLE ALWAYS TRIGGER audit_chain_no_truncate;

REVOKE UPDATE, DELETE, TRUNCATE ON audit_chain FROM PUBLIC;

CREATE TABLE matters (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL,
  name TEXT NOT NULL,
  opened_at BIGINT NOT NULL,
  closed_at BIGINT,
  CONSTRAINT pk_matters PRIMARY KEY (id),
  CONSTRAINT ck_matters_mode CHECK (mode IN ('test', 'live'))
);

CREATE TABLE copy_mails (
  id VARCHAR(40) NOT NULL,
  account_id VARCHAR(40) NOT NULL,
  mode VARCHAR(4) NOT NULL CONSTRAINT ck_copy_mails_mode CHECK (mode IN ('test', 'live')),
  checkout_session_id VARCHAR(40) NOT NULL,
  created_at BIGINT NOT NULL,
  locale VARCHAR(8) NOT NULL,
  address BYTEA,
  address_index BYTEA,
  due_at BIGINT,
  attempts INTEGER NOT NULL,
  unsure INTEGER NOT NULL,
  outcome VARCHAR(10),
  CONSTRAINT pk_copy_mails PRIMARY KEY (id),
  CONSTRAINT fk_copy_mails_account_id FOREIGN KEY(account_id) REFERENCES accounts (id)
);

CREATE INDEX ix_copy_mails_account_id_mode_created_at ON copy_mails (account_id, mode, created_at);

CREATE INDEX ix_copy_mails_address_index ON copy_mails (address_index) WHERE address_index IS NOT NULL;

CREATE INDEX ix_copy_mails_checkout_session_id ON copy_mails (checkout_session_id);

CREATE INDEX ix_copy_mails_due_at ON copy_mails (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX ix_events_of_day ON events (account_id, mode, type, at, triggered) WHERE substr(type, 1, 6) IN ('buyer.', 'checko');

CREATE INDEX ix_clearances_refused ON clearances (account_id, mode, at, kid) WHERE kid IS NULL;

CREATE INDEX ix_checkout_sessions_open ON checkout_sessions (account_id, mode, expiry_due_at) WHERE expiry_due_at IS NOT NULL;

CREATE TABLE person_subjects (
  person_id VARCHAR(40) NOT NULL,
  lookup BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  CONSTRAINT pk_person_subjects PRIMARY KEY (person_id),
  CONSTRAINT fk_person_subjects_person_id FOREIGN KEY(person_id) REFERENCES people (id),
  CONSTRAINT uq_person_subjects_lookup UNIQUE (lookup)
);
