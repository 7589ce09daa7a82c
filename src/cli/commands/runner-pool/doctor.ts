// svc3 runner-pool doctor: diagnoses why a runner pool does not run jobs, from GitHub to the image.
import { randomBytes } from 'node:crypto'
import { ApiError, type Reason } from '../../../api/errors.ts'
import { estimateVm } from '../../../api/vms/estimates.ts'
import { getRunnerPool, type RunnerPool } from '../../../api/vms/runner-pools.ts'
import { deleteVm, deployVm, getVmLogs } from '../../../api/vms/vms.ts'
import type { Client } from '../../../client/client.ts'
import { wait } from '../../../platform/retry.ts'
import { nameSuffix } from '../../../rules/names.ts'
import { checkScript, type ImageFinding as Finding, imageFindings } from '../../../rules/runners/image-check.ts'
import { type Context, defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { exitCodes } from '../../line/usage.ts'

const deployMinutes = 10
/** After this time, which is longer than the check, the service deletes a VM that this command could not. */
const ttl = '30m'
const lookMs = 180_000
const againMs = 1_000
const deleteMs = 60_000

const connection: Readonly<Record<string, string>> = {
  Unauthorized: 'Check the App id, its installation and its key, or the token; svc3 runner-pool update replaces them',
  Forbidden: 'Give the App "Self-hosted runners: read and write" (repositories: "Administration")',
  NotFound: 'Check the URL, and that the App is installed there',
  UnknownGroup: 'Create the runner group at GitHub, or create the pool with another --group',
  NameTaken: 'Delete the other scale set at GitHub, or create the pool with another --scale-set',
  SessionActive: 'Stop the other program that uses this scale set',
  Unreachable: 'Check that the servers of svc3 reach GitHub',
}

const guest: Readonly<Record<string, (pool: RunnerPool) => string>> = {
  GuestEnded: ({ runnerFolder, config }) =>
    `Put the runner with its run.sh into ${runnerFolder} of the image of ${config}, or set --runner-folder; svc3 vm logs shows the console`,
  NotConnected: () => 'Check that guests run first-boot scripts, reach GitHub, and have the right time',
  DeployFailed: ({ config }) => `Deploy a VM by hand to see why: svc3 vm deploy --config ${config}`,
  StartFailed: ({ sshUser = 'its user' }) =>
    `Check that guests run an SSH server, and that ${sshUser} logs in with the password or key that was set and may use sudo`,
  RunnerGone: () => 'Check who removes runners at GitHub',
  RegistrationFailed: () => 'Check the permissions of the App or the token',
}

function findings(pool: RunnerPool): Finding[] {
  const { reason, message } = pool.condition
  const advice = connection[reason]
  const failed = Object.entries(guest).flatMap(([end, text]): Finding[] => {
    const count = pool.ended[end as keyof typeof pool.ended] ?? 0
    return count === 0 ? [] : [{ check: 'Guest', ok: false, message: `${end}: ${count} runners`, advice: text(pool) }]
  })
  const finished = pool.ended.Finished ?? 0
  const works: Finding =
    finished > 0
      ? { check: 'Guest', ok: true, message: `${finished} runners have finished` }
      : { check: 'Guest', ok: true, message: 'No runner has failed; none has finished a job yet' }
  return [
    advice === undefined
      ? { check: 'GitHub', ok: true, message: `${reason}: ${message}` }
      : { check: 'GitHub', ok: false, message, advice },
    ...(failed.length > 0 ? failed : [works]),
    ...(pool.waiting > 0 && pool.capacity < pool.max
      ? [
          {
            check: 'Capacity',
            ok: false,
            message: `${pool.waiting} jobs wait; nodes and quota have room for ${pool.capacity} of ${pool.max} VMs`,
            advice: 'Add nodes, raise the quota, or lower --max',
          },
        ]
      : []),
  ]
}

/** Runs checks in a VM with a first-boot script, which is how runners are started. */
async function lookInside(context: Context, client: Client, pool: RunnerPool): Promise<Finding[]> {
  const { namespace, runnerFolder: folder, user = pool.sshUser, config, url } = pool
  const { signal } = context
  const expected = { folder, user, host: new URL(url).hostname }
  const userdata = Buffer.from(checkScript(expected)).toString('base64')
  // The name is chosen here, so that the VM can be deleted even without a response.
  const vm = `${pool.name}-doctor-${nameSuffix(randomBytes(5))}`
  const params = { namespace, vm }
  const body = { name: vm, vmConfig: config, userdata, cold: true, ttl, timeout: deployMinutes }
  let isOurs = true
  context.note(`Deploying a VM of ${config}`)
  try {
    // The client waits longer than the service, whose timeout reports the reasons.
    const timeoutMs = millisecondsOf(deployMinutes + 1)
    await client.call(deployVm, { params: { namespace }, body, signal, timeoutMs }).catch((error: unknown) => {
      isOurs = !hasReason(error, 'AlreadyExists')
      throw error
    })
    for (const endMs = performance.now() + lookMs; ; await wait(againMs, signal)) {
      const { body: log } = await client.open(getVmLogs, { params, query: {}, signal })
      const found = imageFindings(await new Response(log).text(), expected, Date.now())
      if (found) return found
      if (performance.now() > endMs)
        return [
          {
            check: 'Image',
            ok: false,
            message: `No first-boot script ran within ${lookMs / 60_000} min`,
            advice:
              'Use an image that runs first-boot scripts and writes to its serial console, or start runners by SSH',
          },
        ]
    }
  } finally {
    // The VM is deleted even after Ctrl-C. It may not exist, because it was refused or the service deleted it.
    if (isOurs)
      await client.call(deleteVm, { params, timeoutMs: deleteMs }).catch((error: unknown) => {
        if (!hasReason(error, 'NotFound')) throw error
      })
  }
}

const hasReason = (error: unknown, reason: Reason): boolean => error instanceof ApiError && error.reason === reason

export const command = defineCommand({
  description:
    'Checks the connection to GitHub, whether a VM of the configuration fits, and how runners have ended; with --try, what the image lacks. Exit code 1: something is wrong.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'name of the runner pool', required: true } },
  options: {
    try: { type: 'boolean', description: 'Deploy a VM of the configuration, and report what its image lacks' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 runner-pool doctor ios', does: 'Diagnose why jobs do not run' },
    { line: 'svc3 runner-pool doctor ios --try', does: 'Also check a VM of the image, which is deleted afterwards' },
  ],
  async run(context, { args: { name: runnerpool }, options }) {
    const { client, namespace } = await context.connect()
    const { signal } = context
    const pool = await client.call(getRunnerPool, { params: { namespace, runnerpool }, signal })
    const fit = await client
      .call(estimateVm, { params: { namespace }, body: { vmConfig: pool.config, noWarm: true }, signal })
      .then(
        ({ message }): Finding => ({ check: 'VM', ok: true, message }),
        (error: unknown): Finding => {
          if (!(error instanceof ApiError)) throw error
          return { check: 'VM', ok: false, message: error.message, ...(error.hint && { advice: error.hint }) }
        },
      )
    const looked = options.try && fit.ok ? await lookInside(context, client, pool) : []
    const all = [...findings(pool), fit, ...looked]
    await context.print(
      all,
      [
        { header: 'CHECK', cell: ({ check }) => check },
        { header: 'OK', cell: ({ ok }) => (ok ? 'yes' : 'no') },
        { header: 'FINDING', cell: ({ message }) => message },
        { header: 'ADVICE', cell: ({ advice }) => advice },
      ],
      '',
    )
    return all.every(({ ok }) => ok) ? 0 : exitCodes.failed
  },
})
