// tart's command line as data, read from its sources: what svc3 uses, and what else tart has. The driver's arguments, the
// stand-in of the tests and the doctor are held against it. A name that ends in "=" takes a value, and a
// single letter is a short option.

interface TartCommand {
  /** What the driver passes. All of it is in tart 2.35. */
  readonly uses: string
  /** What else 2.35 has. Its exact set is not certain, because only the sources around that version were read. */
  readonly has: string
  /** What sources after 2.36 (2026-08) have in addition. */
  readonly later?: string
}

export const tartCommands: Readonly<Record<string, TartCommand>> = {
  run: {
    uses:
      'no-graphics no-audio vnc-experimental suspendable disk= net-softnet net-softnet-allow= net-bridged= dir= nested ' +
      'rosetta=',
    has:
      'serial serial-path= graphics no-clipboard recovery vnc net-softnet-block= net-softnet-expose= net-host ' +
      'root-disk-opts= capture-system-keys no-trackpad no-pointer no-keyboard provisioning-opts=',
    later: 'net-softnet-control-fd= balloon-target-memory=',
  },
  set: {
    uses: 'cpu= memory= display= random-serial disk-size=',
    has: 'display-refit no-display-refit random-mac disk=',
    later: 'memory-balloon= relocate-recovery',
  },
  create: { uses: 'linux disk-size= from-ipsw=', has: 'disk-format=' },
  push: { uses: 'insecure', has: 'concurrency= chunk-size= label= populate-cache' },
  delete: { uses: '', has: '' },
  get: { uses: 'format=', has: '' },
  list: { uses: 'source= format=', has: 'quiet' },
  ip: { uses: 'wait= resolver=', has: '' },
  exec: { uses: 'i', has: 't' },
  stop: { uses: 'timeout=', has: '' },
  suspend: { uses: '', has: '' },
}

interface DumpedCommand {
  readonly commandName: string
  readonly subcommands?: readonly DumpedCommand[]
  readonly arguments?: readonly { readonly names?: readonly { readonly name: string }[] }[]
}

/**
 * What svc3 uses and the installed tart lacks, such as `run --suspendable`, by the output of
 * `tart --experimental-dump-help`. Throws if that is in another form.
 */
export function missingInTart(dump: string): readonly string[] {
  const { command } = JSON.parse(dump) as { readonly command: DumpedCommand }
  const installed = new Map(command.subcommands?.map((one) => [one.commandName, one]))
  return Object.entries(tartCommands).flatMap(([name, { uses }]) => {
    const found = installed.get(name)
    if (!found) return [name]
    const names = new Set(found.arguments?.flatMap((one) => one.names?.map((each) => each.name) ?? []))
    const options = uses.split(' ').map((option) => option.replace('=', ''))
    return options
      .filter((option) => option !== '' && !names.has(option))
      .map((option) => `${name} ${option.length > 1 ? '-' : ''}-${option}`)
  })
}
