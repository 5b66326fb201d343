import { type Explanation } from './service.error.js';
import { type FACTS, type Phrase, PHRASES, ROWS } from './explanations.js';

/** Names an option for a message, with its variable: `oauth.clientSecret (SERVICE_CLIENT_SECRET_FILE)`. */
export type DescribeOption = (option: string) => string;

/** An address of the service, as hints name it. */
export interface AddressOption {
  /** The option that sets the address: `urls.baseUrl`. */
  option: string;
  /** The option with the address of the API, for a hint about the token endpoint: the two addresses may be swapped. */
  apiOption?: string;
  describeOption: DescribeOption;
}

/** What is known about an error, in the order of {@link ROWS}. Entries that are not a text are left out. */
export type Words = readonly (string | false | undefined)[];

type FactName = (typeof FACTS)[number];
/** Values for the texts of the table. They may come from outside, for example from a server's certificate. */
export type Facts = Readonly<Partial<Record<FactName, string | number | undefined>>>;

/** A name in a text of the table: `<fact>`, or `{phrase or option}`. */
const NAME = /<(\w+)>|\{([\w.]+)\}/g;

/**
 * Explains an error with the first row of the table that fits the words, and fills in the names in its texts:
 * - `<host>`: the fact of this name. It is inserted as it is: braces in a fact stay what they are.
 * - `{because}`: the phrase of this name.
 * - `{http.proxy}`: the option of this name, at its first mention with its variable. `{address}` and `{api}` are the options with
 *   the address of the request and of the API.
 *
 * The options of the hint become those of the error.
 */
export function explain(words: Words, facts: Facts, place: Partial<AddressOption> = {}): Explanation {
  const text = words.filter(Boolean).join(' ');
  const known = text.split(' ');
  const pattern = Object.keys(ROWS).find((each) => fits(each, known));
  const [message, hint] = pattern === undefined ? [''] : ROWS[pattern];
  const addresses: Record<string, string | undefined> = { address: place.option, api: place.apiOption };
  const options = new Set<string>();
  const nameOption = (key: string): string => {
    const option = addresses[key] ?? key;
    if (options.has(option)) return option;
    options.add(option);
    return place.describeOption?.(option) ?? option;
  };
  const choose = (phrases: readonly Phrase[]): string => {
    for (const phrase of phrases) {
      const [when, part] = typeof phrase === 'string' ? ['', phrase] : phrase;
      const named = Array.from(part.matchAll(/<(\w+)>/g), ([, fact]) => fact as FactName);
      if (fits(when, known) && named.every((fact) => facts[fact] !== undefined)) return part;
    }
    return '';
  };
  const fill = (part: string): string =>
    part.replace(NAME, (_, fact: FactName | undefined, key: string) => {
      if (fact !== undefined) return String(facts[fact] ?? '');
      return key in PHRASES ? fill(choose(PHRASES[key])) : nameOption(key);
    });
  const filled = { words: text, message: fill(message) };
  return hint === undefined ? filled : { ...filled, hint: fill(hint), options: [...options] };
}

/** Whether the words fit a pattern of the tables. */
export function fits(pattern: string, words: readonly string[]): boolean {
  let at = -1;
  return pattern.split(' ').every((part) => {
    const beginnings = part.split('|');
    at = words.findIndex((word, index) => index > at && beginnings.some((each) => beginsWith(word, each)));
    return at >= 0;
  });
}

function beginsWith(word: string, part: string): boolean {
  return part.startsWith('*') ? word.includes(part.slice(1)) : word.startsWith(part);
}
