// svc3 console: opens the web console in a browser, with a link that logs in once.

import fs from 'node:fs/promises'
import path from 'node:path'
import * as t from 'typebox'
import { ApiError } from '../../api/errors.ts'
import { operation } from '../../api/operation.ts'
import { writeFileAtomically } from '../../platform/files.ts'
import { connected, defineCommand } from '../command.ts'
import { hasBrowser, openBrowser } from '../connect/browser.ts'
import { configFile } from '../connect/config.ts'
import { serverOf } from '../connect/connection.ts'
import type { Host } from '../host.ts'
import { Failure } from '../line/usage.ts'

/** An operation of the console's server, not of the API. */
const createTicket = operation({
  id: 'createConsoleTicket',
  noun: 'console',
  method: 'POST',
  path: '/console/ticket',
  allow: 'user',
  status: 201,
  summary: 'Create a link that logs a browser in',
  response: t.Object({ ticket: t.String(), expiresAt: t.String() }),
  refuses: [],
  example: { response: { ticket: 'a-ticket', expiresAt: '2026-11-15T10:00:00Z' } },
})

/** Writes a private page that redirects to the link, because all users of the machine can see a browser's arguments. */
async function privatePage(host: Host, link: string): Promise<string> {
  const file = path.join(path.dirname(configFile(host)), 'console.html')
  const { href } = new URL(link)
  const text = `<!doctype html><title>svc3</title><meta http-equiv="refresh" content="0;url=${href}">\n`
  await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomically(file, text, { mode: 0o600 })
  return file
}

export const command = defineCommand({
  description: 'Opens the web console in your browser, logged in as you. The link works once, within 5 minutes.',
  arguments: {},
  options: {
    'no-browser': { type: 'boolean', description: 'Print the link instead of opening it' },
    ...connected,
  },
  examples: [
    { line: 'svc3 console', does: 'Open the console' },
    { line: 'svc3 console --no-browser', does: 'Print a link for a browser on another machine' },
  ],
  async run(context, { options }) {
    const { host, signal, secrets } = context
    const { client, apiUrl } = await context.connect()
    const { ticket } = await client.call(createTicket, { signal }).catch(async (error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== 'NotFound') throw error
      throw new Failure(
        `${serverOf(await context.connection())} has no console`,
        'Check console.enabled in config.json and the version of the server',
      )
    })
    const page = `${apiUrl}/console/`
    const link = `${page}#ticket=${ticket}`
    if (options['no-browser'] || !hasBrowser(host)) {
      context.note('Open this link in a browser. It logs you in, works once and expires in 5 min')
      host.stdout.write(`${link}\n`)
      return 0
    }
    secrets.add(ticket)
    openBrowser(host, await privatePage(host, link))
    host.stdout.write(
      `Opening ${page} in your browser. If it does not open, run ${host.typedAs} console --no-browser\n`,
    )
  },
})
