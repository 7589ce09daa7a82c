// svc3 runner-pool: requests, output, and usage errors.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Answer, serve } from '../../test/support/stand-ins/fleet.ts'
import { ApiError, success } from '../api/errors.ts'
import { estimateVm } from '../api/vms/estimates.ts'
import { getRunnerPool, listRunnerJobs } from '../api/vms/runner-pools.ts'
import { getVm } from '../api/vms/vms.ts'

let service: FakeService
let pool: object
let guestSays = ''
let deploys: (name: string) => unknown
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-runner-pools-'))
const key = path.join(folder, 'acme.pem')
const sent: unknown[] = []
before(async () => {
  service = await startFakeService()
  fs.writeFileSync(key, '-----BEGIN RSA PRIVATE KEY-----\nsecret\n')
})
after(async () => {
  await service[Symbol.asyncDispose]()
  fs.rmSync(folder, { recursive: true })
})
beforeEach(() => {
  sent.length = 0
  deploys = (name) => ({ ...getVm.example.response, name })
  pool = getRunnerPool.example.response
  const kept = ({ body }: { readonly body?: unknown }) => {
    sent.push(body)
    return pool
  }
  const routes: Record<string, Answer> = {
    'GET runnerpools/ios': () => pool,
    'GET runnerjobs': () => listRunnerJobs.example.response,
    'POST runnerpools': kept,
    'PUT runnerpools/ios': kept,
    'POST runnerpools/ios/drain': kept,
    'POST vms/estimate': () => estimateVm.example.response,
    'POST vms': ({ body }) => {
      sent.push(body)
      const { name } = body as { name: string }
      Object.assign(routes, {
        [`GET vms/${name}/logs`]: ((_, response) =>
          void response.writeHead(200, { 'content-type': 'text/plain' }).end(guestSays)) satisfies Answer,
        [`DELETE vms/${name}`]: () => {
          sent.push('deleted')
          return success('ok', { kind: 'vms', name })
        },
      })
      return deploys(name)
    },
    'DELETE runnerpools/ios': () => success('ok', { kind: 'runnerpools', name: 'ios' }),
  }
  serve(service, routes)
})

const svc3 = (words: string[], stdin = '', interruption?: AbortSignal) =>
  run(['runner-pool', ...words], {
    env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token },
    input: stdin,
    ...(interruption && { interruption }),
  })

describe('svc3 runner-pool', () => {
  const where = ['--url', 'https://github.com/acme', '--config', 'build']

  it('svc3 runner-pool create sends the key of an App from a file, or a token from standard input, and shows neither', async () => {
    const app = ['--app-id', '12', '--installation-id', '34', '--private-key', key]
    const first = await svc3(['create', 'ios', ...where, ...app, '--max', '8', '--label', 'ios', '--label', 'xcode'])
    assert.equal(first.exitCode, 0, first.stderr)
    const second = await svc3(['create', 'ios', ...where, '--token-stdin'], 'ghp_secret\n')
    assert.equal(second.exitCode, 0, second.stderr)
    const base = { name: 'ios', url: 'https://github.com/acme', config: 'build' }
    const privateKey = fs.readFileSync(key, 'utf8')
    assert.deepEqual(sent, [
      { ...base, credential: { appId: '12', installationId: '34', privateKey }, max: 8, labels: ['ios', 'xcode'] },
      { ...base, credential: { token: 'ghp_secret' } },
    ])
    for (const { stdout, stderr } of [first, second]) assert.ok(!/secret/.test(stdout + stderr))
  })

  it('svc3 runner-pool refuses half credentials, both kinds, and nothing to change', async () => {
    for (const words of [
      ['create', 'ios', ...where],
      ['create', 'ios', ...where, '--app-id', '12'],
      ['create', 'ios', ...where, '--app-id', '12', '--token-stdin'],
      ['create', '1os', ...where, '--token-stdin'],
      ['create', 'ios', ...where, '--token-stdin', '--min-idle', '3', '--max', '2'],
      ['update', 'ios'],
    ])
      assert.equal((await svc3(words, 'ghp_x')).exitCode, 2, words.join(' '))
    assert.deepEqual(sent, [])
  })

  it('svc3 runner-pool pause, drain, update --resume and delete say what happens', async () => {
    assert.match((await svc3(['pause', 'ios'])).stdout, /Runner pool ios paused in svc-default/)
    assert.match((await svc3(['drain', 'ios'])).stdout, /is being drained/)
    assert.equal((await svc3(['update', 'ios', '--resume'])).exitCode, 0)
    assert.deepEqual(sent, [{ paused: true }, {}, { paused: false }])
    assert.match((await svc3(['delete', 'ios', '--yes', '--force'])).stdout, /is being deleted/)
  })

  it('svc3 runner-pool jobs lists jobs with their links', async () => {
    const { stdout } = await svc3(['jobs', 'ios', '-o', 'wide'])
    assert.match(
      stdout,
      /build \(16\.2\)\tacme\/app\tRunning\t.*\tios-4k2vx\t.*21 s\t.*\thttps:\/\/github\.com\/acme\/app\/actions/,
    )
  })

  it('svc3 runner-pool doctor says what is wrong and what to do, by its exit code too', async () => {
    assert.equal((await svc3(['doctor', 'ios'])).exitCode, 0)
    pool = {
      ...getRunnerPool.example.response,
      condition: { reason: 'Unauthorized', message: 'Bad credentials', since: '2026-11-17T09:00:00Z' },
      ended: { GuestEnded: 3 },
    }
    const { stdout, exitCode } = await svc3(['doctor', 'ios'])
    assert.equal(exitCode, 1)
    assert.match(stdout, /Check the App id/)
    assert.match(stdout, /Put the runner with its run\.sh into \/opt\/actions-runner of the image of ios-build/)
  })

  it('svc3 runner-pool doctor --try checks a VM of the image, reports what it lacks, and deletes it', async () => {
    const lines = ['folder yes', 'start no', 'listener no', `clock ${Math.round(Date.now() / 1_000)}`, 'end']
    guestSays = lines.map((line) => `svc3-check ${line}\r\n`).join('')
    const { stdout, exitCode } = await svc3(['doctor', 'ios', '--try'])
    assert.equal(exitCode, 1)
    assert.match(stdout, /\/opt\/actions-runner\/run\.sh is missing or not executable/)
    const [deployed, deleted] = sent as [{ vmConfig: string; userdata: string }, string]
    assert.deepEqual([deployed.vmConfig, deleted], ['ios-build', 'deleted'])
    assert.match(Buffer.from(deployed.userdata, 'base64').toString(), /test -x \/opt\/actions-runner\/run\.sh/)
  })

  it('svc3 runner-pool doctor --try waits for a VM that takes minutes to deploy', async (context) => {
    guestSays = 'svc3-check folder yes\nsvc3-check end\n'
    context.mock.timers.enable({ apis: ['setTimeout'] })
    const deployed = deploys
    deploys = (name) => {
      context.mock.timers.tick(10 * 60_000)
      return deployed(name)
    }
    const { stdout, stderr } = await svc3(['doctor', 'ios', '--try'])
    assert.match(stdout, /^Image\t/m, stderr)
    assert.deepEqual([sent.length, sent[1]], [2, 'deleted'])
  })

  it('svc3 runner-pool doctor --try deletes its VM also after Ctrl-C while that is deployed', async () => {
    const controller = new AbortController()
    deploys = () => controller.abort()
    const { exitCode } = await svc3(['doctor', 'ios', '--try'], '', controller.signal)
    assert.equal(exitCode, 130)
    const [deployed, deleted] = sent as [{ ttl: string }, string]
    assert.deepEqual([deployed.ttl, deleted], ['30m', 'deleted'])
  })

  it('svc3 runner-pool doctor --try shows why a VM was refused, and does not delete another VM with that name', async () => {
    deploys = (name) => {
      throw new ApiError('AlreadyExists', `VM ${name} already exists`)
    }
    const { exitCode, stderr } = await svc3(['doctor', 'ios', '--try'])
    assert.equal(exitCode, 6)
    assert.match(stderr, /VM ios-doctor-\w{5} already exists/)
    assert.equal(sent.length, 1)
  })

  it('svc3 runner-pool takes the login of guests from a file, whole or not at all', async () => {
    const file = path.join(folder, 'guest.txt')
    fs.writeFileSync(file, 'guest-secret\n')
    const { stdout, exitCode } = await svc3(['update', 'ios', '--ssh-user', 'admin', '--ssh-password-file', file])
    assert.equal(exitCode, 0)
    assert.ok(!stdout.includes('secret'))
    assert.equal((await svc3(['update', 'ios', '--first-boot'])).exitCode, 0)
    assert.deepEqual(sent, [{ ssh: { user: 'admin', password: 'guest-secret' } }, { firstBoot: true }])
    for (const words of [
      ['--ssh-user', 'admin'],
      ['--ssh-key', key],
      ['--pause', '--resume'],
    ])
      assert.equal((await svc3(['update', 'ios', ...words])).exitCode, 2, words.join(' '))
  })
})
