// svc3 config use-context
import { defineCommand } from '../../command.ts'
import { fieldsOf, readConfig, stringOf, unknownContext } from '../../connect/connection.ts'

export const command = defineCommand({
  description: 'Switches to another configured server. For a single command, use --context.',
  arguments: { name: { value: 'CONTEXT', description: 'name of the context', required: true, names: 'contexts' } },
  options: {},
  examples: [{ line: 'svc3 config use-context lab', does: 'Use the server of context lab from now on' }],
  async run({ host, done, note }, { args: { name } }) {
    const { file, config = {} } = readConfig(host)
    const contexts = fieldsOf(config.contexts) ?? {}
    if (!Object.hasOwn(contexts, name)) throw unknownContext(name, Object.keys(contexts), file)
    const { editConfig } = await import('../../connect/config.ts')
    await editConfig(host, (current) => ({ ...current, currentContext: name }))
    for (const variable of ['SVC3_API_URL', 'SVC3_DATA', 'SVC3_CONTEXT'])
      if (host.env[variable]) note(`${variable} is set and overrides the context; unset it`)
    const apiUrl = stringOf(fieldsOf(contexts[name])?.apiUrl) ?? ''
    await done(`Using context ${name} (${apiUrl}).`, { context: name, apiUrl })
    return 0
  },
})
