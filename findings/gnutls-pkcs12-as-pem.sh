#!/usr/bin/env bash
# GnuTLS 3.7.9 (certtool, gnutls-bin) and OpenSSL 3.0: certtool --to-p12 with a chain of authorities.
#
# Expected: a binary PKCS#12 file, as all other tools write and read it, with all certificates of --load-ca-certificate.
# Seen: without --outder, it is PEM ("-----BEGIN PKCS12-----"), which `openssl pkcs12` cannot read: base64-decode it first. And only
# the first certificate of the chain file is in it.
#
#   first line: -----BEGIN PKCS12-----; openssl pkcs12: fails; decoded: client intermediate
set -euo pipefail
command -v certtool >/dev/null || { echo 'needs gnutls-bin'; exit 2; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
exec 3>&1 2>/dev/null
new_key() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -subj "/CN=$1" "${@:2}"; }
new_key root -x509 -out root.crt -days 9
printf 'basicConstraints=critical,CA:true\n' >ca.ext
new_key intermediate -out intermediate.csr
openssl x509 -req -in intermediate.csr -CA root.crt -CAkey root.key -CAcreateserial -extfile ca.ext -days 8 -out intermediate.crt
new_key client -out client.csr
openssl x509 -req -in client.csr -CA intermediate.crt -CAkey intermediate.key -CAcreateserial -days 7 -out client.crt
cat intermediate.crt root.crt >chain.pem
certtool --to-p12 --load-privkey client.key --load-certificate client.crt --load-ca-certificate chain.pem --p12-name client --password pw --outfile client.p12 >&2
sed '/^-----/d' client.p12 | base64 -d >decoded.p12
subjects() { openssl pkcs12 -in "$1" -passin pass:pw -nokeys | sed -n 's/^subject=CN = //p' | paste -sd ' '; }
seen="$(head -1 client.p12)
$(openssl pkcs12 -in client.p12 -passin pass:pw -nokeys >&2 && echo read || echo fails)
$(subjects decoded.p12)"
echo "$seen" >&3
test "$seen" = '-----BEGIN PKCS12-----
fails
client intermediate'
