// The simulator, which sends the module's options for each mode that is named.
import { ServiceSimulator } from 'nestjs-service/testing';

const simulator = await ServiceSimulator.start();
const optionsOf = (authentication) => simulator.moduleOptions({ environment: 'production', authentication });
process.send(Object.fromEntries(process.argv.slice(2).map((mode) => [mode, optionsOf(mode)])));
process.once('disconnect', () => simulator.stop());
