// svc3 runner-pool update
import { updateRunnerPool } from '../../../api/vms/runner-pools.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { credentialOf, credentialOptions, guestOf, settingOptions, settingsOf } from './options.ts'

export const command = defineCommand({
  description: 'Omitted options stay as they are. Jobs that run are not disturbed.',
  arguments: { name: { value: 'RUNNER-POOL', description: 'runner pool to change', required: true } },
  options: {
    config: { type: 'string', value: 'CONFIG', description: 'VM configuration of its VMs' },
    ...credentialOptions,
    ...settingOptions,
    'first-boot': { type: 'boolean', description: 'Start the runner by first-boot data again, and not by SSH' },
    pause: { type: 'boolean', description: 'Take no jobs; they wait at GitHub' },
    resume: { type: 'boolean', description: 'Take jobs again' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 runner-pool update ios --max 12', does: 'Let more jobs run at once' },
    { line: 'svc3 runner-pool update ios --token-stdin < token.txt', does: 'Replace the credentials' },
    { line: 'svc3 runner-pool update ios --resume', does: 'Take jobs again after a pause' },
  ],
  async run(context, { args: { name: runnerpool }, options }) {
    const { config, pause, resume, 'first-boot': firstBoot } = options
    if (pause && resume) throw new UsageError('Specify --pause or --resume, not both')
    const credential = await credentialOf(context, options)
    const body = {
      ...(config !== undefined && { config }),
      ...(credential && { credential }),
      ...settingsOf(options),
      ...guestOf(context, options),
      ...(firstBoot && { firstBoot }),
      ...((pause || resume) && { paused: pause === true }),
    }
    if (Object.keys(body).length === 0)
      throw new UsageError('Nothing to change', 'Specify --max, --min-idle, --config, credentials, --pause or --resume')
    const { client, namespace } = await context.connect()
    const record = await client.call(updateRunnerPool, {
      params: { namespace, runnerpool },
      body,
      signal: context.signal,
    })
    await context.done(`Runner pool ${record.name} changed in ${namespace}.`, record)
    return 0
  },
})
