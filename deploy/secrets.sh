#!/bin/sh
# Make the secrets of compose.yaml, once: passwords of four database roles, and the settings
# files that hold the URLs of three of them. Nothing is printed, and nothing that exists is changed.
set -eu
cd "$(dirname "$0")"
# Only you can enter the folder; the files in it are read by other users in the containers.
mkdir -m 0700 secrets
for name in admin owner app retention; do
  password=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
  printf %s "$password" >"secrets/${name}_password"
  printf 'database_url = "postgresql://countersign_%s:%s@database/countersign"\n' \
    "$name" "$password" >"secrets/$name.toml"
done
rm secrets/admin.toml
chmod 0444 secrets/*
