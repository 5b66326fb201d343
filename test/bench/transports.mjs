// What BanksService.list() would cost over undici in place of node:https; the rest of the path is the module's own.
import { sampleCalls } from './call-blocks.mjs';
import { printFigure, printTable, ratio, ratioRows, round } from './harness.mjs';

const HTTPS = 'list() over node:https';
const UNDICI = 'list() over undici';

const { samples } = await sampleCalls([
  HTTPS,
  UNDICI,
  'axios over a thin node:https adapter',
  'axios over a thin undici adapter',
  'bare node:https',
  'undici Pool',
]);
printTable('The same call over node:https and over undici', ratioRows(samples, 'CPU us', 'bare node:https'));
printFigure(`${UNDICI} / ${HTTPS}`, round(ratio(samples, UNDICI, HTTPS), 2));
