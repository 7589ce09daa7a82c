// The pages of the built-in provider: HTML without scripts, with one stylesheet and a matching content security policy. The
// tag `html` escapes all values.

/** Escaped HTML. */
class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}
type Part = string | number | Html | readonly Html[] | undefined

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')

function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(String.raw({ raw: strings }, ...parts.map(textOf)))
}
function textOf(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  return typeof part === 'object' ? part.map(({ text }) => text).join('') : escaped(String(part))
}

export const styleName = 'style.css'
/** Forms may redirect only to this server, or to a command line that waits on the user's machine. */
const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self' http://127.0.0.1:*; base-uri 'none'; frame-ancestors 'none'"

export const pageHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': pagePolicy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // With `no-referrer`, browsers would send the form with `Origin: null`, which cannot be checked.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
}

function page(title: string, mount: string, content: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · svc3</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${mount}/${styleName}">
</head>
<body>
<main>
<p class="brand">svc3</p>
${content}
</main>
</body>
</html>
`.text
}

const problemText = (problem: string | undefined): Html | undefined =>
  problem === undefined ? undefined : html`<p class="problem" role="alert">${problem}</p>`

interface LoginForm {
  readonly mount: string
  readonly action: string
  readonly email?: string
  readonly problem?: string
}

export const loginPage = ({ mount, action, email = '', problem }: LoginForm): string =>
  page(
    'Log in',
    mount,
    html`<h1>Log in</h1>
${problemText(problem)}
<form method="post" action="${action}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${email}" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="320" required${focus(email === '')}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required${focus(email !== '')}>
<button type="submit">Log in</button>
</form>
<p class="small">Forgot your password? Ask an administrator of this server to reset it.</p>`,
  )

const focus = (on: boolean): Html => html`${on ? new Html(' autofocus') : ''}`

interface DeviceForm {
  readonly mount: string
  readonly action: string
  readonly secret: string
  readonly code?: string
  readonly problem?: string | undefined
}

export const deviceCodePage = ({ mount, action, secret, code = '', problem }: DeviceForm): string =>
  page(
    'Log in device',
    mount,
    html`<h1>Log in device</h1>
<p>Enter the code shown by <code>svc3 login --device</code>.</p>
${problemText(problem)}
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${secret}">
<label for="user_code">Code</label>
<input id="user_code" name="user_code" class="code" value="${code}" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="32" placeholder="ABCD-EFGH" required autofocus>
<button type="submit">Continue</button>
</form>`,
  )

interface ConfirmForm extends DeviceForm {
  readonly code: string
  readonly device: { readonly ip: string; readonly program: string }
}

export const deviceConfirmPage = ({ mount, action, secret, code, device }: ConfirmForm): string =>
  page(
    'Is this your device?',
    mount,
    html`<h1>Is this your device?</h1>
<p>Check that it shows this code. It will be logged in as you.</p>
<p class="code shown">${code}</p>
<dl><dt>Address</dt><dd>${device.ip}</dd><dt>Program</dt><dd>${device.program}</dd></dl>
<p class="warning">If someone sent you this link, or you did not just run <code>svc3 login</code>, choose Cancel.</p>
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${secret}">
<input type="hidden" name="user_code" value="${code}">
<button type="submit" name="confirm" value="yes">Log in device</button>
<button type="submit" name="abort" value="yes" class="quiet">Cancel</button>
</form>`,
  )

export const messagePage = (mount: string, title: string, text: string, more = ''): string =>
  page(
    title,
    mount,
    html`<h1>${title}</h1><p>${text}</p>${more === '' ? undefined : html`<p class="small">${more}</p>`}`,
  )

export const stylesheet = `:root { --ink: #1d2230; --soft: #5c6474; --line: #d4d9e2; --paper: #ffffff; --ground: #eef1f6; --accent: #1f5fd0; --on-accent: #ffffff; --bad: #a61b1b; --bad-ground: #fdecec; --warn-ground: #fff6df }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf2; --soft: #a3acbd; --line: #3a4252; --paper: #1c212c; --ground: #12151c; --accent: #7fb0ff; --on-accent: #0c1422; --bad: #ffb4b4; --bad-ground: #43191c; --warn-ground: #3a3018 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
main { width: 100%; max-width: 24rem; padding: 2rem; background: var(--paper); border: 1px solid var(--line); border-radius: .75rem; box-shadow: 0 1px 3px rgb(0 0 0 / .08), 0 8px 24px rgb(0 0 0 / .06) }
.brand { margin: 0 0 1.25rem; font-weight: 700; letter-spacing: .02em; color: var(--accent) }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25 }
p { margin: 0 0 1rem; overflow-wrap: anywhere }
label { display: block; margin: 0 0 .25rem; font-weight: 600 }
input { display: block; width: 100%; margin: 0 0 1rem; padding: .625rem .75rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: .5rem }
input:focus-visible, button:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px }
button { display: block; width: 100%; margin: .5rem 0 0; padding: .6875rem .75rem; font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: .5rem; cursor: pointer }
button:hover { filter: brightness(1.08) }
button.quiet { color: var(--ink); background: transparent; border-color: var(--line) }
.problem, .warning { padding: .625rem .75rem; border-radius: .5rem }
.problem { color: var(--bad); background: var(--bad-ground) }
.warning { background: var(--warn-ground) }
.code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; letter-spacing: .12em; text-transform: uppercase }
.shown { font-size: 1.75rem; text-align: center; border: 1px dashed var(--line); border-radius: .5rem; padding: .5rem }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .9375em; white-space: nowrap }
dl { display: grid; grid-template-columns: auto 1fr; gap: .25rem 1rem; margin: 0 0 1rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.small { margin: 1.25rem 0 0; font-size: .875rem; color: var(--soft) }
@media (max-width: 26rem) { body { padding: 0; place-items: start stretch; background: var(--paper) } main { max-width: none; border: 0; border-radius: 0; box-shadow: none; padding: 1.5rem 1.25rem } }
`
