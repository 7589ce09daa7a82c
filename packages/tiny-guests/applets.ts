// The commands in busybox, read from its table of names that end in zero bytes.
const start = Buffer.from('[\0[[\0')

export function appletsOf(busybox: Uint8Array): string[] {
  const bytes = Buffer.from(busybox.buffer, busybox.byteOffset, busybox.byteLength)
  const at = bytes.indexOf(start)
  const end = bytes.indexOf('\0\0', at)
  const names = at < 0 ? [] : bytes.toString('latin1', at, end).split('\0')
  if (!names.includes('sh') || names.some((name) => !/^[\w[.-]+$/.test(name)))
    throw new Error('the package busybox-static has no table of commands where one was expected')
  return names
}
