// To start a NestJS 12 application (ES modules) from this sample, copy the folder as its src/, add
// "assets": ["page/public/**/*"] to the compilerOptions of nest-cli.json, and install what it imports:
//   npm i nestjs-service @nestjs/axios@12 @nestjs/config@12 @nestjs/swagger@12 @nestjs/terminus@12 @peculiar/x509@2 axios@1 class-transformer@0.5 class-validator@0.15
import { describeFailure } from './start/failure.js';
import { readEnvironment } from './start/environment.js';
import { checkPort, readPort } from './start/port.js';

// The routes have no authentication, so the application listens on this machine only.
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
  // Imported only now, because loading NestJS takes a second and the checks above should fail at once.
  const { startApplication } = await import('./application.js');
  await startApplication(port, HOST, isSimulated);
} catch (error) {
  console.error(describeFailure(error));
  process.exit(1);
}
