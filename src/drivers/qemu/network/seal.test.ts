// Sealing: failures are explained, a busy host is not taken for one that cannot, and nothing runs half sealed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { childEnvironment, exec } from '../../../platform/exec.ts'
import { PortTaken } from '../../driver.ts'
import { networkPlaces, sealedPrefix } from './network.ts'
import { canSeal, whyNot } from './seal.ts'
import { endUplink, judgeAnswer, startUplink } from './uplink.ts'

describe('sealed network', () => {
  it('a sealed network of QEMU works here, and is tested only once', async () => {
    assert.equal(await canSeal(), undefined)
    // A cached result returns in this turn; an attempt takes many.
    const next = new Promise((resolve) => setImmediate(resolve, 'tried again'))
    assert.equal(await Promise.race([canSeal(), next]), undefined)
  })

  it('a sealed network of QEMU that does not work has a cause and a remedy; after a timeout it is tested again', async () => {
    const failing = await whyNot(async () => {
      throw new Error('slirp4netns is not installed')
    })
    assert.match(
      failing ?? '',
      /slirp4netns is not installed; install slirp4netns .*root, or start with --network user/,
    )
    const late = await whyNot(
      (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      10,
    )
    assert.match(late ?? '', /will be retried/)
    assert.doesNotMatch(late ?? '', /--network user/)
  })

  it('a sealed network of QEMU runs nothing if a part of it fails', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-seal-'))
    const [program = '', ...args] = sealedPrefix()
    const run = (env: Readonly<Record<string, string>>) =>
      exec(program, [...args, 'echo', 'it runs'], { cwd: folder, env })
    assert.equal((await run(childEnvironment)).stdout, 'it runs\n')
    await fs.writeFile(path.join(folder, 'ip'), '#!/bin/sh\necho no routes today >&2\nexit 2\n', { mode: 0o755 })
    await assert.rejects(run({ ...childEnvironment, PATH: `${folder}:${childEnvironment.PATH}` }), /no routes today/)
    await fs.rm(folder, { recursive: true })
  })

  it('only a forward that could not be added counts as a port in use', async () => {
    const runtime = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-uplink-'))
    await exec('mkfifo', [networkPlaces(runtime).life])
    const [program = '', ...args] = sealedPrefix()
    const jailed = spawn(program, [...args, 'cat'], { cwd: runtime, env: childEnvironment })
    const stranger = net.createServer()
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
    const { port } = stranger.address() as net.AddressInfo
    const doors = { kind: 'sealed', ip: '127.0.0.1', ports: [{ protocol: 'tcp', port }] } as const
    try {
      const starting = startUplink(jailed.pid ?? -1, runtime, doors, AbortSignal.timeout(120_000), () => undefined)
      await assert.rejects(starting, (error) => error instanceof PortTaken && error.ports[0] === port)
    } finally {
      await endUplink(runtime)
      jailed.kill('SIGKILL')
      stranger.close()
      await fs.rm(runtime, { recursive: true })
    }
    assert.doesNotThrow(() => judgeAnswer('{"return":{"id":1}}', 80))
    for (const answer of ['', 'half an ans', '{"error":{"desc":"bad request: no memory"}}', '{}', 'null'])
      assert.throws(
        () => judgeAnswer(answer, 80),
        (error) => error instanceof Error && !(error instanceof PortTaken) && /port 80/.test(error.message),
        answer,
      )
  })
})
