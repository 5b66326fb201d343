// CPU of the client process for a GET over kept-alive mTLS: BanksService.list() among the other ways to write it.
import { sampleCalls } from './call-blocks.mjs';
import { median, printFigure, publishTable, ratio, ratioRows, round } from './harness.mjs';

const OURS = 'BanksService.list()';
const RECIPE = '@nestjs/axios recipe';
const BARE = 'bare node:https';
const NOTHING = 'axios over an adapter that does nothing';

const { samples, bytes } = await sampleCalls([
  OURS,
  RECIPE,
  'axios, maxRedirects 0',
  'got',
  'fetch',
  BARE,
  'undici Pool',
  NOTHING,
]);
publishTable(
  `A GET of ${bytes} bytes of JSON over kept-alive mTLS, 20 at a time: CPU of the client`,
  ratioRows(samples, 'CPU us', RECIPE, BARE),
  ['contender', `/ ${RECIPE}`, `/ ${BARE}`],
);
printFigure(`${OURS} / ${RECIPE}`, round(ratio(samples, OURS, RECIPE), 2), 0.4);
printFigure(`${OURS} / ${BARE}`, round(ratio(samples, OURS, BARE), 2), 2);

// The libraries below the module: it cannot cost less than both together.
const floors = samples.get(NOTHING).map((us, i) => us + samples.get(BARE)[i]);
const toFloor = median(samples.get(OURS).map((us, i) => us / floors[i]));
printFigure(`${OURS} / (${NOTHING} + ${BARE})`, round(toFloor, 2), 1.15);
