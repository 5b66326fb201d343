/** Runs a function while the process says that it is Bun of this version. */
export async function onBun<Result>(version: string, run: () => Promise<Result>): Promise<Result> {
  const found = Object.getOwnPropertyDescriptor(process, 'versions')!;
  Object.defineProperty(process, 'versions', { ...found, value: { ...process.versions, bun: version } });
  try {
    return await run();
  } finally {
    Object.defineProperty(process, 'versions', found);
  }
}
