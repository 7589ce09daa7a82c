// What people and their automation do to a cluster during a soak, each at a steady pace: a table of activities, how
// often each comes, and how long each call took.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

interface Target {
  readonly apiUrl: string
  readonly token: string
}

export interface Call {
  readonly activity: string
  readonly atMs: number
  readonly tookMs: number
}

interface LoadOptions {
  /** The servers, in turn; read again before each attempt. */
  readonly targets: () => readonly Target[]
  readonly maxVms: number
}

interface Activity {
  readonly perSecond: number
  work(): Promise<unknown>
}

const inDefault = '/namespaces/svc-default'
const account = 'soak'
const image = 'empty'
const watchMs = 30_000
const uploadBytes = 4 * 1024 * 1024
/** What a restart of a server may take of a call: then it is tried at the other one, and so on. */
const timeoutMs = 60_000

export class Load implements AsyncDisposable {
  readonly calls: Call[] = []
  readonly failures: string[] = []
  readonly #options: LoadOptions
  readonly #ending = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #vms: string[] = []
  #count = 0
  #turn = 0

  constructor(options: LoadOptions) {
    this.#options = options
  }

  readonly #activities: Readonly<Record<string, Activity>> = {
    deploy: { perSecond: 8, work: () => this.#deploy() },
    list: { perSecond: 2, work: () => this.#call('GET', `${inDefault}/vms?limit=500`) },
    watch: { perSecond: 1, work: () => this.#watch() },
    login: { perSecond: 1, work: () => this.#login() },
    upload: { perSecond: 0.2, work: () => this.#upload() },
  }

  async start(): Promise<void> {
    await this.#call('POST', `${inDefault}/images`, { name: image, size: '1G' })
    await this.#call('POST', `${inDefault}/serviceaccounts/${account}`)
    for (const [name, activity] of Object.entries(this.#activities)) this.#track(this.#repeat(name, activity))
  }

  /** Ends running operations and deletes the VMs. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    while (this.#running.size > 0) await Promise.all(this.#running)
    for (const vm of this.#vms.splice(0)) await this.#call('DELETE', `${inDefault}/vms/${vm}`)
  }

  #target(turn: number): Target | undefined {
    const targets = this.#options.targets()
    return targets[turn % targets.length]
  }

  #track(work: Promise<void>): void {
    const ended = work.finally(() => this.#running.delete(ended))
    this.#running.add(ended)
  }

  /** Each begins at its time, however long the one before takes. */
  async #repeat(name: string, { perSecond, work }: Activity): Promise<void> {
    const { signal } = this.#ending
    for (let round = 0, startMs = performance.now(); !signal.aborted; round++) {
      await sleep(Math.max(0, startMs + (round * 1_000) / perSecond - performance.now()), undefined, { signal }).catch(
        () => undefined,
      )
      if (!signal.aborted) this.#track(this.#timed(name, work))
    }
  }

  async #timed(activity: string, work: () => Promise<unknown>): Promise<void> {
    const startMs = performance.now()
    try {
      await work()
      this.calls.push({ activity, atMs: startMs, tookMs: performance.now() - startMs })
    } catch (error) {
      this.failures.push(`${activity}: ${(error as Error).message}`)
    }
  }

  /** And, once there are enough of them, deletes the oldest one. */
  async #deploy(): Promise<void> {
    const name = `vm-${++this.#count}`
    await this.#call('POST', `${inDefault}/vms`, { name, image, cpu: 2, memory: 1 })
    this.#vms.push(name)
    const oldest = this.#vms.length > this.#options.maxVms ? this.#vms.shift() : undefined
    if (oldest !== undefined) await this.#call('DELETE', `${inDefault}/vms/${oldest}`)
  }

  async #watch(): Promise<void> {
    const signal = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(watchMs)])
    const target = this.#target(this.#turn++)
    const headers = { authorization: `Bearer ${target?.token}` }
    // It is cut off by us, or by a server that restarts.
    const cut = fetch(`${target?.apiUrl}/api/v1${inDefault}/vms?watch=true`, { headers, signal }).then(
      async ({ body }) => {
        for await (const _ of body ?? []);
      },
    )
    await cut.catch(() => undefined)
  }

  async #login(): Promise<void> {
    const { token } = (await this.#call('POST', `${inDefault}/serviceaccounts/${account}/token`, {
      duration: '1h',
    })) as { token: string }
    await this.#call('GET', `${inDefault}/vms?limit=1`, undefined, token)
  }

  async #upload(): Promise<void> {
    const name = `upload-${++this.#count}`
    const form = new FormData()
    form.set('name', name)
    form.set('image', new Blob([randomBytes(uploadBytes)]), `${name}.img`)
    await this.#call('POST', `${inDefault}/upload/image`, form)
    await this.#call('DELETE', `${inDefault}/images/${name}`)
  }

  /** Through whichever server answers. What was done before the connection was cut counts as done. */
  async #call(method: string, where: string, body?: object, token?: string): Promise<unknown> {
    const untilMs = performance.now() + timeoutMs
    const turn = this.#turn++
    for (let attempt = 0; ; attempt++) {
      const target = this.#target(turn + attempt)
      const isForm = body instanceof FormData
      const request = {
        method,
        headers: {
          authorization: `Bearer ${token ?? target?.token}`,
          ...(body && !isForm && { 'content-type': 'application/json' }),
        },
        ...(body && { body: isForm ? body : JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      }
      const response = await fetch(`${target?.apiUrl}/api/v1${where}`, request).catch(() => undefined)
      if (response?.ok)
        return response.headers.get('content-type')?.startsWith('application/json') ? response.json() : 0
      const text = await response?.text().catch(() => '')
      const isDone =
        attempt > 0 &&
        ((method === 'POST' && response?.status === 409) || (method === 'DELETE' && response?.status === 404))
      if (isDone) return undefined
      // An upload that a restart cut off is still there as one that is being written, until the server that comes back
      // clears it up.
      const isWritten = method === 'DELETE' && response?.status === 409
      const mayPass = !response || response.status >= 500 || isWritten
      if (!mayPass || performance.now() > untilMs) throw new Error(`${method} ${where}: ${response?.status} ${text}`)
      await sleep(200)
    }
  }
}
