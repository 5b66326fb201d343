import { endWithNpm } from '../lib/cli/end-with-npm.js';
import { describeFailure } from './start/failure.js';
import { readEnvironment } from './start/environment.js';
import { checkPort, readPort } from './start/port.js';

// The routes ask nobody who they are, so only this machine may call them.
const HOST = '127.0.0.1';

try {
  if (process.env.npm_lifecycle_event !== undefined) endWithNpm();
  const environment = readEnvironment();
  const port = readPort(environment.PORT);
  await checkPort(port, HOST);
  const isSimulated = !Object.entries(environment).some(
    ([name, value]) => name.startsWith('SERVICE_') && value,
  );
  console.log(
    `Starting the sample application, with ${isSimulated ? 'a simulator of the service' : 'the service of the SERVICE_* variables'} …`,
  );
  // Only now: to load NestJS takes its time.
  const { startApplication } = await import('./application.js');
  await startApplication(port, HOST, isSimulated);
} catch (error) {
  console.error(describeFailure(error));
  process.exit(1);
}
