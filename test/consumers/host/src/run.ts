/** Runs a program of the host. It fails where it throws, and where it ends before all is done. */
export function run(main: () => Promise<void>): void {
  process.exitCode = 1;
  main().then(
    () => (process.exitCode = 0),
    (error: unknown) => console.error(error),
  );
}
