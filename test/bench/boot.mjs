// CPU of starting a host, as a whole process, with the module and without it. Both hosts have the same libraries loaded.
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

const api = await startApi();
const imports = [];

const host = (name, options) => ({
  name,
  block: async () => {
    const { imported, total } = await startProcess('boot', { options });
    if (options) imports.push(imported / 1000);
    return total / 1000;
  },
});

const samples = await alternate([host(WITH, mtlsOptions(api)), host(WITHOUT)], { rounds: 11, calls: 1 });
publishTable('Starting a host: CPU of the whole process', ratioRows(samples, 'CPU ms', WITHOUT), [
  'contender',
  `/ ${WITHOUT}`,
]);
printFigure('host with ServiceModule / without', round(ratio(samples, WITH, WITHOUT), 2), 1.05);
console.log(`of it, importing the package after the libraries: ${round(median(imports))} ms`);
api.stop();
