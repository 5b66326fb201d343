/** Where this room's few lines for people go: never with a key, a passphrase or PEM text. */
export type Log = (level: 'log' | 'warn' | 'error', message: string) => void;
