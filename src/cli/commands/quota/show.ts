// svc3 quota show
import { getQuota } from '../../../api/vms/quotas.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { printRecord } from '../../print-record.ts'
import { fields } from './fields.ts'

export const command = defineCommand({
  arguments: {},
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 quota show -n svc-ios', does: 'Show the limits of a namespace, and who uses how much' }],
  async run(context) {
    const { client, namespace } = await context.connect()
    return printRecord(context, await client.call(getQuota, { params: { namespace }, signal: context.signal }), fields)
  },
})
