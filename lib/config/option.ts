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
  /** The variable's name without its prefix: `CLIENT_ID`. Absent if only code can set the option. */
  suffix?: string;
  kind: OptionKind;
}

type OptionsClass = new () => object;
type Declared = Pick<OptionEntry, 'suffix' | 'kind'> & { key: string; section?: OptionsClass };

const DECLARED = 'nestjs-service:options';

/** Declares a property as a section, whose options are declared in the given class. */
export function Section(section: OptionsClass): PropertyDecorator {
  return Option({ kind: 'text', section }, ValidateNested({ message: 'must be an object' }));
}

/** Declares a property as an option with its rule. */
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

/** All options of the class and of its sections. */
export function optionsOf(type: OptionsClass, path = ''): OptionEntry[] {
  return declaredIn(type.prototype as object).flatMap(({ key, section, ...entry }) =>
    section ? optionsOf(section, `${path}${key}.`) : [{ ...entry, option: path + key }],
  );
}

export function sectionsOf(type: OptionsClass): Record<string, OptionsClass> {
  const all = declaredIn(type.prototype as object);
  return Object.fromEntries(all.flatMap(({ key, section }) => (section ? [[key, section]] : [])));
}

/** An instance of the class with these values, for class-validator. So are its sections. */
export function instanceOf(type: OptionsClass, values: object): object {
  const instance: object = Object.assign(new type(), values);
  for (const [key, section] of Object.entries(sectionsOf(type))) {
    const value = (instance as Record<string, unknown>)[key];
    if (typeof value === 'object' && value !== null)
      Object.assign(instance, { [key]: instanceOf(section, value) });
  }
  return instance;
}

/** The keys and values that are set: `undefined` and `null` are not. */
export function setEntries(values: unknown): [string, unknown][] {
  return Object.entries(Object(values) as object).filter(([, value]) => (value ?? undefined) !== undefined);
}
