import { variableOf } from '../../lib/config/variables.js';
import { describeLocation, type DescribeOption } from '../../lib/errors/index.js';

/** How messages of the module of this name call an option that no file sets. */
export function describeOption(name?: string): DescribeOption {
  return (option) => describeLocation({ option, variable: variableOf(option, name) });
}
