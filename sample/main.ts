// To begin an application of your own with this one, copy the folder as its src/, install the packages that it imports,
// and @peculiar/x509 for the simulator, and add "assets": ["page/public/**/*"] to the compilerOptions of nest-cli.json.
import { describeFailure } from './start/failure.js';
import { readEnvironment } from './start/environment.js';
import { checkPort, readPort } from './start/port.js';

// The routes ask nobody who they are, so only this machine may call them.
const HOST = '127.0.0.1';

try {
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
