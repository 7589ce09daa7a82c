// Whether a client and a server go together, by their versions: within a major version everything that was there stays.

const form = /^(\d{1,6})\.(\d{1,6})\./

/** What keeps them apart; undefined when they go together, or when one of them is no version. */
export function versionsApart(client: string, server: string): 'other-major' | 'server-older' | undefined {
  const [ours, theirs] = [form.exec(client), form.exec(server)]
  if (!ours || !theirs) return undefined
  if (ours[1] !== theirs[1]) return 'other-major'
  // A newer server knows all that an older client asks for; the other way round it does not.
  return Number(ours[2]) > Number(theirs[2]) ? 'server-older' : undefined
}

/** In words, with what to do. */
export function versionAdvice(client: string, server: string): string | undefined {
  const apart = versionsApart(client, server)
  if (apart === undefined) return undefined
  const both = `This program is version ${client}, the server is ${server}`
  return apart === 'other-major'
    ? `${both}. Use the program of the server's version`
    : `${both}. Update the server, or use the program of its version`
}
