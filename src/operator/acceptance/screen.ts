// A small RFB client that presses keys on the screen of a VM, and waits until the picture changes.
import { once } from 'node:events'
import net from 'node:net'
import { enterScreen, take } from '../../drivers/apple/screen.ts'

/** X11's numbers: Spotlight, Escape, a, b. On a Mac's desktop only the first shows something; a login screen shows the letters. */
const chords = [[0xffeb, 0x20], [0xff1b], [0x61], [0x62]] as const
const rawOnly = [2, 0, 0, 1, 0, 0, 0, 0]

/** Returns the size of the picture. Ends when the screen has sent a change after the keys. */
export async function pressKeys(ip: string, port: number, signal: AbortSignal): Promise<string> {
  const socket = net.connect({ port, host: ip, signal })
  try {
    await once(socket, 'connect')
    socket.on('error', () => undefined)
    await enterScreen(socket, '')
    socket.write(Buffer.from([1]))
    const about = await take(socket, 24)
    await take(socket, about.readUInt32BE(20))
    socket.write(Buffer.from(rawOnly))
    const update = async (isIncremental: number): Promise<void> => {
      socket.write(Buffer.concat([Buffer.from([3, isIncremental, 0, 0, 0, 0]), about.subarray(0, 4)]))
      await readUpdate(socket, about.readUInt8(4) / 8)
    }
    await update(0)
    for (const chord of chords)
      for (const isDown of [1, 0])
        for (const key of chord) socket.write(Buffer.from([4, isDown, 0, 0, 0, 0, key >> 8, key & 0xff]))
    await update(1)
    return `${about.readUInt16BE(0)}x${about.readUInt16BE(2)}; it changed after a key`
  } finally {
    socket.destroy()
  }
}

async function readUpdate(socket: net.Socket, pixelBytes: number): Promise<void> {
  for (let kind = -1; kind !== 0; ) {
    kind = (await take(socket, 1)).readUInt8()
    if (kind === 3) await take(socket, (await take(socket, 7)).readUInt32BE(3))
    else if (kind !== 0 && kind !== 2) throw new Error(`The screen sent a message of unknown kind ${kind}`)
  }
  for (let left = (await take(socket, 3)).readUInt16BE(1); left > 0; left--) {
    const head = await take(socket, 12)
    if (head.readInt32BE(8) !== 0) throw new Error('The screen sent an encoding that was not requested')
    await take(socket, head.readUInt16BE(4) * head.readUInt16BE(6) * pixelBytes)
  }
}
