// CPU of the client process for a GET over kept-alive mTLS: BanksService.list() among the other ways to write it.
import { sampleCalls } from './call-blocks.mjs';
import { printFigure, printTable, ratio, ratioRows, round } from './harness.mjs';

const OURS = 'BanksService.list()';
const RECIPE = '@nestjs/axios recipe';
const BARE = 'bare node:https';

const { samples, bytes } = await sampleCalls([
  OURS,
  RECIPE,
  'axios, maxRedirects 0',
  'got',
  'fetch',
  BARE,
  'undici Pool',
  'axios over an adapter that does nothing',
]);
printTable(
  `GET of ${bytes} bytes of JSON over kept-alive mTLS, 20 at a time`,
  ratioRows(samples, 'CPU us', RECIPE, BARE),
);
printFigure(`${OURS} / ${RECIPE}`, round(ratio(samples, OURS, RECIPE), 2), 0.4);
printFigure(`${OURS} / ${BARE}`, round(ratio(samples, OURS, BARE), 2), 2);
