// The command line from its first word to its exit code: find the command, parse, run, tell what went wrong.
import type { Host } from './host.ts'
import { asksForHelpEarly, isLeaf, locate } from './locate.ts'
import { showHelp } from './show-help.ts'

export async function main(words: readonly string[], host: Host): Promise<number> {
  const secrets = new Set<string>()
  let help = host.calledAs
  let signal: AbortSignal | undefined
  try {
    const located = locate(words)
    const { path, found, rest } = located
    help = [host.calledAs, ...path].join(' ')
    if (!isLeaf(found) || asksForHelpEarly(rest.slice(0, 1))) {
      await showHelp(host, located)
      return 0
    }
    const [{ command }, { parse, asksForHelp }] = await Promise.all([found.load(), import('./parse.ts')])
    if (asksForHelp(command, rest)) {
      await showHelp(host, located)
      return 0
    }
    const parsed = parse(command, rest)
    const given = [
      ...Object.entries(command.options).map(([name, { secret }]) => [secret, parsed.options[name]] as const),
      ...Object.entries(command.arguments).map(([name, { secret }]) => [secret, parsed.args[name]] as const),
    ]
    for (const [secret, value] of given) if (secret && typeof value === 'string') secrets.add(value)
    signal = command.ownSignals ? new AbortController().signal : host.interruption()
    const { createContext } = await import('./context.ts')
    const context = createContext({ host, parsed, signal, secrets })
    // The parser has made these values from the command's own arguments and options.
    return (await command.run(context, parsed as Parameters<typeof command.run>[1])) ?? 0
  } catch (error) {
    const { reportFailure } = await import('./failure.ts')
    const interrupted = signal?.aborted === true
    return reportFailure(error, { host, helpLine: `"${help} --help" shows how it is used`, secrets, interrupted })
  }
}
