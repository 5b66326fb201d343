import { describe } from '@jest/globals';
import { testStartupFailures } from '../helpers/startup-failures.js';

describe("startupCheck 'fail' names the true cause", () => testStartupFailures());
