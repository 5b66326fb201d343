// The page of the sample. It talks to its own server only, and never sees the client secret, a key or the api token.
(() => {
  const MAX_CALLS = 20;
  const byId = (id) => document.getElementById(id);

  function show(id, text) {
    byId(id).textContent = text;
  }

  function showOutcome(kind, text) {
    byId('outcome').dataset.kind = kind;
    show('outcome', text);
  }

  /** Resolves to the body; rejects with the server's message. */
  async function request(method, path, body) {
    const answer = await fetch(path, {
      method,
      headers: body && { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const answered = await answer.json().catch(() => undefined);
    if (answer.ok) return answered;
    throw new Error([answered?.message ?? `The server answered ${answer.status}.`].flat().join(' '));
  }

  /** Runs the work of a form or a button, which cannot be used meanwhile. */
  async function busy(button, work) {
    button.disabled = true;
    try {
      await work();
    } finally {
      const wasFocused = document.activeElement === document.body;
      button.disabled = false;
      if (wasFocused) button.focus();
    }
  }

  function onSubmit(id, work) {
    byId(id).addEventListener('submit', (event) => {
      event.preventDefault();
      void busy(event.submitter, () => work(new FormData(event.target)));
    });
  }

  onSubmit('customer-form', async (form) => {
    try {
      const { customer_id } = await request('POST', '/page/customers', {
        app_user_id: form.get('app_user_id'),
      });
      show('customer', `Customer ${customer_id} was created, and belongs to your visit of this page.`);
      showOutcome('none', '');
    } catch (error) {
      show('customer', `No customer was created: ${error.message}`);
    }
  });

  onSubmit('session-form', async (form) => {
    showOutcome('waiting', 'Starting a session …');
    try {
      const parameters = await request('POST', '/page/link-session', {
        permissions: form.getAll('permissions'),
        ...(form.get('bank_identifier') && { bank_identifier: form.get('bank_identifier') }),
      });
      if (globalThis.Service === undefined)
        throw new Error('The LinkSDK of the service is not on this page.');
      const outcome = await new Promise((resolve) => Service.connect(parameters, resolve));
      showOutcome(outcome.status, describe(outcome));
    } catch (error) {
      showOutcome('refused', error.message);
    }
  });

  function describe({ status, reason }) {
    if (status === 'connected') return 'Connected';
    return status === 'cancelled' ? 'Cancelled' : reason;
  }

  async function listBanks() {
    const banks = await request('GET', '/page/banks');
    const options = banks.map(({ bank_identifier, name }) => new Option(name, bank_identifier));
    const chosen = byId('bank').value;
    byId('bank').replaceChildren(new Option('Any bank', ''), ...options);
    if (banks.some(({ bank_identifier }) => bank_identifier === chosen)) byId('bank').value = chosen;
    return banks.length;
  }

  function loadBanks() {
    return listBanks().then(
      () => show('banks', ''),
      (error) => show('banks', `The banks could not be listed: ${error.message}`),
    );
  }

  function showStatus({ environment, authentication, address, certificate, apiToken }) {
    show('environment', environment);
    show('authentication', authentication);
    show('address', address);
    show('certificate', certificate);
    show('api-token', apiToken);
  }

  function showCall({ method, path, status, attempts, durationMs, failed }) {
    const row = document.createElement('tr');
    if (failed) row.dataset.failed = '';
    for (const [index, text] of [`${method} ${path}`, status, attempts, `${durationMs} ms`].entries()) {
      const cell = row.insertCell();
      cell.textContent = text;
      if (index > 1) cell.className = 'number';
    }
    const calls = byId('calls');
    calls.prepend(row);
    while (calls.rows.length > MAX_CALLS) calls.deleteRow(-1);
  }

  function offerModes({ modes, mode }) {
    byId('mode-choice').hidden = modes.length === 0;
    byId('mode').replaceChildren(
      ...modes.map(({ name, title }) => new Option(title, name, false, name === mode)),
    );
  }

  function offerFaults({ faults }) {
    byId('fault-choice').hidden = faults.length === 0;
    byId('faults').replaceChildren(...faults.map(faultButton));
  }

  function faultButton({ name, title }) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = title;
    button.addEventListener('click', () => void busy(button, () => injectFault(name, title)));
    return button;
  }

  async function injectFault(name, title) {
    show('fault-outcome', `${title} …`);
    try {
      await request('POST', '/page/faults', { name });
      const count = await listBanks();
      show('fault-outcome', `${title}: recovered, ${count} banks.`);
    } catch (error) {
      show('fault-outcome', `${title}: ${error.message}`);
    }
  }

  byId('mode').addEventListener('change', async ({ target }) => {
    await request('POST', '/page/mode', { mode: target.value }).catch((error) =>
      show('fault-outcome', error.message),
    );
    await loadBanks();
  });

  const events = new EventSource('/page/events');
  const listen = (type, handle) => events.addEventListener(type, ({ data }) => handle(JSON.parse(data)));
  listen('choices', (choices) => {
    offerModes(choices);
    offerFaults(choices);
    byId('calls').replaceChildren();
  });
  listen('status', showStatus);
  listen('call', showCall);

  void loadBanks();
})();
