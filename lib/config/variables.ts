import { type ConfigurationFault } from '../errors/index.js';
import { type OptionKind } from './option.js';
import { OPTIONS, type ServiceModuleOptions } from './options.js';

/** `SERVICE_`, or `SERVICE_KSA_` for the module named `ksa`. */
export function variablePrefix(name?: string): string {
  return name === undefined ? 'SERVICE_' : `SERVICE_${name.replace(/[^A-Za-z0-9]/g, '_').toUpperCase()}_`;
}

/** The variable that sets an option (`oauth.clientId` -> `SERVICE_CLIENT_ID`), if one does. */
export function variableOf(option: string, name?: string): string | undefined {
  const suffix = OPTIONS.find((entry) => entry.option === option)?.suffix;
  return suffix && variablePrefix(name) + suffix;
}

/**
 * Options from variables. Empty ones count as not set. A value that does not read as its kind stays text, for the
 * validation to report.
 */
export function readVariables(
  read: (variable: string) => unknown,
  name?: string,
): { options: ServiceModuleOptions; faults: ConfigurationFault[] } {
  const options: Record<string, unknown> = {};
  const faults: ConfigurationFault[] = [];
  for (const { option, suffix, kind } of OPTIONS) {
    if (suffix === undefined) continue;
    const variable = variablePrefix(name) + suffix;
    const value = parseValue(read(variable), kind);
    const file = kind === 'secret' ? parseValue(read(`${variable}_FILE`), 'text') : undefined;
    if (value !== undefined && file !== undefined) {
      faults.push({
        option,
        variable,
        message: `${variable} and ${variable}_FILE are both set; keep one of them.`,
      });
    }
    if (value !== undefined || file !== undefined) {
      setPath(options, option, file === undefined ? value : { file });
    }
  }
  return { options, faults };
}

function parseValue(raw: unknown, kind: OptionKind): unknown {
  if (raw === undefined || raw === null || raw === '') return undefined;
  if (typeof raw !== 'string' || kind === 'secret') return raw;
  const text = raw.trim();
  if (text === '') return undefined;
  if (kind === 'integer' && /^-?\d+$/.test(text)) return Number(text);
  if (kind === 'boolean' && /^(true|1|yes|on)$/i.test(text)) return true;
  if (kind === 'boolean' && /^(false|0|no|off)$/i.test(text)) return false;
  return text;
}

function setPath(target: Record<string, unknown>, path: string, value: unknown): void {
  const [section, key] = path.split('.');
  if (key === undefined) target[section] = value;
  else target[section] = { ...(target[section] as object | undefined), [key]: value };
}
