#!/bin/sh
# Make the files of three nodes, once: settings, certificates and passwords, as docs/high-availability.md says.
# Needs openssl. Nothing is printed, and nothing that exists is changed.
#
#   PUBLIC_URL=https://countersign.example.com ./prepare.sh FOLDER NAME=ADDRESS NAME=ADDRESS NAME=ADDRESS
#
# FOLDER/NAME/etc goes to that node; FOLDER/ca.key makes certificates of this cluster: keep it elsewhere.
# PUBLIC_URL is where callers reach the service: it names the logs, which cannot be renamed.
set -eu
umask 077
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift
[ $# -eq 3 ] || { echo 'prepare.sh FOLDER NAME=ADDRESS NAME=ADDRESS NAME=ADDRESS' >&2; exit 2; }
case ${PUBLIC_URL:-} in
  *[!A-Za-z0-9.:/_-]*) url='' ;;
  http://?* | https://?*) url=$PUBLIC_URL ;;
  *) url='' ;;
esac
[ -n "$url" ] || { echo 'PUBLIC_URL: expected where callers reach the service, such as https://countersign.example.com' >&2; exit 2; }
mkdir "$folder"
cd "$folder"

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
joined() { printf %s "$1" | paste -sd, -; }

openssl ecparam -genkey -name prime256v1 -noout -out ca.key
openssl req -x509 -new -key ca.key -sha256 -days 3650 -subj '/CN=Countersign cluster' -out ca.pem

peers='' clients='' databases='' services='' newline='
'
for node; do
  name=${node%%=*} address=${node#*=}
  peers="$peers$name=https://$address:2380$newline"
  clients="$clients\"$address:2379\"$newline"
  databases="$databases    server $name $address:5432\\$newline"
  services="$services    server $name $address:8443 tcp-ut 8s\\$newline"
done
for name in admin replication rewind rest owner app retention backup; do password >"$name"; done

for node; do
  name=${node%%=*} address=${node#*=}
  etc=$name/etc
  mkdir -p "$etc/patroni" "$etc/etcd" "$etc/haproxy" "$etc/default" "$etc/countersign" "$etc/pgbackrest" "$etc/cron.d"
  openssl ecparam -genkey -name prime256v1 -noout -out "$etc/etcd/node.key"
  printf 'subjectAltName=DNS:%s,IP:%s,IP:127.0.0.1\n' "$name" "$address" >extensions
  openssl req -new -key "$etc/etcd/node.key" -subj "/CN=$name" \
    | openssl x509 -req -sha256 -days 1825 -CA ca.pem -CAkey ca.key -CAcreateserial \
      -extfile extensions -out "$etc/etcd/node.pem" 2>/dev/null
  cp ca.pem "$etc/etcd/node.key" "$etc/etcd/node.pem" "$etc/patroni"
  cp ca.pem "$etc/etcd"
  cp ca.pem "$etc/haproxy"
  cp ca.pem "$etc/countersign/database-ca.pem"
  cat "$etc/etcd/node.pem" "$etc/etcd/node.key" >"$etc/haproxy/node.pem"
  filled() {
    sed -e "s|@NAME@|$name|g" -e "s|@ADDRESS@|$address|g" \
      -e "s|@ETCD_PEERS@|$(joined "${peers%?}")|" -e "s|@ETCD_CLIENTS@|$(joined "${clients%?}")|" \
      -e "s|@POSTGRESQL@|${POSTGRESQL:-/usr/lib/postgresql/15/bin}|" \
      -e "s|@ADMIN_PASSWORD@|$(cat admin)|" -e "s|@REPLICATION_PASSWORD@|$(cat replication)|" \
      -e "s|@REWIND_PASSWORD@|$(cat rewind)|" -e "s|@REST_PASSWORD@|$(cat rest)|" \
      -e "s|@BACKUP_PASSWORD@|$(cat backup)|" \
      -e "s|@DATABASE_SERVERS@|${databases%??}|" -e "s|@SERVICE_SERVERS@|${services%??}|" "$here/$1"
  }
  filled etcd.env >"$etc/default/etcd"
  filled patroni.yml >"$etc/patroni/config.yml"
  filled haproxy.cfg >"$etc/haproxy/haproxy.cfg"
  filled pgbackrest.conf >"$etc/pgbackrest/pgbackrest.conf"
  filled backup.cron >"$etc/cron.d/countersign-backup"
  # The roles are those of compose.yaml.
  sed 's|/run/secrets/|/etc/patroni/|' "$here/../roles.sql" >"$etc/patroni/roles.sql"
  cp owner "$etc/patroni/owner_password"
  cp app "$etc/patroni/app_password"
  cp retention "$etc/patroni/retention_password"
  tls='sslmode=verify-full&sslrootcert=/etc/countersign/database-ca.pem'
  for role in owner app retention; do
    {
      printf 'data_dir = "/var/lib/countersign"\npublic_url = "%s"\n' "$url"
      printf 'database_url = "postgresql://countersign_%s:%s@127.0.0.1:5000/countersign?%s"\n' \
        "$role" "$(cat "$role")" "$tls"
    } >"$etc/countersign/$role.toml"
  done
done
rm extensions admin replication rewind rest owner app retention backup
