// What docs/recipes.md says about exact amounts, with the versions of the packages that it names.
import Big from 'big.js';
import BigNumber from 'bignumber.js';
import Decimal from 'decimal.js';
import JSONbig from 'json-bigint';
import { JSONParse } from 'json-with-bigint';
import { LosslessNumber, parse } from 'lossless-json';
import { createServiceClient } from 'nestjs-service';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { pay, readBalances } from '../dist/exact-amounts.js';

const BALANCES = '[{"account_id":"a-1","amount":12345678901234567.89,"nr":9007199254740993,"fee":10.50}]';
const PAGE = `{"data":{"balances":${BALANCES}},"page":{"total_pages":1}}`;
const sent = [];
const server = createServer(async (request, response) => {
  sent.push([request.headers['content-type'], await text(request)]);
  const body = request.url.startsWith('/data/') ? PAGE : BALANCES;
  response.writeHead(request.url === '/gone' ? 404 : 200).end(body);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const { http, customers, close } = await createServiceClient({
  authentication: 'app-token',
  urls: { sandboxUrl: `http://127.0.0.1:${server.address().port}` },
  appToken: 'app-1',
});
const read = async (parser) =>
  Object.values((await http.get('/balances', { responseType: 'text', parse: parser }))[0]).slice(1);
const send = async (data) => {
  await http.post('/payments', data);
  return sent.at(-1)[1];
};

const amounts = [];
for await (const { amount } of readBalances(http, 'a-1')) amounts.push(amount.toString());
assert.deepEqual(amounts, ['12345678901234567.89']);
assert.deepEqual((await read(parse)).map(String), ['12345678901234567.89', '9007199254740993', '10.50']);
const decimals = await read((body) => parse(body, null, (digits) => new Decimal(digits)));
assert.ok(decimals.every((each) => Decimal.isDecimal(each)));
assert.deepEqual(decimals.map(String), ['12345678901234567.89', '9007199254740993', '10.5']);
assert.deepEqual(await read(JSONParse), [12345678901234568, 9007199254740993n, 10.5]);
const [amount, nr, fee] = await read((body) => JSONbig.parse(body));
assert.deepEqual([String(amount), String(nr), fee], ['12345678901234567.89', '9007199254740993', 10.5]);
assert.ok(BigNumber.isBigNumber(amount) && BigNumber.isBigNumber(nr));
const native = JSONbig({ useNativeBigInt: true });
await assert.rejects(
  read((body) => native.parse(body)),
  { code: 'invalid_response' },
);

await pay(http, new LosslessNumber('10.50'), 'key-1');
assert.deepEqual(sent.at(-1), ['application/json', '{"amount":10.50}']);
const insides = '{"amount":{"isLosslessNumber":true,"value":"10.50"}}';
assert.equal(await send({ amount: new LosslessNumber('10.50') }), insides);
for (const Amount of [Decimal, Big, BigNumber]) {
  assert.equal(await send({ amount: new Amount('10.50') }), '{"amount":"10.5"}');
  assert.equal(await send({ amount: new Amount('1e30') }), '{"amount":"1e+30"}');
  if (JSON.rawJSON)
    assert.equal(await send({ amount: JSON.rawJSON(new Amount('10.5').toFixed(2)) }), '{"amount":10.50}');
}
await assert.rejects(send({ amount: 10n }), { code: 'invalid_request', hint: /JSON\.rawJSON/ });
if (JSON.rawJSON)
  assert.equal(await send({ amount: JSON.rawJSON(String(2n ** 64n)) }), '{"amount":18446744073709551616}');

await assert.rejects(http.get('/gone', { responseType: 'text', parse }), ({ response }) => {
  assert.equal(response.data[0].amount, 12345678901234568);
  return true;
});
http.axiosRef.interceptors.request.use((config) => Object.assign(config, { responseType: 'text' }));
const [created] = await customers.create({ app_user_id: 'u-1' }, { parse });
assert.equal(String(created.amount), '12345678901234567.89');
assert.equal(await customers.create({ app_user_id: 'u-1' }), BALANCES);
await close();
server.close();
