// The other end of harness.mjs's startProcess: takes its setup and then questions over IPC, ends with its parent.

/** @param open takes the setup, resolves to what is sent back as `ready` and the function that answers questions */
export function respond(open) {
  process.once('message', async (setup) => {
    const { ready, answer } = await open(setup);
    process.on('message', async (question) => process.send({ answer: await answer(question) }));
    process.send({ answer: ready });
  });
  process.once('disconnect', () => process.exit(0));
}

/** Listens on loopback; resolves to the port. */
export function listen(server) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // Many cold callers connect at the same moment.
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => resolve(server.address().port));
  });
}
