// svc3 config use-context
import { defineCommand } from '../../command.ts'
import { fieldsOf, readConfig, textOf, unknownContext } from '../../connect/connection.ts'

export const command = defineCommand({
  description: 'Works with another configured service from now on. For one command, --context does.',
  arguments: { name: { value: 'CONTEXT', description: 'name of the context', required: true, names: 'contexts' } },
  options: {},
  examples: [{ line: 'svc3 config use-context lab', does: 'Talk to that service from now on' }],
  async run({ host, done, note }, { args: { name } }) {
    const { file, config = {} } = readConfig(host)
    const contexts = fieldsOf(config.contexts) ?? {}
    if (!Object.hasOwn(contexts, name)) throw unknownContext(name, Object.keys(contexts), file)
    const { editConfig } = await import('../../connect/config.ts')
    await editConfig(host, (current) => ({ ...current, currentContext: name }))
    for (const variable of ['SVC3_API_URL', 'SVC3_CONTEXT'])
      if (host.env[variable]) note(`${variable} is set and goes before the context; unset it`)
    const apiUrl = textOf(fieldsOf(contexts[name])?.apiUrl) ?? ''
    await done(`Context ${name} is in use, with ${apiUrl}.`, { context: name, apiUrl })
    return 0
  },
})
