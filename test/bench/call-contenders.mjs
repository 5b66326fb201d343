// GET /banks/v1 over kept-alive mTLS, the way one writes it with each client. All of them parse the JSON.
import { HttpService } from '@nestjs/axios';
import axios from 'axios';
import got from 'got';
import https from 'node:https';
import { createSecureContext } from 'node:tls';
import { firstValueFrom } from 'rxjs';
import { Agent, Pool } from 'undici';
import { APP_TOKEN, mtlsOptions, oauthOptions, startModule } from './service.mjs';

const PATH = '/banks/v1';
const HEADERS = { 'service-app-token': APP_TOKEN };
/** Our default. */
const CONNECTIONS = 50;

/** A host: the whole module, with BanksService injected. */
async function banksService(options, lib) {
  const { banks, close } = await startModule(options, lib);
  return { call: () => banks.list(), close };
}

const token = Promise.resolve(APP_TOKEN);

/** What hosts write: the certificate in an agent, an interceptor that waits for the token and sets the header. */
function nestAxiosRecipe({ origin, pems }) {
  const httpsAgent = new https.Agent({ ...pems, keepAlive: true, maxSockets: CONNECTIONS });
  const http = new HttpService(axios.create({ baseURL: origin, httpsAgent }));
  http.axiosRef.interceptors.request.use(async (config) => {
    config.headers.set('service-app-token', await token);
    return config;
  });
  return {
    call: async () => (await firstValueFrom(http.get(PATH))).data,
    close: () => httpsAgent.destroy(),
  };
}

function axiosWithoutRedirects({ origin, pems }) {
  const httpsAgent = new https.Agent({ ...pems, keepAlive: true, maxSockets: CONNECTIONS });
  const client = axios.create({ baseURL: origin, httpsAgent, maxRedirects: 0, headers: HEADERS });
  return {
    call: async () => (await client.get(PATH)).data,
    close: () => httpsAgent.destroy(),
  };
}

function gotClient({ origin, pems }) {
  const agent = new https.Agent({ ...pems, keepAlive: true, maxSockets: CONNECTIONS });
  const client = got.extend({ prefixUrl: origin, agent: { https: agent }, headers: HEADERS });
  return { call: () => client.get(PATH.slice(1)).json(), close: () => agent.destroy() };
}

/** Node's own fetch; a dispatcher is its only way to a client certificate. */
function fetchClient({ origin, pems }) {
  const dispatcher = new Agent({ connect: pems, connections: CONNECTIONS });
  return {
    call: async () => (await fetch(origin + PATH, { dispatcher, headers: HEADERS })).json(),
    close: () => dispatcher.close(),
  };
}

function undiciPool({ origin, pems }) {
  const pool = new Pool(origin, { connect: pems, connections: CONNECTIONS });
  const request = { path: PATH, method: 'GET', headers: HEADERS };
  return {
    call: async () => (await pool.request(request)).body.json(),
    close: () => pool.close(),
  };
}

/** One request with node:https and nothing around it; resolves to the text. */
function getText(url, agent, headers = HEADERS) {
  return new Promise((resolve, reject) => {
    const onResponse = (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks).toString()));
      response.on('error', reject);
    };
    https.get(url, { agent, headers }, onResponse).on('error', reject);
  });
}

/** Node's own agent at its best: the files are read once. */
function stockAgent(pems) {
  return new https.Agent({
    secureContext: createSecureContext(pems),
    keepAlive: true,
    maxSockets: CONNECTIONS,
  });
}

function bareHttps({ origin, pems }) {
  const agent = stockAgent(pems);
  return {
    call: async () => JSON.parse(await getText(origin + PATH, agent)),
    close: () => agent.destroy(),
  };
}

/** Axios over an adapter that does nothing: the cost of axios itself. */
function axiosOverNothing({ origin, text }) {
  return axiosOver(origin, async () => text);
}

function axiosOverHttps({ origin, pems }) {
  const agent = stockAgent(pems);
  const exchange = ({ url, headers }) => getText(origin + url, agent, headers.toJSON());
  return { ...axiosOver(origin, exchange), close: () => agent.destroy() };
}

function axiosOver(baseURL, exchange) {
  const adapter = async (config) => {
    const data = await exchange(config);
    return { status: 200, statusText: 'OK', headers: {}, config, data };
  };
  const client = axios.create({ baseURL, adapter, headers: HEADERS });
  return { call: async () => (await client.get(PATH)).data, close: () => undefined };
}

/** By their names in the tables. Each takes the API (ours also the URL of a build) and makes `call()` and `close()`. */
export const CALL_CONTENDERS = {
  'BanksService.list()': (api, lib) => banksService(mtlsOptions(api), lib),
  'BanksService.list(), OAuth': (api, lib) => banksService(oauthOptions(api), lib),
  '@nestjs/axios recipe': nestAxiosRecipe,
  'axios, maxRedirects 0': axiosWithoutRedirects,
  got: gotClient,
  fetch: fetchClient,
  'bare node:https': bareHttps,
  'undici Pool': undiciPool,
  'axios over an adapter that does nothing': axiosOverNothing,
  'axios over a thin node:https adapter': axiosOverHttps,
};
