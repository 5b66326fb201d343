import 'reflect-metadata';
import { IsOptional, ValidateNested } from 'class-validator';

/**
 * How the text of a variable is read, and whether a message may quote the value. `text` and `secret` are never quoted.
 * A `secret` has a `_FILE` variant. `names` is true, false or a comma-separated list.
 */
export type OptionKind = 'text' | 'choice' | 'boolean' | 'integer' | 'names' | 'address' | 'secret';

/** One option of ServiceModule, as its class declares it. */
export interface OptionEntry {
  /** The path in ServiceModuleOptions: `oauth.clientId`. */
  option: string;
  /** The variable's name without its prefix: `CLIENT_ID`. Absent where only code can set the option. */
  suffix?: string;
  kind: OptionKind;
  default?: string | number | boolean;
}

type OptionsClass = new () => object;
type Declared = Pick<OptionEntry, 'suffix' | 'kind'> & { key: string; section?: OptionsClass };

const DECLARED = 'nestjs-service:options';

/** Declares a property as an option with its rules. Its default is the property's initial value. */
export function Option(
  suffix?: string,
  kind: OptionKind = 'text',
  ...rules: PropertyDecorator[]
): PropertyDecorator {
  return declare({ suffix, kind }, ...rules);
}

/** Declares a property as a section, whose options are declared in the given class. */
export function Section(section: OptionsClass): PropertyDecorator {
  return declare({ kind: 'text', section }, ValidateNested({ message: 'must be an object' }));
}

function declare(declared: Omit<Declared, 'key'>, ...rules: PropertyDecorator[]): PropertyDecorator {
  return (target, key) => {
    const others = declaredIn(target);
    Reflect.defineMetadata(DECLARED, [...others, { ...declared, key: String(key) }], target);
    for (const rule of [IsOptional(), ...rules]) rule(target, key);
  };
}

function declaredIn(prototype: object): Declared[] {
  return (Reflect.getMetadata(DECLARED, prototype) as Declared[] | undefined) ?? [];
}

/** All options of the class and of its sections. */
export function optionsOf(type: OptionsClass, path = ''): OptionEntry[] {
  const defaults = new type() as Record<string, OptionEntry['default']>;
  return declaredIn(type.prototype as object).flatMap(({ key, section, ...entry }) =>
    section
      ? optionsOf(section, `${path}${key}.`)
      : [{ ...entry, option: path + key, default: defaults[key] }],
  );
}

export function sectionsOf(type: OptionsClass): Record<string, OptionsClass> {
  const all = declaredIn(type.prototype as object);
  return Object.fromEntries(all.flatMap(({ key, section }) => (section ? [[key, section]] : [])));
}

/** An instance of the class with the values that are set and defaults for the rest. It has every section. */
export function withDefaults<T extends object>(type: new () => T, values: object): T {
  const filled: object = Object.assign(new type(), Object.fromEntries(setEntries(values)));
  for (const [key, section] of Object.entries(sectionsOf(type))) {
    const value = (filled as Record<string, unknown>)[key] ?? {};
    if (typeof value === 'object') Object.assign(filled, { [key]: withDefaults(section, value) });
  }
  return filled as T;
}

/** The keys and values that are set: `undefined` and `null` are not. */
export function setEntries(values: unknown): [string, unknown][] {
  return Object.entries(Object(values) as object).filter(([, value]) => (value ?? undefined) !== undefined);
}
