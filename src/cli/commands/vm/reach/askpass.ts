// Passes a password to ssh, which runs an askpass script that reads it from a private socket. The password is in no
// argument, environment variable or file.
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import { quoted } from '../../../../rules/shell-word.ts'

interface Askpass extends AsyncDisposable {
  /** Environment variables for ssh. */
  readonly env: Readonly<Record<string, string>>
}

const fetchProgram = 'require("node:net").connect(process.argv[1]).pipe(process.stdout)'

export async function offerPassword(password: string, node = process.execPath): Promise<Askpass> {
  // Only its owner can enter the folder, so the socket is private.
  const folder = fs.mkdtempSync(`${os.tmpdir()}/svc3-ssh-`)
  const socket = `${folder}/s`
  const script = `${folder}/askpass`
  const server = net.createServer((client) => {
    client.on('error', () => undefined)
    client.end(`${password}\n`)
  })
  const discard = async (): Promise<void> => {
    server.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
  try {
    const line = [node, '-e', fetchProgram, socket].map(quoted).join(' ')
    fs.writeFileSync(script, `#!/bin/sh\nexec ${line}\n`, { mode: 0o700 })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server.once('error', reject).listen(socket, resolve)
    await promise
  } catch (error) {
    await discard()
    throw error
  }
  return { env: { SSH_ASKPASS: script, SSH_ASKPASS_REQUIRE: 'force' }, [Symbol.asyncDispose]: discard }
}
