// The plan of a migration, and one run over the table of kinds that compares it with the target and carries missing records over. Those
// that exist are skipped, so the same command resumes, and nothing else is stored.
import { listNamespaces } from '../../../api/access/namespaces.ts'
import { ApiError } from '../../../api/errors.ts'
import { type JsonObject, parseJson } from '../../../api/json.ts'
import type { Operation } from '../../../api/operation.ts'
import type { ListOperation } from '../../../client/client.ts'
import { defaultNamespace, devRole, realNamespace } from '../../../rules/names.ts'
import type { Context, Session } from '../../command.ts'
import { fieldsOf } from '../../connect/connection.ts'
import type { Host } from '../../host.ts'
import { readInputFile } from '../../input.ts'
import { Failure, Interrupted } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import { type ListedKind, type Source, SourceRefusal } from './source.ts'

export interface Item {
  readonly name: string
  readonly namespace: string
  /** `refused`: why it cannot be carried over. */
  readonly wanted: JsonObject
}

interface Plan {
  readonly version: 1
  readonly source: string
  /** A namespace as the source spells it, for what belongs to its cluster. */
  readonly space: string
  readonly steps: readonly (Item & { readonly kind: string })[]
}

export interface Run extends Session {
  readonly context: Context
  readonly source: Source
  readonly space: string
  /** For tokens, join strings, and disks in transit. */
  readonly folder: string
  /** `HOST/REPOSITORY` through which images of Apple silicon pass. */
  readonly registry: string | undefined
  /** Whether to carry missing records over. */
  readonly isApplied: boolean
  /** Why no further image of Apple silicon is carried over. */
  armProblem?: string
  passwordOf(server: string, namespace: string, username: string): Promise<string | undefined>
}

interface Result {
  readonly result: 'to carry' | 'carried' | 'already there' | 'not carried'
  readonly reason?: string | undefined
}
export type Outcome = Result & Omit<Plan['steps'][number], 'wanted'>

export interface Kind extends ListedKind {
  readonly kind: string
  nameOf?(record: JsonObject): string
  /** Undefined if it needs no step. */
  wanted(record: JsonObject, namespace: string): JsonObject | undefined
  /** Replaces `list` for the target. */
  there?(run: Run): Promise<ReadonlyMap<string, JsonObject>>
  /** Default: a record that exists is the same. */
  compare?(found: JsonObject | undefined, item: Item, run: Run): Result
  readonly create?: Operation
  /** Replaces `create`. Returns what to say. */
  apply?(run: Run, item: Item, found: JsonObject | undefined): Promise<string | undefined>
}

export const toCarry: Result = { result: 'to carry' }
export const alreadyThere: Result = { result: 'already there' }
export const notCarried = (reason: string): Result => ({ result: 'not carried', reason })
export const sameIf = (found: JsonObject | undefined, isSame: boolean, reason: string): Result =>
  !found ? toCarry : isSame ? alreadyThere : notCarried(reason)

const nameIn = (kind: Kind, record: JsonObject) => String((!record.refused && kind.nameOf?.(record)) || record.name)

export async function makePlan(kinds: readonly Kind[], from: string, source: Source): Promise<Plan> {
  const spaces = (await source.list(listNamespaces, '')).map(({ name }) => String(name))
  const isDefault = (space: string): number => Number(realNamespace(space) === defaultNamespace)
  spaces.sort((a, b) => isDefault(b) - isDefault(a))
  const steps: Plan['steps'][number][] = []
  for (const kind of kinds)
    for (const space of kind.isClusterWide ? spaces.slice(0, 1) : spaces) {
      const namespace = kind.isClusterWide ? '' : realNamespace(space)
      const records = await source.list(kind.list, space).catch((error) => {
        if (!isRefusal(error)) throw error
        return [{ name: '*', refused: `The source does not list them: ${error.message}` }]
      })
      for (const record of records) {
        const wanted = 'refused' in record ? record : kind.wanted(record, namespace)
        if (wanted) steps.push({ kind: kind.kind, namespace, name: nameIn(kind, record), wanted })
      }
    }
  return { version: 1, source: from, space: spaces[0] ?? '', steps }
}

export function readPlan(host: Host, file: string): Plan {
  const plan = fieldsOf(parseJson(readInputFile(host, file, 'Check the file').toString()))
  const isStep = (step: unknown): boolean =>
    typeof fieldsOf(step)?.name === 'string' && !!fieldsOf(fieldsOf(step)?.wanted)
  if (plan?.version === 1 && Array.isArray(plan.steps) && plan.steps.every(isStep)) return plan as unknown as Plan
  throw new Failure(`${file} is not a plan of this version`, 'Make one: svc3 migrate from URL --plan FILE')
}

const isRefusal = (error: unknown): error is ApiError => error instanceof ApiError && error.reason !== 'Unauthorized'

/** Whether the rest would fail too. */
const endsRun = (error: unknown): boolean =>
  (error instanceof ApiError && !isRefusal(error)) || error instanceof SourceRefusal || error instanceof Interrupted

/** Adds to `outcomes`, which are true also if it fails. */
export async function carryOut(kinds: readonly Kind[], plan: Plan, run: Run, outcomes: Outcome[]): Promise<undefined> {
  for (const kind of kinds) {
    const steps = plan.steps.filter((step) => step.kind === kind.kind)
    for (const [namespace, items] of Map.groupBy(steps, (step) => step.namespace)) {
      const there = await (kind.there ?? listed(kind, namespace))(run)
      for (const item of items) {
        run.context.signal.throwIfAborted()
        const outcome = await carry(kind, item, there.get(item.name), run)
        outcomes.push({ kind: kind.kind, namespace, name: item.name, ...outcome })
        if (run.isApplied) run.context.note(visible(`${kind.kind} ${item.name}: ${outcome.result}`))
      }
    }
  }
}

const listed = (kind: Kind, namespace: string) => async (run: Run) => {
  const input = { params: { namespace: namespace || run.namespace, role: devRole }, signal: run.context.signal }
  const records = await run.client.listAll(kind.list as ListOperation, input as never).catch((error) => {
    // A namespace that does not exist yet has nothing.
    if (isRefusal(error) && error.reason === 'NotFound') return []
    throw error
  })
  return new Map((records as JsonObject[]).map((record) => [nameIn(kind, record), record]))
}

async function carry(kind: Kind, item: Item, found: JsonObject | undefined, run: Run): Promise<Result> {
  // Names become names of files.
  const isBad = `${item.namespace}/${item.name}`.split('/').some((part) => /^\.\.?$/.test(part))
  const refused = item.wanted.refused ?? (isBad && 'The name is not allowed here')
  if (refused) return notCarried(String(refused))
  try {
    const compared = kind.compare?.(found, item, run) ?? (found ? alreadyThere : toCarry)
    if (compared.result !== 'to carry' || !run.isApplied) return compared
    return { result: 'carried', reason: await (kind.apply?.(run, item, found) ?? create(kind, item, run)) }
  } catch (error) {
    if (run.context.signal.aborted || endsRun(error)) throw error
    return notCarried((error as Error).message)
  }
}

async function create({ create }: Kind, { name, namespace, wanted }: Item, run: Run): Promise<undefined> {
  const input = { params: { namespace, role: devRole }, body: { name, ...wanted }, signal: run.context.signal }
  if (create) await run.client.call(create, input as never)
}
