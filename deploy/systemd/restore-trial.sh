#!/bin/sh
# Restore the newest backup into a scratch directory, check it, and remove what was restored.
# restore-trial.sh BACKUPS SCRATCH [DATA_DIR]
set -eu
backups=$1 scratch=$2/trial data_dir=${3:-/var/lib/countersign}
newest=
for directory in "$backups"/*/; do # in the order of their names, which are dates
  [ ! -f "${directory}countersign.db" ] || newest=$directory
done
if [ -z "$newest" ]; then
  echo "There is no backup in $backups." >&2
  exit 1
fi
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$scratch" # of a trial that was killed
mkdir -m 700 "$scratch"
# Keys that the settings name elsewhere are used where they are.
for key in secret.key key-encryption.key; do
  [ ! -f "$data_dir/$key" ] || install -m 600 "$data_dir/$key" "$scratch/$key"
done
export COUNTERSIGN_DATA_DIR="$scratch" COUNTERSIGN_LOG_HEAD_DIR="$scratch/heads"
set -- "$newest" --yes
[ ! -f "$backups/shred-keys.db" ] || set -- "$@" --shred-keys "$backups/shred-keys.db"
countersign restore "$@"
countersign init --upgrade # as after any restore, and an upgrade where the backup is of an older release
countersign log check
echo "$newest was restored and checked."
