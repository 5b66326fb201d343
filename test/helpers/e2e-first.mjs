import Sequencer from '@jest/test-sequencer';

/** Tests of whole applications wait the most. If they come first, those that compute fill the pauses. */
export default class E2eFirst extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    const isE2e = ({ path }) => /[/\\]e2e[/\\]/.test(path);
    return [...sorted.filter(isE2e), ...sorted.filter((test) => !isE2e(test))];
  }
}
