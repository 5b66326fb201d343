// For Jest, as its sequencer and its reporter: the spec files in the order that they were named in, a line of JSON for each
// one that ran, and an end at the first test that fails.
import { writeSync } from 'node:fs';

const order = process.argv.slice(process.argv.indexOf('--runTestsByPath') + 1);
const tell = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

export default class FirstFailure {
  sort(tests) {
    return tests.sort((one, other) => order.indexOf(one.path) - order.indexOf(other.path));
  }

  cacheResults() {}

  onTestCaseResult({ path }, { status, fullName }) {
    if (status !== 'failed') return;
    tell({ path, failed: fullName });
    process.exit(1);
  }

  onTestResult({ path }, { perfStats, testExecError }) {
    tell({ path, ms: perfStats.runtime, failed: testExecError && 'the file cannot be loaded' });
  }
}
