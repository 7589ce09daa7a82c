// Random acts on VMs while processes are killed; after some acts everything observable is compared with the model: states,
// sizes, disks and images byte by byte, and no leftovers.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { type Random, seeded } from '../history/random.ts'
import { eventually } from '../tools/eventually.ts'
import { contentsOf } from '../tools/image-contents.ts'
import { killSomehow } from './kills.ts'
import { type Act, type ActName, after, type Disk, isTaken, type State } from './model.ts'
import { type Answer, assertImage, assertSame, type World, writeTo } from './world.ts'

export interface ModelRun {
  readonly world: World
  /** Reports the seed, which repeats acts and kills. */
  readonly tell: (text: string) => void
  readonly steps: number
  /** No step begins after this time. */
  readonly withinMs?: number
  /** The number of VMs used at the same time. */
  readonly slots: number
  readonly disk: Buffer
  /** Chosen as often as they appear here. */
  readonly mix: readonly ActName[]
  /** The number of steps between comparisons. */
  readonly between: number
  /** The approximate number of steps between kills. */
  readonly killEvery: number
  readonly memory?: number
}

export interface Done {
  readonly steps: number
  readonly refused: number
  readonly kills: number
  readonly checks: number
}

const inDefault = '/api/v1/namespaces/svc-default'
const timeoutMs = 240_000
const block = 65_536
const maxSizeGb = 4
const maxSaved = 3
const pushPlace = 'team/vm'
const whole = { depth: 10, breakLength: 120 }
/** Other responses are retried: the server is slow or being killed. */
const isAnswer = (status: number): boolean => status < 500 && status !== 429
/** For a VM whose node has been silent for too long. */
const late = / is unknown; /

/** One VM, under one name, and the image that belongs to it. */
interface Slot {
  readonly name: string
  readonly image: string
  readonly random: Random
  state: State
  uid: string | undefined
  saves: number
  /** The latest push. */
  pushed: { readonly reference: string; readonly disk: Disk; readonly job: string } | undefined
}

export async function runModel(run: ModelRun): Promise<Done> {
  const seed = process.env.SVC3_MODEL_SEED ?? randomBytes(4).toString('hex')
  run.tell(`SVC3_MODEL_SEED=${seed}`)
  const log: string[] = []
  try {
    return await new Runner(run, seeded(seed), log).go()
  } catch (error) {
    const file = path.join(os.tmpdir(), `svc3-model-${seed}-${run.world.architecture}-${process.pid}.txt`)
    await fs.writeFile(file, [...log, inspect(error), await evidenceOf(run.world)].join('\n'))
    run.tell(
      `SVC3_MODEL_SEED=${seed} makes the same acts and kills again; the last of them:\n${log.slice(-30).join('\n')}\n` +
        `${inspect(error)}\nAll of it, with the logs of server and agent, is in ${file}`,
    )
    throw error
  }
}

/** Everything known about a failure, from the API and from behind it. */
async function evidenceOf(world: World): Promise<string> {
  const lists = ['/vms', '/images', '/nodes', '/pushjobs', '/events'].map(async (where) => {
    const answer = await world.call('GET', inDefault + where)
    return `${where}: ${JSON.stringify(answer?.body)}`
  })
  // A process that died here was not killed by the model.
  const mortals = Object.entries(world.mortals).map(([name, mortal]) => {
    const { pid, exitCode, signalCode } = mortal().process
    return `${name}: process ${pid}, ${signalCode ?? exitCode ?? 'alive'}`
  })
  return [...mortals, ...(await Promise.all(lists)), await world.evidence()].join('\n')
}

class Runner {
  readonly #run: ModelRun
  readonly #world: World
  readonly #random: Random
  readonly #log: string[]
  readonly #slots: Slot[] = []
  /** Images that exist from the start. */
  readonly #builtIn: string[] = []
  readonly #count = { steps: 0, refused: 0, kills: 0, checks: 0 }
  #endMs = Infinity
  #isFailed = false

  constructor(run: ModelRun, random: Random, log: string[]) {
    this.#run = run
    this.#world = run.world
    this.#random = random
    this.#log = log
  }

  async go(): Promise<Done> {
    await this.#prepare()
    this.#endMs = performance.now() + (this.#run.withinMs ?? Infinity)
    const { steps, between, slots } = this.#run
    while (this.#count.steps < steps && !this.#isLate) {
      const share = Math.ceil(Math.min(between, steps - this.#count.steps) / slots)
      const killing = new AbortController()
      const kills = this.#kill(killing.signal)
      try {
        await Promise.all(this.#slots.map((slot) => this.#work(slot, share)))
      } finally {
        killing.abort()
        await kills
      }
      await this.#check()
    }
    await this.#end()
    return this.#count
  }

  get #isLate(): boolean {
    return performance.now() > this.#endMs
  }

  #note(text: string): void {
    this.#log.push(`${new Date().toISOString()} ${text}`)
  }

  async #prepare(): Promise<void> {
    const { slots, disk } = this.#run
    await eventually(async () => {
      const { body } = await this.#ask('GET', '/nodes')
      assert.equal(body.items[0]?.phase, 'READY')
    }, timeoutMs)
    if (this.#world.registry !== undefined) {
      const body = { server: this.#world.registry, username: 'ci', password: 'x', allowInsecure: true }
      await this.#ask('POST', '/secrets/registrycredentials/add', body)
    }
    const { body } = await this.#ask('GET', '/images')
    this.#builtIn.push(...(body.items as { name: string }[]).map(({ name }) => name))
    for (let n = 0; n < slots; n++) {
      const image = `base-${n}`
      await this.#world.upload(image, disk)
      const state = { image: { bytes: disk, sizeGb: 1 }, vm: undefined, saved: {} }
      const name = `vm-${n}`
      const random = this.#random.named(name)
      this.#slots.push({ name, image, random, state, uid: undefined, saves: 0, pushed: undefined })
    }
  }

  /**
   * Retries with one key until there is an answer. A refusal is an answer and stays the answer to that key; it is a
   * difference, unless the node was late: then nothing was changed, and the next request is a new one.
   */
  async #ask(
    method: string,
    where: string,
    body?: object,
    isRight = (status: number): boolean => status < 300,
  ): Promise<Answer> {
    const keyed = (): Record<string, string> => (method === 'POST' ? { 'idempotency-key': randomUUID() } : {})
    let headers = keyed()
    const answer = await eventually(async () => {
      const heard = await this.#world.call(method, inDefault + where, body, headers)
      const isLate = heard?.status === 409 && !isRight(409) && late.test(heard.body.message)
      if (isLate) headers = keyed()
      assert.ok(
        heard && !isLate && (isRight(heard.status) || isAnswer(heard.status)),
        `${method} ${where}: ${inspect(heard, whole)}`,
      )
      return heard
    }, timeoutMs)
    assert.ok(isRight(answer.status), `${method} ${where}: ${inspect(answer, whole)}`)
    return answer
  }

  // ---- acts

  async #work(slot: Slot, steps: number): Promise<void> {
    for (let n = 0; n < steps && !this.#isFailed && !this.#isLate; n++)
      try {
        const act = this.#choose(slot)
        await this.#perform(slot, act)
        this.#count.steps += 1
      } catch (error) {
        this.#isFailed = true
        throw error
      }
  }

  #choose(slot: Slot): Act {
    const { random, state } = slot
    for (;;) {
      const name = random.pick(this.#run.mix)
      const { vm, saved } = state
      // Most acts are possible; some are to be refused.
      if (!isTaken(state, name) && !random.chance(0.15)) continue
      if (name === 'resize') {
        if (vm && vm.disk.sizeGb >= maxSizeGb) continue
        return { name, sizeGb: (vm?.disk.sizeGb ?? 1) + 1 }
      }
      if (name === 'delete image') {
        const names = Object.keys(saved)
        if (names.length === 0) continue
        return { name, image: random.pick(names) }
      }
      if (name === 'save' && Object.keys(saved).length >= maxSaved) continue
      if (name === 'save' || name === 'push') return { name, image: `${slot.name}-${++slot.saves}` }
      if (name === 'crash' && !isTaken(state, name)) continue
      if (name === 'write' && vm?.power !== this.#world.writable) continue
      if (name === 'write') return { name, writes: this.#writes(slot) }
      return { name } as Act
    }
  }

  #writes({ random, state }: Slot) {
    const length = state.vm?.disk.bytes.length ?? 0
    return Array.from({ length: random.integer(1, 3) }, () => {
      const sector = random.chance(0.4) ? 512 : block
      // After the boot code.
      const offset = random.integer(block / sector, Math.floor(length / sector) - 1) * sector
      const most = Math.min(sector * random.integer(1, 4), length - offset)
      return { offset, length: most, byte: random.chance(0.3) ? 0 : random.integer(1, 255) }
    })
  }

  async #perform(slot: Slot, act: Act): Promise<void> {
    const isRight = isTaken(slot.state, act.name)
    this.#note(`${slot.name}: ${act.name}${isRight ? '' : ', to be refused'}`)
    if (act.name === 'write') await this.#write(slot, act)
    else if (act.name === 'crash') await this.#crash(slot)
    else if (!isRight) {
      const refused = (status: number): boolean => status === 409 || status === 404 || status === 422
      await this.#request(slot, act, refused)
      this.#count.refused += 1
      return
    } else await this.#request(slot, act)
    slot.state = after(slot.state, act)
  }

  async #request(slot: Slot, act: Act, isRight?: (status: number) => boolean): Promise<void> {
    const { name, image } = slot
    const vm = `/vms/${name}`
    // An image that is being replaced is not deployed from, because its content would be undefined.
    if (['deploy', 'revert', 'commit'].includes(act.name)) await this.#isReady(image)
    if (slot.state.vm?.power === 'running' && ['stop', 'resize'].includes(act.name))
      await this.#world.isUp?.(slot.uid ?? '')
    switch (act.name) {
      case 'deploy': {
        const { memory = 0.5 } = this.#run
        const { body } = await this.#ask('POST', '/vms', { name, image, cpu: 1, memory }, isRight)
        slot.uid = isRight ? slot.uid : body.uid
        return
      }
      case 'resize':
        await this.#ask('POST', `${vm}/resize`, { size: act.sizeGb }, isRight)
        return
      case 'save':
        await this.#ask('POST', `${vm}/save`, { imageName: act.image }, isRight)
        return this.#isFrozen(slot)
      case 'commit':
        await this.#ask('POST', `${vm}/commit`, {}, isRight)
        return this.#isFrozen(slot)
      case 'push': {
        const reference = `${new URL(this.#world.registry ?? '').host}/${pushPlace}:${act.image}`
        const { body } = await this.#ask('POST', `${vm}/push`, { imageReference: reference }, isRight)
        const { vm: now } = slot.state
        if (now && !isRight) slot.pushed = { reference, disk: now.disk, job: body.jobName }
        return this.#isFrozen(slot)
      }
      case 'delete':
        await this.#ask('DELETE', vm, undefined, isRight ?? ((status) => status === 200 || status === 404))
        slot.uid = undefined
        return
      case 'delete image':
        await this.#isReady(act.image)
        await this.#ask(
          'DELETE',
          `/images/${act.image}`,
          undefined,
          isRight ?? ((status) => status === 200 || status === 404),
        )
        return
      default:
        await this.#ask('POST', `${vm}/exec`, { command: act.name }, isRight)
    }
  }

  /** The capture has the state of this moment; the VM may be written to again. */
  #isFrozen({ name, state }: Slot): Promise<void> {
    if (!state.vm) return Promise.resolve()
    return eventually(async () => {
      const { body } = await this.#ask('GET', `/vms/${name}`)
      assert.equal(body.operation, undefined, JSON.stringify(body))
    }, timeoutMs)
  }

  async #isReady(image: string): Promise<string> {
    const body = await eventually(async () => {
      const { body: found } = await this.#ask('GET', `/images/${image}`)
      assert.ok(found.state === 'Ready' || found.state === 'Failed', JSON.stringify(found))
      return found
    }, timeoutMs)
    assert.equal(body.state, 'Ready', inspect(body, whole))
    return body.checksum
  }

  async #write(slot: Slot, { writes }: Extract<Act, { name: 'write' }>): Promise<void> {
    await writeTo(await this.#world.disk(slot.uid ?? ''), writes)
  }

  /** It stays down until it is started, even if the service was killed before it recorded the start. */
  async #crash({ name, uid = '' }: Slot): Promise<void> {
    const processOf = this.#world.processOf ?? assert.fail('VMs have no process here')
    const pid = processOf(uid) ?? assert.fail(`${name} has no process`)
    process.kill(pid, 'SIGKILL')
    await eventually(async () => {
      const { body } = await this.#ask('GET', `/vms/${name}`)
      assert.equal(body.powerState, 'failed', `${pid} was killed, there is ${processOf(uid)}: ${JSON.stringify(body)}`)
    }, timeoutMs)
  }

  // ---- kills

  async #kill(signal: AbortSignal): Promise<void> {
    const random = this.#random.named(`kills ${this.#count.checks}`)
    const names = Object.keys(this.#world.mortals)
    while (!signal.aborted) {
      // After some completed acts: processes that are killed faster than they start do nothing.
      const from = this.#count.steps + random.integer(0, 2 * this.#run.killEvery)
      while (this.#count.steps < from && !signal.aborted) await sleep(20)
      await sleep(random.integer(0, 300), undefined, { signal }).catch(() => undefined)
      if (signal.aborted) return
      const name = random.pick(names)
      const mortal = this.#world.mortals[name]?.()
      if (!mortal) continue
      this.#note(`${name} is killed ${await killSomehow(mortal, random)}`)
      this.#count.kills += 1
      await this.#world.revive(name)
    }
  }

  // ---- what must be true

  async #check(): Promise<void> {
    this.#note('everything is looked at')
    for (const slot of this.#slots) await this.#checkSlot(slot)
    await this.#checkLists()
    await eventually(async () => assert.deepEqual(await this.#world.leftovers(), []), timeoutMs)
    await eventually(() => assert.deepEqual(this.#strays(), []), timeoutMs)
    this.#count.checks += 1
  }

  async #checkSlot(slot: Slot): Promise<void> {
    const { name, state, uid, pushed } = slot
    const { vm } = state
    if (!vm) await this.#ask('GET', `/vms/${name}`, undefined, (status) => status === 404)
    else {
      await eventually(async () => {
        const { body } = await this.#ask('GET', `/vms/${name}`)
        const shown = [body.uid, body.powerState, body.diskGb, body.operation]
        assert.deepEqual(shown, [uid, vm.power, vm.disk.sizeGb, undefined], JSON.stringify(body))
      }, timeoutMs)
      await assertSame(this.#world.root, vm.disk, await this.#world.disk(uid ?? ''), `the disk of ${name}`)
    }
    for (const [image, disk] of [[slot.image, state.image] as const, ...Object.entries(state.saved)])
      await assertImage(this.#world, await this.#isReady(image), disk, image)
    if (pushed) await this.#checkPushed(pushed)
    slot.pushed = undefined
  }

  /** The push succeeded, and a VM from it has this disk. */
  async #checkPushed({ reference, disk, job }: NonNullable<Slot['pushed']>): Promise<void> {
    await eventually(async () => {
      const { body } = await this.#ask('GET', '/pushjobs')
      const found = (body.items as { name: string; status: string }[]).find((each) => each.name === job)
      assert.equal(found?.status, 'Succeeded', JSON.stringify(found))
    }, timeoutMs)
    const { body } = await this.#ask('POST', '/vms', { name: 'pulled', image: reference, cpu: 1, memory: 0.5 })
    await assertSame(this.#world.root, disk, await this.#world.disk(body.uid), reference)
    await this.#ask('DELETE', '/vms/pulled', undefined, (status) => status === 200 || status === 404)
  }

  /** The lists have everything in the model, and nothing else. */
  async #checkLists(): Promise<void> {
    const names = async (where: string): Promise<string[]> =>
      ((await this.#ask('GET', where)).body.items as { name: string }[]).map(({ name }) => name).toSorted()
    const there = this.#slots.filter(({ state }) => state.vm)
    assert.deepEqual(await names('/vms'), there.map(({ name }) => name).toSorted())
    const images = this.#slots.flatMap(({ image, state }) => [image, ...Object.keys(state.saved)])
    assert.deepEqual(await names('/images'), [...this.#builtIn, ...images].toSorted())
    await eventually(async () => {
      const { body } = await this.#ask('GET', '/nodes')
      assert.deepEqual(body.items[0].vms, there.map(({ name }) => `svc-default/${name}`).toSorted())
      assert.equal(body.items[0].allocatableCpu - body.items[0].availableCpu, there.length, 'cores in use')
    }, timeoutMs)
    const ports = ((await this.#ask('GET', '/vms')).body.items as { ssh: number }[]).map(({ ssh }) => ssh)
    assert.equal(new Set(ports).size, ports.length, `ports ${ports.join()}`)
    const folders = (await fs.readdir(this.#world.vms).catch(() => [])).toSorted()
    assert.deepEqual(folders, there.map(({ uid = '' }) => uid).toSorted(), 'folders of VMs')
    const alive = this.#slots.filter(({ state }) => ['running', 'suspended'].includes(state.vm?.power ?? ''))
    if (this.#world.processes) assert.equal(this.#world.processes().length, alive.length, 'processes of VMs')
  }

  /** Processes in this test's folder that nothing else explains. */
  #strays(): string[] {
    const known = new Set(Object.values(this.#world.mortals).map((mortal) => mortal().process.pid))
    // With their ancestors.
    for (let pid of this.#world.processes?.() ?? []) for (; pid > 1; pid = parentOf(pid)) known.add(pid)
    return readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid) && !known.has(Number(pid)) && Number(pid) !== process.pid)
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        } catch {
          return ''
        }
      })
      .filter((line) => line.includes(this.#world.root) && !line.startsWith('docker-registry'))
  }

  /** After deleting all VMs and saved images, nothing is left. */
  async #end(): Promise<void> {
    for (const slot of this.#slots) {
      if (slot.state.vm) await this.#perform(slot, { name: 'delete' })
      for (const image of Object.keys(slot.state.saved)) await this.#perform(slot, { name: 'delete image', image })
    }
    await this.#check()
    const contents = this.#slots.map(async ({ image }) => {
      await this.#isReady(image)
      return contentsOf((await this.#ask('GET', `/images/${image}`)).body)
    })
    await this.#world.hasOnly((await Promise.all(contents)).flat())
  }
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}
