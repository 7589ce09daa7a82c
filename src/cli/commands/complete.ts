// svc3 __complete: prints completions for shells. Answers quickly, and prints nothing on errors.

import { defineCommand, type Names } from '../command.ts'
import { fieldsOf, readCliConfig } from '../connect/connection.ts'
import { isLive, liveNames } from '../connect/names.ts'
import type { Host } from '../host.ts'
import { type Completion, type Cursor, cursorOf } from '../line/complete.ts'

/** Together with the start of the program, this is less than a second, after which users type the rest themselves. */
export const namesTimeoutMs = 600
const testTimeoutMs = 60_000

export const command = defineCommand({
  description:
    'For the scripts of svc3 completion. Prints the candidates for the last WORD, each with a tab and a description;\nthe last line is ":files", ":folders" or ":", which tells the shell what else to offer.',
  arguments: {
    words: {
      value: 'WORD',
      description: 'words typed so far; the last one is under the cursor',
      repeatable: true,
      afterDashes: true,
    },
  },
  options: { 'no-descriptions': { type: 'boolean', description: 'Leave the descriptions empty' } },
  examples: [{ line: 'svc3 __complete -- vm de', does: 'Show the candidates for svc3 vm de' }],
  async run({ host, commands }, { args: { words }, options }) {
    const current = words.at(-1) ?? ''
    try {
      const cursor = await cursorOf(commands, words.slice(0, -1), current)
      const candidates = (await candidatesOf(host, cursor))
        .map(({ value, description }) => ({ value: cursor.prefix + value, description }))
        .filter(({ value }) => value.startsWith(current) && /^[\x21-\x7e]+$/.test(value))
      const about = (text: string): string | undefined => (options['no-descriptions'] ? '' : text.split('\n')[0])
      const lines = candidates.map(({ value, description }) => `${value}\t${about(description)}\n`)
      const directive = cursor.names === 'files' || cursor.names === 'folders' ? cursor.names : ''
      host.stdout.write(`${lines.join('')}:${directive}\n`)
    } catch {
      host.stdout.write(':\n')
    }
  },
})

async function candidatesOf(host: Host, cursor: Cursor): Promise<readonly Completion[]> {
  if (cursor.names === undefined) return cursor.words
  const { without } = cursor
  const names = await namesOf(host, cursor, cursor.names)
  return names.filter((value) => !without.includes(value)).map((value) => ({ value, description: '' }))
}

async function namesOf(host: Host, { namespace, context }: Cursor, names: Names): Promise<readonly string[]> {
  if (names === 'contexts') return Object.keys(fieldsOf(readCliConfig(host).config?.contexts) ?? {})
  if (!isLive(names)) return []
  const elsewhere = { SVC3_CONTEXT: context, SVC3_API_URL: undefined, SVC3_TOKEN: undefined }
  const target = context === undefined ? host : { ...host, env: { ...host.env, ...elsewhere } }
  const timeoutMs = host.env.SVC3_TEST === '1' ? testTimeoutMs : namesTimeoutMs
  return liveNames(target, { kind: names, namespace, timeoutMs })
}
