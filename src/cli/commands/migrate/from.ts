// svc3 migrate from
import fs from 'node:fs'
import path from 'node:path'
import { parseJson } from '../../../api/json.ts'
import { createClient } from '../../../client/client.ts'
import type { Transport } from '../../../client/transport.ts'
import { writeFileAtomically } from '../../../platform/files.ts'
import { type Context, connected, defineCommand, type Options, printed } from '../../command.ts'
import { checkUrl, fieldsOf, textField } from '../../connect/connection.ts'
import { readPassword } from '../../connect/password.ts'
import { transportFor } from '../../connect/session.ts'
import { meetServer } from '../../connect/trust.ts'
import { readInputFile } from '../../input.ts'
import { Failure, UsageError } from '../../line/usage.ts'
import { kinds, runningVm } from './kinds.ts'
import { carryOut, makePlan, type Outcome, type Run, readPlan } from './plan.ts'
import { filesSource, liveSource, type Source, SourceRefusal } from './source.ts'

const names = ['kind', 'namespace', 'name', 'result', 'reason'] as const
const columns = names.map((name) => ({ header: name.toUpperCase(), cell: (row: Outcome) => row[name] || undefined }))

const options = {
  plan: { type: 'string', value: 'FILE', description: 'Write the plan, to review and edit it' },
  apply: { type: 'boolean', description: 'Carry missing records over' },
  check: { type: 'boolean', description: 'Print only records that are missing or different' },
  'token-file': { type: 'string', value: 'FILE', description: 'Token of the source (default: asked)' },
  passwords: { type: 'string', value: 'FILE', description: 'JSON: passwords by "SERVER" or "NAMESPACE SERVER"' },
  registry: { type: 'string', value: 'HOST/REPOSITORY', description: 'Passes images of Apple silicon on' },
  folder: { type: 'string', value: 'FOLDER', default: 'svc3-migration', description: 'For tokens and disks' },
  ...connected,
  ...printed,
} as const satisfies Options

export const command = defineCommand({
  description:
    'Carries a cluster of Orka 3.x over: namespaces, service accounts, role bindings, registry credentials, nodes, images, ISOs and\n' +
    'VM configurations. Changes nothing without --apply. Existing records are not changed, so the same command resumes.\n' +
    'Exits with 1 if something is missing after --apply or --check. For administrators of both clusters.',
  arguments: {
    source: { value: 'SOURCE', description: 'address, folder of files, or plan', names: 'files', required: true },
  },
  options,
  examples: [
    { line: 'svc3 migrate from http://10.221.188.20 --plan plan.json', does: 'Show what would be carried over' },
    { line: 'svc3 migrate from plan.json --apply --passwords passwords.json', does: 'Carry it over' },
    { line: 'svc3 migrate from http://10.221.188.20 --token-file token --check', does: 'Show missing records' },
  ],
  async run(context, { args, options: { apply: isApplied, check, registry, passwords, ...files } }) {
    if (isApplied && check) throw new UsageError('Use either --apply or --check')
    const at = (file: string): string => path.resolve(context.host.workingDir, file)
    const place = isAddress(args.source) ? args.source : at(args.source)
    const known = fs.statSync(place, { throwIfNoEntry: false })?.isFile() ? readPlan(context.host, place) : undefined
    const source = await openSource(context, known?.source ?? place, files['token-file'])
    const plan = known ?? (await makePlan(kinds, place, source))
    if (files.plan) await writeFileAtomically(at(files.plan), `${JSON.stringify(plan, null, 2)}\n`)
    const passwordOf = passwordsIn(context, passwords)
    const shared = { context, source, space: plan.space, folder: at(files.folder), registry, isApplied, passwordOf }
    const run = { ...(await context.connect()), ...shared }
    const outcomes: Outcome[] = []
    const failed = await carryOut(kinds, plan, run, outcomes).catch((error: unknown) => ({ error }))
    const missing = outcomes.filter(({ kind, result }) => kind !== runningVm && /^(to|not) carr/.test(result))
    const shown = check ? missing : outcomes
    if (!failed || shown.length > 0) await context.print(shown, columns, 'Nothing is missing.')
    const counts = [...Map.groupBy(outcomes, ({ result }) => result)]
    if (!check) context.note(counts.map(([result, { length }]) => `${length} ${result}`).join(', '))
    if (failed) throw failed.error
    return (check || isApplied) && missing.length > 0 ? 1 : 0
  },
})

const isAddress = (text: string): boolean => /^https?:/i.test(text)

async function openSource(context: Context, from: string, file: string | undefined): Promise<Source> {
  if (!isAddress(from) && !fs.statSync(from, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`${from} does not exist`, 'Specify https://HOST, a folder, or the file of a plan')
  if (!isAddress(from)) return filesSource(context.host, from, kinds)
  const { host, signal, secrets } = context
  const apiUrl = checkUrl(from, 'SOURCE')
  const connection = { apiUrl, source: 'SOURCE' }
  const given = file && readInputFile(host, file, 'Check --token-file').toString().trim()
  if (given) secrets.add(given)
  let met: Promise<string> | undefined
  const meet = async (): Promise<string> => {
    if (apiUrl.startsWith('https:')) await meetServer(host, connection, signal)
    return given || readPassword(context, `Token for ${apiUrl}: `, { noun: 'token' })
  }
  // Asked for at the first request.
  const token = () => (met ??= meet())
  const send = transportFor(host, connection, secrets)
  const transport: Transport = async (request) => {
    const answer = await send(request)
    if (answer.status !== 401) return answer
    throw new SourceRefusal('The source refused the token', 'Get a new one, and run the same command again')
  }
  return liveSource(createClient({ baseUrl: apiUrl, token, userAgent: 'svc3-cli', transport }), signal)
}

function passwordsIn(context: Context, file: string | undefined): Run['passwordOf'] {
  const hint = 'Check --passwords'
  const given = file === undefined ? {} : fieldsOf(parseJson(readInputFile(context.host, file, hint).toString()))
  if (!given) throw new Failure(`${file} is not a JSON object`, hint)
  return async (server, namespace, username) => {
    const found = textField(given[`${namespace} ${server}`]) ?? textField(given[server])
    if (found) context.secrets.add(found)
    if (found || !context.host.stdin.isTerminal) return found
    return readPassword(context, `Password of ${username} for ${server} in ${namespace}: `)
  }
}
