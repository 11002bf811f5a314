#!/bin/sh
# Makes the time-stamps of the vectors: sh make_timestamps.sh, in this folder, after make_vectors.py
# has written good/checkpoint. The keys are thrown away and the signatures are random, so each run
# gives other bytes: the files are kept, and are made again only if the checkpoint changes.
set -eu
out=$PWD/timestamps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
# What a time-stamp is over: the checkpoint with the signature line of the log alone.
head -n 5 good/checkpoint >"$work/over"
cd "$work"
cat >conf <<'CONF'
[req]
distinguished_name = dn
[dn]
[root]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign
[signer]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = one
[one]
serial = serial
signer_cert = signer.pem
certs = chain.pem
signer_key = signer.key
signer_digest = sha256
default_policy = 1.3.6.1.4.1.99999.1
digests = sha256, sha384, sha512
accuracy = secs:1
CONF
openssl ecparam -genkey -name prime256v1 -noout -out root.key
openssl req -x509 -new -key root.key -subj "/O=Example, a vector/CN=root" -days 36500 \
  -config conf -extensions root -out root.pem
openssl ecparam -genkey -name prime256v1 -noout -out signer.key
openssl req -new -key signer.key -subj "/O=Example, a vector/CN=time-stamps" -config conf \
  -out signer.csr
openssl x509 -req -in signer.csr -CA root.pem -CAkey root.key -set_serial 2 -days 36500 \
  -extfile conf -extensions signer -out signer.pem 2>/dev/null
stamp() { # name, hash, file, certificates of the chain
  cat $4 >chain.pem
  echo 01 >serial
  openssl ts -query -data "$3" "-$2" -no_nonce -cert -out query 2>/dev/null
  openssl ts -reply -config conf -queryfile query -out "$out/$1.tsr" 2>/dev/null
}
for hash in sha256 sha384 sha512; do stamp "$hash" "$hash" over root.pem; done
# OpenSSL writes the certificates of a response as they come, which is no DER: readers take it.
stamp other sha256 conf root.pem
cp root.pem "$out/root.pem"
