// Runs a command line: finds the command, parses its words, runs it, and reports errors.
import type { CommandTable } from './command.ts'
import { createContext } from './context.ts'
import { explain } from './explain.ts'
import { reportFailure } from './failure.ts'
import type { Host } from './host.ts'
import { asksForHelpEarly, isLeaf, locate } from './line/locate.ts'
import { asksForHelp, type Parsed, parse, usageLine } from './line/parse.ts'
import { showHelp } from './line/show-help.ts'

export async function main(words: readonly string[], processHost: Host, table: CommandTable): Promise<number> {
  const commands = commandsFor(table, processHost)
  const secrets = new Set<string>()
  let host = processHost
  let usage = 'Run svc3 --help to see the commands'
  let signal: AbortSignal | undefined
  let namespace: string | undefined
  let options: string[] | undefined
  try {
    const located = locate(words, commands)
    const { path, found, rest } = located
    const name = ['svc3', ...path].join(' ')
    if (!isLeaf(found) || asksForHelpEarly(rest.slice(0, 1))) {
      await showHelp(host, commands, located)
      return 0
    }
    usage = `Run ${name} --help to see how to use it`
    const { command } = await found.load()
    if (asksForHelp(command, rest)) {
      await showHelp(host, commands, located)
      return 0
    }
    options = Object.keys(command.options)
    usage = `Usage: ${usageLine(name, command.arguments)}`
    const parsed = parse(command, rest)
    const values = [
      ...Object.entries(command.options).map(([name, { secret }]) => [secret, parsed.options[name]] as const),
      ...Object.entries(command.arguments).map(([name, { secret }]) => [secret, parsed.args[name]] as const),
    ]
    for (const [secret, value] of values) if (secret && typeof value === 'string') secrets.add(value)
    host = withGlobalOptions(processHost, parsed)
    namespace = parsed.options.namespace as string | undefined
    signal = command.ownSignals ? new AbortController().signal : host.interruption()
    const context = createContext({ host, parsed, signal, secrets, commands })
    // The parser has made these values from the arguments and options of the command.
    return (await command.run(context, parsed as Parameters<typeof command.run>[1])) ?? 0
  } catch (error) {
    const interrupted = signal?.aborted === true
    const explained = interrupted ? error : await explain(error, { host, namespace })
    return reportFailure(explained, { host, helpLine: usage, options, secrets, interrupted })
  }
}

/** In Orka, `vm create` makes a VM configuration. Here it is a synonym of `vm deploy`. */
function commandsFor(table: CommandTable, { calledAs }: Host): CommandTable {
  const { vm, 'vm-config': configs } = table
  const create = configs && 'commands' in configs && configs.commands.create
  if (calledAs !== 'orka3' || !create || !vm || !('commands' in vm)) return table
  return { ...table, vm: { ...vm, commands: { ...vm.commands, create } } }
}

/** Puts --debug and --context into the environment, where the rest of the program reads them. Options win over variables. */
function withGlobalOptions(host: Host, { options: { debug, context } }: Parsed): Host {
  if (debug !== true && context === undefined) return host
  const without = { SVC3_API_URL: undefined, SVC3_TOKEN: undefined, SVC3_DATA: undefined }
  const elsewhere = { SVC3_CONTEXT: String(context), ...without }
  const env = { ...host.env, ...(debug === true && { SVC3_DEBUG: '1' }), ...(context !== undefined && elsewhere) }
  return { ...host, env }
}
