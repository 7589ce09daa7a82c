// The mapping as an HTML page of the service, with an anchor for each row, which legacy answers link to.
import { operationsText, reasonFor } from './advice.ts'
import { rowsByGroup } from './map.ts'
import type { LegacyRow } from './row.ts'

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '')
const codes = (texts: readonly string[]): string => texts.map((text) => `<code>${escaped(text)}</code>`).join('<br>')

function line(row: LegacyRow): string {
  const reason = reasonFor(row)
  const kept = row.kept === undefined ? '' : `<br>Kept: ${escaped(row.kept)}`
  const by = reason === undefined ? codes(row.operations.map((each) => operationsText([each]))) : escaped(reason)
  const calls = codes(row.calls.map(({ method, path }) => `${method} ${path}`))
  return `<tr id="${row.anchor}"><td>${calls}</td><td>${by}${kept}</td><td>${codes(row.commands)}</td></tr>`
}

export function legacyHtml(): string {
  const tables = Array.from(
    rowsByGroup,
    ([group, rows]) =>
      `<h2>${group}</h2>\n<table>\n<tr><th>2.4.x</th><th>Now</th><th>Command</th></tr>\n${rows.map(line).join('\n')}\n</table>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc3: the legacy 2.4.x API</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border: 1px solid #999; padding: .3rem .5rem; text-align: left; vertical-align: top }
tr:target { outline: 3px solid #d60 }
</style>
</head>
<body>
<h1>The legacy 2.4.x API</h1>
<p>What replaces each call, or why nothing does. <code>svc3 migrate map</code> prints the same,
<code>svc3 migrate scan</code> finds the calls in scripts and logs.
<a href="/api/v1/swagger">The API of this service</a></p>
${tables.join('\n')}
</body>
</html>
`
}
