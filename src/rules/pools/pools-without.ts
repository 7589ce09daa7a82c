// The warning about pools that lose their VM configuration.

interface Pool {
  readonly name: string
  readonly config: string
}

export function poolsWithout(
  configs: readonly string[],
  pools: readonly Pool[],
  runnerPools: readonly Pool[],
): string | undefined {
  const named = (kind: string, all: readonly Pool[]): string[] =>
    all.filter(({ config }) => configs.includes(config)).map(({ name }) => `${kind} ${name}`)
  const names = [...named('pool', pools), ...named('runner pool', runnerPools)]
  return names.length === 0 ? undefined : `There will be no more VMs for ${names.join(', ')}.`
}
