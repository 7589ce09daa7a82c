// Whether a client and a server are compatible. Within a major version nothing is removed.

const form = /^(\d{1,6})\.(\d{1,6})\./

/** Why they are not compatible; undefined if they are, or if a version is unknown. */
export function versionsApart(client: string, server: string): 'other-major' | 'server-older' | undefined {
  const [ours, theirs] = [form.exec(client), form.exec(server)]
  if (!ours || !theirs) return undefined
  if (ours[1] !== theirs[1]) return 'other-major'
  // A newer server supports older clients, but not the other way round.
  return Number(ours[2]) > Number(theirs[2]) ? 'server-older' : undefined
}

export function versionAdvice(client: string, server: string): string | undefined {
  const apart = versionsApart(client, server)
  if (apart === undefined) return undefined
  const both = `This program is version ${client}, the server is ${server}`
  return apart === 'other-major'
    ? `${both}. Use the program of the server's version`
    : `${both}. Update the server, or use the program of its version`
}
