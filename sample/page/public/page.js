// The page of the sample. It calls its own server only, and never receives the client secret, a private key or the API
// token. It passes the customer token on to the LinkSDK, and shows only the length of that token.
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

  function element(name, text, children = []) {
    const made = document.createElement(name);
    made.append(text, ...children);
    return made;
  }

  /** Resolves to the body. Rejects with the server's message and its hint. */
  async function request(method, path, body) {
    const answer = await fetch(path, {
      method,
      headers: body && { 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    const answered = await answer.json().catch(() => undefined);
    if (answer.ok) return answered;
    const messages = [answered?.message ?? `The server answered ${answer.status}.`].flat();
    throw new Error([...messages.map(sentence), answered?.hint ?? ''].join(' ').trim());
  }

  /** The labels that the page shows for the fields of a request. */
  const LABELS = { app_user_id: 'your user id', permissions: 'the permissions', bank_identifier: 'the bank' };

  /** Turns a validation message such as "permissions should not be empty" into a sentence with the page's labels. */
  function sentence(message) {
    const named = message.replace(/\b[a-z]+(_[a-z]+)*\b/g, (word) => LABELS[word] ?? word);
    return named.charAt(0).toUpperCase() + named.slice(1) + (/[.!?]$/.test(named) ? '' : '.');
  }

  /** Disables the button while the work runs. */
  async function busy(button, work) {
    button.disabled = true;
    try {
      await work();
    } finally {
      const wasFocused = document.activeElement === document.body;
      button.disabled = button === byId('connect') && !customer;
      if (wasFocused) button.focus();
    }
  }

  function onSubmit(id, work) {
    byId(id).addEventListener('submit', (event) => {
      event.preventDefault();
      void busy(event.submitter, () => work(new FormData(event.target)));
    });
  }

  let mode;
  /** The customer id of this visit, in the current mode. */
  let customer;

  function useCustomer(id, text) {
    customer = id;
    show('customer', text);
    byId('connect').disabled = !id;
    byId('connect-hint').hidden = Boolean(id);
    byId('parameters').hidden = true;
    showOutcome('none', '');
  }

  const NO_CUSTOMER = byId('customer').textContent;

  /** Clears the customer and the messages, which belong to the previous mode. */
  function useMode(name) {
    const before = mode;
    mode = name;
    if (before === undefined || before === name) return;
    useCustomer(undefined, NO_CUSTOMER);
    show('fault-outcome', '');
  }

  // The service accepts each user id only once, so each visit starts with a new one.
  document.getElementById('user-id').value = `user-${crypto.randomUUID().slice(0, 8)}`;

  onSubmit('customer-form', async (form) => {
    try {
      const { customer_id } = await request('POST', '/page/customers', {
        app_user_id: form.get('app_user_id'),
      });
      useCustomer(customer_id, `Customer ${customer_id} belongs to your visit of this page.`);
    } catch (error) {
      show('customer', `No customer was created or found: ${error.message}`);
    }
  });

  onSubmit('session-form', async (form) => {
    showOutcome('waiting', 'Starting a session …');
    try {
      const parameters = await request('POST', '/page/link-session', {
        permissions: form.getAll('permissions'),
        ...(form.get('bank_identifier') && { bank_identifier: form.get('bank_identifier') }),
      });
      await showParameters(parameters);
      if (globalThis.Service === undefined)
        throw new Error('The LinkSDK of the service is not loaded on this page.');
      // From here on, the dialog of the LinkSDK shows the progress.
      showOutcome('none', '');
      const { status, reason } = await new Promise((resolve) => Service.connect(parameters, resolve));
      showOutcome(status, { connected: 'Connected.', cancelled: 'Cancelled.' }[status] ?? reason);
    } catch (error) {
      showOutcome('refused', error.message);
    }
  });

  /** Shows the parameters of the session, with lengths instead of tokens. */
  async function showParameters({ access_token, app_token, permissions, ...others }) {
    const shown = {};
    if (app_token)
      shown.app_token = `${app_token.length} characters, the same for all customers, without an end`;
    if (access_token) {
      const { expires_at } = await request('GET', '/page/customer-token');
      const until = new Date(expires_at).toLocaleTimeString();
      shown.access_token = `${access_token.length} characters, for this customer, until ${until}`;
    }
    Object.assign(shown, others, { permissions: permissions.join(', ') });
    const rows = Object.entries(shown).map(([name, value]) =>
      element('div', '', [element('dt', name), element('dd', value)]),
    );
    byId('parameters')
      .querySelector('dl')
      .replaceChildren(...rows);
    byId('parameters').hidden = false;
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

  function showCall({ method, path, status, failed, mode, attempts, durationMs, credentials = [] }) {
    const call = element('li', '', [
      element('strong', `${method} ${path}`),
      element('strong', status),
      element('span', `${mode}: ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}, ${durationMs} ms`),
      element(
        'ul',
        '',
        credentials.map((credential) => element('li', credential)),
      ),
    ]);
    if (failed) call.dataset.failed = '';
    const calls = byId('calls');
    calls.prepend(call);
    while (calls.children.length > MAX_CALLS) calls.lastChild.remove();
  }

  function offerModes({ modes, mode: used }) {
    useMode(used ?? '');
    byId('mode-choice').hidden = byId('calls-hint').hidden = modes.length === 0;
    byId('mode').replaceChildren(
      ...modes.map(({ name, title }) => new Option(title, name, false, name === used)),
    );
  }

  function offerFaults({ faults }) {
    byId('fault-choice').hidden = faults.length === 0;
    byId('faults').replaceChildren(...faults.map(faultButton));
    const reasons = Map.groupBy(
      faults.filter((fault) => fault.impossible),
      (fault) => fault.impossible,
    );
    const told = [...reasons].map(
      ([reason, group]) => `${group.map(({ title }) => title).join(', ')}: ${reason}.`,
    );
    show('impossible-faults', told.join(' '));
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
    const injectedIn = mode;
    const tell = (text) => mode === injectedIn && show('fault-outcome', `${title}${text}`);
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
    useMode(target.value);
    await request('POST', '/page/mode', { mode: target.value }).catch((error) =>
      show('fault-outcome', error.message),
    );
    await loadBanks();
  });

  const events = new EventSource('/page/events');
  const listen = (type, handle) => events.addEventListener(type, ({ data }) => handle(JSON.parse(data)));
  // After a reconnect the server sends the last calls again, so remove those that are shown.
  events.addEventListener('open', () => byId('calls').replaceChildren());
  listen('choices', (choices) => {
    offerModes(choices);
    offerFaults(choices);
  });
  listen('status', showStatus);
  listen('call', showCall);

  void loadBanks();
})();
