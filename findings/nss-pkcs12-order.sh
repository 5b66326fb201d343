#!/usr/bin/env bash
# NSS 3.87 (pk12util, libnss3-tools) and OpenSSL 3.0: a PKCS#12 file of a client certificate and its two authorities goes through an
# NSS database.
#
# Expected: `openssl pkcs12 -nokeys` prints the client certificate first, as before: it belongs to the key, and a PEM chain begins with it.
# Seen: after pk12util, it comes last. The PEM that the usual command makes is refused by Node and by what else takes the first
# certificate for the one of the key.
#
#   of OpenSSL:   client, intermediate, root: Node takes it with the key
#   of pk12util:  intermediate, root, client: ERR_OSSL_X509_KEY_VALUES_MISMATCH
set -euo pipefail
command -v pk12util >/dev/null && command -v certutil >/dev/null || { echo 'needs libnss3-tools'; exit 2; }
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
openssl pkcs12 -export -inkey client.key -in client.crt -certfile chain.pem -name client -passout pass:pw -out openssl.p12
mkdir nss && certutil -N -d nss --empty-password
pk12util -i openssl.p12 -d nss -W pw -K '' >&2
pk12util -o nss.p12 -n client -d nss -W pw -K '' >&2
subjects() { openssl pkcs12 -in "$1" -passin pass:pw -nokeys | sed -n 's/^subject=CN = //p' | paste -sd ' '; }
taken() { openssl pkcs12 -in "$1" -passin pass:pw -nokeys >all.crt; node -e '
  const [cert, key] = ["all.crt", "client.key"].map((file) => require("fs").readFileSync(file));
  try { require("tls").createSecureContext({ cert, key }); console.log("taken"); } catch ({ code }) { console.log(code); }'; }
seen="$(subjects openssl.p12): $(taken openssl.p12)
$(subjects nss.p12): $(taken nss.p12)"
echo "$seen" >&3
test "$seen" = 'client intermediate root: taken
intermediate root client: ERR_OSSL_X509_KEY_VALUES_MISMATCH'
