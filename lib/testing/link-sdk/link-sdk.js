// Stands in for the service's LinkSDK in the browser: Service.connect(parameters, onOutcome).
//
// The outcome is one of
//   { status: 'connected', customer_id, permissions, bank_identifier? }
//   { status: 'cancelled' }
//   { status: 'refused', reason }
(() => {
  const sessions = new URL('link-sdk/sessions', document.currentScript.src);

  const STYLE = `
    :host { color-scheme: light dark; }
    dialog {
      font: 1rem/1.5 system-ui, sans-serif;
      color: light-dark(#1a2233, #e8ecf4);
      background: light-dark(#fff, #1b2230);
      border: 1px solid light-dark(#c9d1de, #3a465c);
      border-radius: 1rem;
      box-shadow: 0 1.5rem 4rem rgb(0 0 0 / 35%);
      box-sizing: border-box;
      width: min(26rem, calc(100vw - 2rem));
      padding: 1.5rem;
    }
    dialog::backdrop { background: rgb(10 15 28 / 60%); }
    h2 { font-size: 1.25rem; margin: 0 0 0.5rem; }
    p { margin: 0 0 0.75rem; }
    ul { margin: 0 0 1.25rem; padding-left: 1.25rem; }
    .buttons { display: flex; gap: 0.75rem; justify-content: flex-end; }
    button {
      font: inherit;
      font-weight: 600;
      min-height: 2.75rem;
      padding: 0 1.25rem;
      border-radius: 0.6rem;
      border: 1px solid light-dark(#7b8799, #7d8aa3);
      background: transparent;
      color: inherit;
      cursor: pointer;
    }
    button.allow { border-color: transparent; background: light-dark(#2148c7, #9db5ff); color: light-dark(#fff, #0d1630); }
    button:focus-visible { outline: 3px solid light-dark(#2148c7, #9db5ff); outline-offset: 2px; }
  `;

  function element(name, properties = {}, children = []) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  /** Resolves to whether the customer allows it. The dialog has its own styles, and leaves the page's alone. */
  function ask({ permissions, bank_identifier }) {
    return new Promise((resolve) => {
      const host = element('div');
      const root = host.attachShadow({ mode: 'open' });
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      root.adoptedStyleSheets = [sheet];

      const cancel = element('button', { type: 'button', textContent: 'Cancel' });
      const allow = element('button', { type: 'button', textContent: 'Allow', className: 'allow' });
      const dialog = element('dialog', {}, [
        element('h2', { id: 'title', textContent: 'Connect your bank' }),
        element('p', { textContent: `${bank_identifier ?? 'Any bank'}. This application asks for:` }),
        element(
          'ul',
          {},
          permissions.map((textContent) => element('li', { textContent })),
        ),
        element('div', { className: 'buttons' }, [cancel, allow]),
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
