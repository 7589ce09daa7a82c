// Creates the context that a command's `run` gets: output in the requested format, and the connection to the service.

import { isLoopback } from '../rules/addresses.ts'
import { asTyped } from './called-as.ts'
import type { CommandTable, Context } from './command.ts'
import { chooseNamespace, findConnection, type ServerConnection } from './connect/connection.ts'
import { withKubeNamespace } from './connect/kube-namespace.ts'
import { renewToken } from './connect/renew.ts'
import { openClient } from './connect/session.ts'
import { meetServer } from './connect/trust.ts'
import type { Host } from './host.ts'
import type { Parsed } from './line/parse.ts'
import { type Format, type Rendering, render } from './output/output.ts'

interface ContextInput {
  readonly host: Host
  readonly parsed: Parsed
  readonly signal: AbortSignal
  readonly secrets: Set<string>
  readonly commands: CommandTable
}

/** A token with less time left could expire during the command. */
const renewBeforeMs = 60_000

export function createContext({ host, parsed, signal, secrets, commands }: ContextInput): Context {
  const { options } = parsed
  const format = (options.output ?? 'table') as Format
  const isData = format === 'json' || format === 'yaml'
  const isTalking = !isData && options.quiet !== true
  const note = (text: string): void => {
    if (isTalking) host.stderr.write(`${host.calledAs}: ${asTyped(text, host)}\n`)
  }
  const rendering = (): Rendering => {
    const { isTerminal } = host.stdout
    const color = isTerminal && options['no-color'] !== true && hasColor(host.env)
    return { format, isTerminal, color, now: host.now(), ...(isTerminal && { columns: widthOf(host) }) }
  }
  let hasWarned = false
  const warnOfClearText = ({ apiUrl, token }: ServerConnection): void => {
    if (hasWarned || token === undefined || isLoopback(new URL(apiUrl).hostname)) return
    hasWarned = true
    note(`The token is sent unencrypted to ${apiUrl}; use https:// to protect it`)
  }
  let hasNamed = false
  /** Prints a note, on terminals only, because scripts set the environment on purpose. */
  const nameOverridden = ({ apiUrl, overridden }: ServerConnection): void => {
    if (hasNamed || overridden === undefined || !host.stderr.isTerminal) return
    hasNamed = true
    const variable = host.env.SVC3_API_URL ? 'SVC3_API_URL' : 'SVC3_DATA'
    note(`Using ${apiUrl} (${variable}), not context ${overridden}`)
  }
  return {
    host,
    format,
    isData,
    signal,
    commands,
    isTalking,
    secrets,
    note,
    async connection() {
      const found = await withKubeNamespace(host, findConnection(host))
      const { token, tokenExpiresAt, renewal } = found
      for (const secret of [token, renewal?.refreshToken]) if (secret) secrets.add(secret)
      if (!renewal || Date.parse(tokenExpiresAt ?? '') - host.now().getTime() > renewBeforeMs) return found
      return renewToken(this, found)
    },
    async connect(limits = {}) {
      const connection = await this.connection()
      nameOverridden(connection)
      if (connection.apiUrl.startsWith('https:')) await meetServer(host, connection, signal)
      else warnOfClearText(connection)
      const namespace = chooseNamespace(host, options.namespace as string | undefined, connection)
      const flags = ['namespace', 'context'].map((name) => {
        const given = options[name]
        return given === undefined ? '' : ` ${name === 'namespace' ? '-n' : '--context'} ${given}`
      })
      const client = openClient(host, connection, { ...limits, secrets })
      return { client, namespace, sameTargetFlags: flags.join(''), apiUrl: connection.apiUrl }
    },
    async print(items, columns, none) {
      if (format === 'table' && items.length === 0 && host.stdout.isTerminal) return note(none)
      host.stdout.write(await render(items, columns, rendering()))
    },
    rendering,
    async done(sentence, record) {
      if (isData) return this.print(Array.isArray(record) ? record : [record], [], sentence)
      if (options.quiet !== true) host.stdout.write(`${asTyped(sentence, host)}\n`)
    },
  }
}

/** The caller checks for a terminal, because scripts rely on the bytes of a pipe even if FORCE_COLOR is set. */
const hasColor = ({ NO_COLOR, FORCE_COLOR, TERM }: Host['env']): boolean =>
  !NO_COLOR && FORCE_COLOR !== '0' && (TERM !== 'dumb' || Boolean(FORCE_COLOR))

/** Some terminals report a width of 0. */
const widthOf = ({ stdout, env }: Host): number | undefined => stdout.columns || Number(env.COLUMNS) || undefined
