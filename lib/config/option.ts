import 'reflect-metadata';
import { IsOptional, ValidateNested } from 'class-validator';

/**
 * How the text of a variable is parsed.
 * - `secret`: the option also has a variable that ends in `_FILE`.
 * - `names`: true, false or a comma-separated list.
 *
 * Messages never quote the value of a `text`, an `address` or a `secret`.
 */
export type OptionKind = 'text' | 'choice' | 'boolean' | 'integer' | 'names' | 'address' | 'secret';

/** One option, as a decorator in its class declares it. */
export interface OptionEntry {
  /** The path in ServiceModuleOptions: `oauth.clientId`. */
  option: string;
  /** The variable without its prefix: `CLIENT_ID`. Absent if the option can be set only in code. */
  suffix?: string;
  kind: OptionKind;
}

type OptionsClass = new () => object;
type Declared = Pick<OptionEntry, 'suffix' | 'kind'> & { key: string; section?: OptionsClass };

const DECLARED = 'nestjs-service:options';

/** Declares a property that groups the options of another class. */
export function Section(section: OptionsClass): PropertyDecorator {
  return Option({ kind: 'text', section }, ValidateNested({ message: 'must be an object' }));
}

/** Declares a property as an option, with the decorator that validates it. */
export function Option(declared: Omit<Declared, 'key'>, rule: PropertyDecorator): PropertyDecorator {
  return (target, key) => {
    const others = declaredIn(target);
    Reflect.defineMetadata(DECLARED, [...others, { ...declared, key: String(key) }], target);
    for (const each of [IsOptional(), rule]) each(target, key);
  };
}

function declaredIn(prototype: object): Declared[] {
  return (Reflect.getMetadata(DECLARED, prototype) as Declared[] | undefined) ?? [];
}

/** All options that a class and its sections declare. */
export function optionsOf(type: OptionsClass, path = ''): OptionEntry[] {
  return declaredIn(type.prototype as object).flatMap(({ key, section, ...entry }) =>
    section ? optionsOf(section, `${path}${key}.`) : [{ ...entry, option: path + key }],
  );
}

export function sectionsOf(type: OptionsClass): Record<string, OptionsClass> {
  const all = declaredIn(type.prototype as object);
  return Object.fromEntries(all.flatMap(({ key, section }) => (section ? [[key, section]] : [])));
}

/** An instance of the class with these values, for class-validator. Sections become instances of their classes. */
export function instanceOf(type: OptionsClass, values: object): object {
  const instance: object = Object.assign(new type(), values);
  for (const [key, section] of Object.entries(sectionsOf(type))) {
    const value = (instance as Record<string, unknown>)[key];
    if (typeof value === 'object' && value !== null)
      Object.assign(instance, { [key]: instanceOf(section, value) });
  }
  return instance;
}

/** The entries that are set, which `undefined` and `null` are not. */
export function definedEntries(values: unknown): [string, unknown][] {
  return Object.entries(Object(values) as object).filter(([, value]) => (value ?? undefined) !== undefined);
}
