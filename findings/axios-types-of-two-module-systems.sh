#!/usr/bin/env bash
# axios 1.21.1 with @nestjs/axios 4.0.1 (a CommonJS package) in a host of ES modules, compiled with module nodenext.
#
# Expected: `httpService.axiosRef` of @nestjs/axios is an AxiosInstance, as its declaration says.
# Seen: the host's AxiosInstance comes from axios/index.d.ts, and that of @nestjs/axios from axios/index.d.cts. The two have the same text,
# but their generic types do not fit each other, in neither direction. axios 1.18.0 compiles; 1.13.5, 1.15.0 and 1.20.0 do not.
#
#   1.18.0: compiled
#   1.21.1: TS2322 ... Type 'Promise<AxiosResponseResult<T, R, D, P>>' is not assignable to type 'Promise<AxiosResponseResult<T, R, D, P>>'.
set -euo pipefail
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
npm init -y >/dev/null
cat >host.mts <<'TS'
import { HttpService } from '@nestjs/axios';
import type { AxiosInstance } from 'axios';

export const client: AxiosInstance = new HttpService().axiosRef;
TS
compile() {
  npm i --silent --no-audit --no-fund --ignore-scripts "axios@$1" @nestjs/axios@4.0.1 @nestjs/common@11.1.6 rxjs@7.8.2 reflect-metadata@0.2.2 \
    typescript@5.9.3 @types/node@20.19.43
  node node_modules/typescript/bin/tsc --noEmit --module nodenext --target es2022 --strict --skipLibCheck --types node host.mts && echo compiled
}
first=$(compile 1.18.0) || true
second=$(compile 1.21.1) || true
printf '1.18.0: %s\n1.21.1: %s\n' "$first" "$second"
[ "$first" = compiled ]
grep -q "TS2322: Type 'import(.*AxiosInstance' is not assignable" <<<"$second"
grep -q "AxiosResponseResult<T, R, D, P>>' is not assignable to type 'Promise<AxiosResponseResult<T, R, D, P>>'" <<<"$second"
