// svc3 runner-pool create
import { createRunnerPool } from '../../../api/vms/runner-pools.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { credentialOf, credentialOptions, guestOf, settingOptions, settingsOf } from './options.ts'

export const command = defineCommand({
  description:
    'Runs the jobs of GitHub Actions, each in a fresh VM, which is deleted after it. The image of the VM configuration has the runner in it. Credentials are stored encrypted and never shown.',
  arguments: {
    name: { value: 'NAME', description: 'up to 40 lowercase letters, digits and dashes', required: true },
  },
  options: {
    url: {
      type: 'string',
      value: 'URL',
      required: true,
      description: 'Organization, repository or enterprise, such as https://github.com/acme',
    },
    config: { type: 'string', value: 'CONFIG', required: true, description: 'VM configuration of its VMs' },
    ...credentialOptions,
    'scale-set': { type: 'string', value: 'NAME', description: 'Name at GitHub (default: the name of the pool)' },
    group: { type: 'string', value: 'GROUP', description: 'Runner group (default: Default)' },
    ...settingOptions,
    ...namespaced,
    ...printed,
  },
  examples: [
    {
      line: 'svc3 runner-pool create ios --url https://github.com/acme --config ios --app-id 12 --installation-id 34 --private-key acme.pem',
      does: 'Take jobs of an organization with a GitHub App',
    },
    {
      line: 'svc3 runner-pool create ios --url https://github.com/acme/app --config ios --token-stdin --min-idle 1 < token.txt',
      does: 'Take jobs of a repository with a token, and keep one runner waiting',
    },
    {
      line: 'svc3 runner-pool create mac --url https://github.com/acme --config ios --ssh-user ci --ssh-key ci.pem --token-stdin < token.txt',
      does: 'Start runners by SSH, so that they take warm VMs of a pool',
    },
  ],
  async run(context, { args: { name }, options }) {
    if (!isVmConfigName(name) || !/^[a-z]/.test(name))
      throw new UsageError(
        `Invalid name "${name}"`,
        'Use up to 40 lowercase letters, digits and dashes, beginning with a letter',
      )
    const settings = { ...settingsOf(options), ...guestOf(context, options) }
    const credential = await credentialOf(context, options)
    if (!credential)
      throw new UsageError(
        'Credentials for GitHub are required',
        'Specify --app-id, --installation-id and --private-key, or --token-stdin',
      )
    const { url, config, 'scale-set': scaleSet, group } = options
    const body = {
      name,
      url,
      config,
      credential,
      ...(scaleSet !== undefined && { scaleSet }),
      ...(group !== undefined && { group }),
      ...settings,
    }
    const { client, namespace } = await context.connect()
    const record = await client.call(createRunnerPool, { params: { namespace }, body, signal: context.signal })
    await context.done(`Runner pool ${record.name} created in ${namespace}.`, record)
    return 0
  },
})
