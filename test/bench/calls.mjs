// CPU of the client process for a GET over kept-alive mTLS: BanksService.list() among the other ways to write it.
import { BARE, FLOOR, NOTHING, OURS, RECIPE, sampleCalls } from './call-blocks.mjs';
import { printFigure, publishTable, ratio, ratioRows, round } from './harness.mjs';

const { results, bytes } = await sampleCalls([
  OURS,
  RECIPE,
  'axios, maxRedirects 0',
  'got',
  'fetch',
  BARE,
  'undici Pool',
  NOTHING,
]);
const [{ samples }] = results;
publishTable(
  `A GET of ${bytes} bytes of JSON over kept-alive mTLS, 20 at a time: CPU of the client`,
  ratioRows(samples, 'CPU us', RECIPE, BARE),
  ['contender', `/ ${RECIPE}`, `/ ${BARE}`],
);
printFigure(`${OURS} / ${RECIPE}`, round(ratio(samples, OURS, RECIPE), 2), 0.4);
printFigure(`${OURS} / ${BARE}`, round(ratio(samples, OURS, BARE), 2), 2);
printFigure(`${OURS} / ${FLOOR}`, round(ratio(samples, OURS, FLOOR), 2), 1.15);
