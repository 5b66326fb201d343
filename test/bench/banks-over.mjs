// BanksService as the module puts it together, over the exchange that is handed in.
import { built } from './harness.mjs';
import { mtlsOptions } from './service.mjs';

export async function banksOver(exchange, api) {
  const { readConfiguration } = await built('module/read-configuration.js');
  const { createService, systemIo } = await built('engine/create-service.js');
  const { SILENT } = await built('exchange/io.js');
  const sources = { given: mtlsOptions(api), readVariable: () => undefined, variablesSet: [] };
  const { options, identity } = await readConfiguration(sources, SILENT);
  const service = createService(options, identity, { ...systemIo(SILENT), exchange });
  await service.start();
  return { call: () => service.banks.list(), close: () => service.close() };
}
