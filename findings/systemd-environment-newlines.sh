#!/usr/bin/env bash
# systemd 252 (Debian 12): a PEM in one line, with \n for its line breaks, in a file of variables (here environment.d, which has the parser
# of EnvironmentFile).
#
# Expected: \n stays as it is without quotes, as in dotenv, docker and Node's --env-file.
# Seen: without quotes, the backslash is dropped and the letter n stays in the base64. It is a letter of base64 too, so that the
# value cannot be repaired: it is not known which n was a line break. In double or single quotes, the backslash stays.
#
#   A=BEGIN\nMII\nEND    ->  BEGINnMIInEND
#   B="BEGIN\nMII\nEND"  ->  BEGIN\nMII\nEND
#   C='BEGIN\nMII\nEND'  ->  BEGIN\nMII\nEND
set -euo pipefail
generator=/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator
test -x "$generator" || { echo 'needs systemd'; exit 2; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
mkdir environment.d
cat >environment.d/a.conf <<'CONF'
FINDING_A=BEGIN\nMII\nEND
FINDING_B="BEGIN\nMII\nEND"
FINDING_C='BEGIN\nMII\nEND'
CONF
# It writes a backslash as two.
seen=$(XDG_CONFIG_HOME=$dir "$generator" | grep ^FINDING_)
echo "$seen"
test "$seen" = 'FINDING_A=BEGINnMIInEND
FINDING_B="BEGIN\\nMII\\nEND"
FINDING_C="BEGIN\\nMII\\nEND"'
