-- Run once by the database image, as administrator, when it makes its volume.
-- The same roles as on docs/postgresql.md, with the passwords that secrets.sh made.
\set ON_ERROR_STOP on
\set owner_password `cat /run/secrets/owner_password`
\set app_password `cat /run/secrets/app_password`
\set retention_password `cat /run/secrets/retention_password`
CREATE ROLE countersign_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE countersign_app LOGIN PASSWORD :'app_password';
CREATE ROLE countersign_retention LOGIN PASSWORD :'retention_password';
CREATE DATABASE countersign OWNER countersign_owner;
REVOKE ALL ON DATABASE countersign FROM PUBLIC;
GRANT CONNECT ON DATABASE countersign TO countersign_app, countersign_retention;
