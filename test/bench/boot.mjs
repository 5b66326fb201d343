// CPU of starting a host, as a whole process: with ServiceModule, with all that it needs but without it, and with
// @nestjs/axios alone.
import {
  alternate,
  printFigure,
  publishTable,
  ratio,
  ratioRows,
  round,
  median,
  startProcess,
} from './harness.mjs';
import { mtlsOptions, startApi } from './service.mjs';

const WITH = 'with ServiceModule';
const WITHOUT = 'the same host without it';
const HTTP_ALONE = 'HttpModule alone';

const api = await startApi();
const imports = [];

const host = (name, setup) => ({
  name,
  block: async () => {
    const { imported, total } = await startProcess('boot', setup);
    if (setup.options) imports.push(imported / 1000);
    return total / 1000;
  },
});

const hosts = [
  host(WITH, { isConfigured: true, options: mtlsOptions(api) }),
  host(WITHOUT, { isConfigured: true }),
  host(HTTP_ALONE, {}),
];
const samples = await alternate(hosts, { rounds: 15, calls: 1 });
publishTable('Starting a host: CPU of the whole process', ratioRows(samples, 'CPU ms', WITHOUT), [
  'contender',
  `/ ${WITHOUT}`,
]);
printFigure('host with ServiceModule / without', round(ratio(samples, WITH, WITHOUT), 2), 1.03);
for (const name of [WITH, WITHOUT]) {
  console.log(`${name} / ${HTTP_ALONE}: ${round(ratio(samples, name, HTTP_ALONE), 2)}`);
}
console.log(`of it, importing the package after the libraries: ${round(median(imports))} ms`);
api.stop();
