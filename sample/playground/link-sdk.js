// A fake of the service's LinkSDK in the browser: Service.connect(parameters, onOutcome).
//
// The outcome is one of
//   { status: 'connected', customer_id, permissions, bank_identifier? }
//   { status: 'cancelled' }
//   { status: 'refused', reason }
(() => {
  const sessions = new URL('link-sdk/sessions', document.currentScript.src);

  const STYLE = `
    :host { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
    dialog { border: 1px solid; border-radius: 1rem; width: min(26rem, 90vw); padding: 1.5rem; }
    button { font: inherit; padding: 0.5rem 1.25rem; margin-right: 0.75rem; }
  `;

  function element(name, properties = {}, children = []) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  /** Asks the customer in a dialog, and resolves to whether the customer allows it. A shadow root isolates the styles. */
  function ask({ permissions, bank_identifier }) {
    return new Promise((resolve) => {
      const host = element('div');
      const root = host.attachShadow({ mode: 'open' });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];

      const cancel = element('button', { type: 'button', textContent: 'Cancel' });
      const allow = element('button', { type: 'button', textContent: 'Allow' });
      const dialog = element('dialog', {}, [
        element('h2', { id: 'title', textContent: 'Connect your bank' }),
        element('p', { textContent: `${bank_identifier ?? 'Any bank'}. This application asks for:` }),
        element(
          'ul',
          {},
          permissions.map((textContent) => element('li', { textContent })),
        ),
        element('div', {}, [cancel, allow]),
      ]);
      dialog.setAttribute('aria-labelledby', 'title');
      cancel.addEventListener('click', () => dialog.close());
      allow.addEventListener('click', () => dialog.close('allow'));
      dialog.addEventListener('close', () => {
        host.remove();
        resolve(dialog.returnValue === 'allow');
      });
      root.append(dialog);
      document.body.append(host);
      dialog.showModal();
    });
  }

  async function begin(parameters) {
    const answer = await fetch(sessions, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(parameters),
    });
    const body = await answer.json();
    if (!answer.ok) return { status: 'refused', reason: body.message };
    return (await ask(body)) ? { status: 'connected', ...body } : { status: 'cancelled' };
  }

  globalThis.Service = Object.freeze({
    /** Starts a session, asks the customer, and calls back once with the outcome. */
    connect(parameters, onOutcome) {
      begin(parameters)
        .catch(() => ({ status: 'refused', reason: 'The service could not be reached.' }))
        .then(onOutcome);
    },
  });
})();
