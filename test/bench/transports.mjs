// What BanksService.list() would cost over undici in place of node:https; the rest of the path is the module's own.
import { BARE, sampleCalls, THIN } from './call-blocks.mjs';
import { printFigure, printTable, ratio, ratioRows, round } from './harness.mjs';

const HTTPS = 'list() over node:https';
const UNDICI = 'list() over undici';

const { results } = await sampleCalls([
  HTTPS,
  UNDICI,
  THIN,
  'axios over a thin undici adapter',
  BARE,
  'undici Pool',
]);
const [{ samples }] = results;
printTable('The same call over node:https and over undici', ratioRows(samples, 'CPU us', BARE));
printFigure(`${UNDICI} / ${HTTPS}`, round(ratio(samples, UNDICI, HTTPS), 2));
