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
    const messages = [answered?.message ?? `The server answered ${answer.status}.`].flat();
    throw new Error(messages.map(sentence).join(' '));
  }

  /** The names that the page gives to the fields of a request. */
  const LABELS = { app_user_id: 'your user id', permissions: 'the permissions', bank_identifier: 'the bank' };

  /** The validation of the server says "permissions should not be empty". */
  function sentence(message) {
    const named = message.replace(/\b[a-z]+(_[a-z]+)*\b/g, (word) => LABELS[word] ?? word);
    return named.charAt(0).toUpperCase() + named.slice(1) + (/[.!?]$/.test(named) ? '' : '.');
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
      showOutcome(outcome.status, await describe(outcome, parameters));
    } catch (error) {
      showOutcome('refused', error.message);
    }
  });

  /** What came of a session, and what the browser had for it. The token itself is not shown. */
  async function describe({ status, reason }, { access_token, app_token, customer_id }) {
    if (status !== 'connected') return status === 'cancelled' ? 'Cancelled' : reason;
    const had = [];
    if (access_token) {
      const { expires_at } = await request('GET', '/page/customer-token');
      const until = new Date(expires_at).toLocaleTimeString();
      had.push(`an access token for customer ${customer_id}, valid until ${until}`);
    }
    if (app_token) had.push('the app token, which is the same for all customers and has no end');
    return `Connected. The browser had ${had.join(', and ')}.`;
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
    const impossible = faults.filter((fault) => fault.impossible);
    show('impossible-faults', impossible.map((fault) => `${fault.title}: ${fault.impossible}.`).join(' '));
  }

  function faultButton({ name, title, impossible }) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = title;
    button.disabled = impossible !== undefined;
    if (button.disabled) button.setAttribute('aria-describedby', 'impossible-faults');
    button.addEventListener('click', () => void busy(button, () => injectFault(name, title)));
    return button;
  }

  async function injectFault(name, title) {
    const mode = byId('mode').value;
    const tell = (text) => byId('mode').value === mode && show('fault-outcome', `${title}${text}`);
    tell(' …');
    try {
      await request('POST', '/page/faults', { name });
      const count = await listBanks();
      tell(`: recovered, ${count} banks.`);
    } catch (error) {
      tell(`: ${error.message}`);
    }
  }

  byId('mode').addEventListener('change', async ({ target }) => {
    // What was said is of the mode before.
    show('fault-outcome', '');
    showOutcome('none', '');
    await request('POST', '/page/mode', { mode: target.value }).catch((error) =>
      show('fault-outcome', error.message),
    );
    await loadBanks();
  });

  const events = new EventSource('/page/events');
  const listen = (type, handle) => events.addEventListener(type, ({ data }) => handle(JSON.parse(data)));
  // The last calls are sent again on each connection.
  events.addEventListener('open', () => byId('calls').replaceChildren());
  listen('choices', (choices) => {
    offerModes(choices);
    offerFaults(choices);
  });
  listen('status', showStatus);
  listen('call', showCall);

  void loadBanks();
})();
