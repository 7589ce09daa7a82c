// Journeys of 2.4.x clients, with simulated nodes: names and ids, forms and JSON, strict types, messages that clients match.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { type Answer, type CallOptions, startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { startRemote } from '../../../test/support/stand-ins/remote-folder.ts'
import { fileForm, makePair } from '../../../test/support/tools/certificates.ts'
import { randomDisc } from '../../../test/support/tools/disc.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { makeKeyring } from '../../auth/keyring.ts'
import { LocalIssuer } from '../../auth/provider/issuer.ts'
import { loadIssuerKeys } from '../../auth/provider/issuer-keys.ts'
import { createLoginThrottle } from '../../auth/provider/login-throttle.ts'
import { UserDirectory } from '../../auth/provider/users.ts'
import { Secrets } from '../../auth/secrets.ts'
import { pullImages } from '../../controllers/pull-images.ts'
import { createLog } from '../../platform/log.ts'
import { openMemory } from '../../store/memory.ts'
import { changeCaptured, failImage, withoutCapture } from '../../store/records/captures.ts'
import { openCollections } from '../../store/records/collections.ts'
import type { ImageCapture } from '../../store/records/fleet-records.ts'
import { createPulls } from '../remotes/image-pulls.ts'

const password = 'correct horse'
let service: TestService
let scheduler: AsyncDisposable

async function localIssuer(): Promise<LocalIssuer> {
  const collections = await openCollections(openMemory())
  const secrets = new Secrets(makeKeyring([randomBytes(32)]))
  const users = new UserDirectory(collections.users, secrets)
  await users.add('ada@example.com', { admin: true, password })
  const clock = { now: () => new Date() }
  const keys = await loadIssuerKeys(collections.issuerKeys, secrets, clock)
  const storage = { logins: collections.logins, secrets, keys, clock }
  const throttle = createLoginThrottle({ tries: collections.loginTries, hide: keys.hide, clock })
  const log = createLog('silent')
  return new LocalIssuer({ apiUrl: () => 'http://127.0.0.1:1', users, keys, storage, throttle, log })
}

before(async () => {
  service = await startService({ settings: { legacy: { enabled: true } }, localIssuer: await localIssuer() })
  scheduler = startScheduler(service)
  await addImage(service, 'ventura', 'amd64')
  await startNode(service, { name: 'macpro-1', report: { cpu: 12 } })
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const form = { 'content-type': 'application/x-www-form-urlencoded' }
async function ok(method: string, url: string, options?: CallOptions, status = 200): Promise<Answer['body']> {
  const answer = await service.call(method, url, options)
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(answer.body.errors, [])
  if (!/vm\/(create|deploy)$/.test(url)) assert.deepEqual(answer.body.help, {})
  return answer.body
}
async function refused(status: number, text: RegExp, method: string, url: string, options?: CallOptions) {
  const answer = await service.call(method, url, options)
  assert.equal(answer.status, status, answer.text)
  assert.match(answer.body.errors[0].message, text)
  return answer
}

describe('logging in', () => {
  it('a form with thousands of fields is refused quickly, with and without a token', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const started = performance.now()
    const answer = await service.call('POST', '/token', { body: 'a&'.repeat(60_000), token: null, headers })
    assert.equal(answer.status, 400)
    assert.match(answer.text, /more than 1000 fields/)
    assert.ok(performance.now() - started < 5_000)
  })

  it('legacy login accepts a form or JSON with any Content-Type, and returns a valid token', async () => {
    const asForm = `email=${encodeURIComponent('ada@example.com')}&password=${encodeURIComponent(password)}`
    const asJson = JSON.stringify({ email: 'ada@example.com', password })
    for (const options of [
      { body: asForm, headers: form },
      { body: asJson },
      // `curl -d` labels JSON as a form.
      { body: asJson, headers: form },
      { body: asForm, headers: { 'content-type': 'text/plain' } },
    ]) {
      const { token } = await ok('POST', '/token', { ...options, token: null })
      assert.equal(typeof token, 'string')
      await ok('GET', '/resources/vm/list', { token, headers: { 'orka-licensekey': 'obsolete' } })
    }
  })

  it('legacy login refuses a wrong password, and shares the limit of the login form', async () => {
    const wrong = { token: null, body: { email: 'eve@example.com', password: 'wrong password' } }
    // Concurrently, because five slow attempts would take as long as the delay.
    const answers = await Promise.all(Array.from({ length: 6 }, () => service.call('POST', '/token', wrong)))
    const slowed = answers.filter(({ status }) => status === 429)
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [401, 401, 401, 401, 401, 429])
    for (const { body, status } of answers)
      assert.match(body.errors[0].message, status === 401 ? /Wrong email or password/ : /Too many wrong passwords/)
    assert.ok(Number(slowed[0]?.headers['retry-after']) >= 1)
    await refused(400, /password is missing/, 'POST', '/token', { token: null, body: { email: 'a@b.c' } })
  })

  it('the legacy API reports the version that Jenkins checks', async () => {
    assert.equal((await ok('GET', '/health-check', { token: null })).api_version, '2.4.0')
  })
})

describe('VM lifecycle', () => {
  const name = 'ios-build'
  let id: string

  it('the legacy API begins without VM configurations', async () => {
    const answer = await ok('GET', '/resources/vm/configs')
    assert.deepEqual([answer.configs, answer.message], [[], 'No VM configurations exist'])
    assert.deepEqual((await ok('GET', '/resources/vm/configs/none')).configs, [])
    await refused(404, /No VM configurations exist/, 'POST', '/resources/vm/deploy', { body: { orka_vm_name: 'none' } })
  })

  it('the legacy API creates a VM configuration', async () => {
    const body = {
      orka_vm_name: name, orka_base_image: 'ventura', orka_image: name, orka_cpu_core: 6, vcpu_count: 6,
      iso_image: 'None', attached_disk: 'None', vnc_console: true, memory: 0.0, tag: '', tag_required: false,
    } // biome-ignore format: as clients write it
    const created = await service.call('POST', '/resources/vm/create', { body })
    assert.deepEqual([created.status, created.body.message], [201, 'Successfully Created'])
    assert.equal(created.body.help.required_request_data_for_deploy.orka_vm_name, name)
    await refused(409, /already exists/, 'POST', '/resources/vm/create', { body })
    const { configs } = await ok('GET', `/resources/vm/configs/${name}`)
    assert.deepEqual(configs, (await ok('GET', '/resources/vm/configs')).configs)
    assert.deepEqual(configs, [
      {
        owner: 'admin@example.com', orka_vm_name: name, orka_base_image: 'ventura', orka_cpu_core: 6, vcpu_count: 6,
        iso_image: 'None', attached_disk: 'None', vnc_console: true, io_boost: true, net_boost: true,
        use_saved_state: false, gpu_passthrough: false, system_serial: 'N/A', tag: '', tag_required: false,
        scheduler: 'default', memory: 'automatic',
      }, // biome-ignore format: a record
    ])
  })

  it('the legacy API names every problem of a VM configuration', async () => {
    const long = 'x'.repeat(39)
    await refused(400, /more than 38/, 'POST', '/resources/vm/create', {
      body: { orka_vm_name: long, orka_base_image: 'ventura' },
    })
    await refused(404, /Image none not found/, 'POST', '/resources/vm/create', {
      body: { orka_vm_name: 'x', orka_base_image: 'none' },
    })
    const both = { body: { orka_cpu_core: 'six', vnc_console: 'perhaps' } }
    const answer = await refused(400, /orka_cpu_core must be a whole number/, 'POST', '/resources/vm/create', both)
    assert.match(answer.body.errors[0].message, /vnc_console must be true or false; orka_vm_name is missing/)
  })

  it('the legacy API lists a VM configuration that is not deployed', async () => {
    const { virtual_machine_resources: all } = await ok('GET', '/resources/vm/list')
    assert.equal(all.length, 1)
    assert.equal(all[0].vm_deployment_status, 'Not Deployed')
    assert.deepEqual([all[0].cpu, all[0].vcpu, all[0].owner], [6, 6, 'admin@example.com'])
    assert.deepEqual((await ok('GET', `/resources/vm/status/${name}`)).virtual_machine_resources, all)
  })

  it('the legacy API deploys a VM configuration', async () => {
    const body = `orka_vm_name=${name}&reserved_ports[]=8000:80&vm_metadata=${encodeURIComponent('{"items":[{"key":"k","value":"v"}]}')}`
    const { status, body: deployed } = await service.call('POST', '/resources/vm/deploy', { body, headers: form })
    assert.equal(status, 200)
    id = deployed.vm_id
    // The name that the Python SDK reads.
    assert.equal(deployed.help.data_for_virtual_machine_exec_tasks.orka_vm_name, name)
    assert.deepEqual(
      { ...deployed, vm_id: '', help: {} },
      {
        message: 'Successfully deployed VM', help: {}, errors: [], ram: '6.4G', vcpu: '6', host_cpu: '6', ip: '127.0.0.1',
        ssh_port: '8822', screen_share_port: '5900', vnc_port: '5999', vm_id: '', port_warnings: [], io_boost: true,
        net_boost: true, use_saved_state: false, gpu_passthrough: false,
      }, // biome-ignore format: a record
    )
  })

  it('the legacy API shows the status of a VM by name and by id, with strict types', async () => {
    const { virtual_machine_resources: byName } = await ok('GET', `/resources/vm/status/${name}`)
    assert.deepEqual((await ok('GET', `/resources/vm/status/${id}`)).virtual_machine_resources, byName)
    const [{ status, ...group }] = byName
    assert.deepEqual(group, { virtual_machine_name: name, vm_deployment_status: 'Deployed' })
    assert.deepEqual(status, [
      {
        owner: 'admin@example.com', virtual_machine_name: name, virtual_machine_id: id, node_location: 'macpro-1',
        node_status: 'UP', virtual_machine_ip: '127.0.0.1', vnc_port: '5999', screen_sharing_port: '5900',
        ssh_port: '8822', cpu: 6, vcpu: 6, gpu: 'N/A', RAM: '6.4G', base_image: 'ventura', image: name,
        configuration_template: 'default', vm_status: 'running', io_boost: true, net_boost: true, use_saved_state: false,
        reserved_ports: [
          { host_port: 5999, guest_port: 5999, protocol: 'TCP' }, { host_port: 5900, guest_port: 5900, protocol: 'TCP' },
          { host_port: 8822, guest_port: 22, protocol: 'TCP' }, { host_port: 8000, guest_port: 80, protocol: 'TCP' },
        ],
        creation_timestamp: '2026-11-15T09:00:00Z', creationTimestamp: '2026-11-15T09:00:00Z', tag: '', tag_required: false, replicas: 1,
      }, // biome-ignore format: a record
    ])
    assert.deepEqual((await ok('GET', '/resources/vm/status/none')).virtual_machine_resources, [])
  })

  it('the legacy API starts and stops a VM by name and by id', async () => {
    const words: readonly (readonly [string, string, string])[] = [
      ['stop', name, `${name} has stopped on macpro-1`],
      ['start', name, `${name} has started on macpro-1`],
      ['suspend', 'id', 'ID has been suspended on macpro-1'],
      ['resume', 'id', 'ID has resumed on macpro-1'],
      ['revert', name, `Successfully reverted ${name} on macpro-1`],
    ]
    for (const [verb, called, said] of words) {
      const body = { orka_vm_name: called === 'id' ? id : called, orka_node_name: 'macpro-1' }
      const { message } = await ok('POST', `/resources/vm/exec/${verb}`, { body })
      assert.equal(message, said.replace('ID', id))
    }
    const elsewhere = { body: { orka_vm_name: name, orka_node_name: 'macpro-2' } }
    await refused(404, /No VMs with that name/, 'POST', '/resources/vm/exec/stop', elsewhere)
  })

  it('the legacy API answers save and commit when they end, with the reason of a failure', async () => {
    const { collections } = service.services
    const captured = async (image: string, end: (capture: ImageCapture) => Promise<unknown>) => {
      await eventually(async () => assert.ok(collections.images.get('', image)?.value.capture))
      await end(collections.images.get('', image)?.value.capture as ImageCapture)
    }
    const fails =
      (image: string) =>
      ({ id: capture, kind }: ImageCapture) =>
        failImage(collections, { id: capture, image, kind }, 'the disk of the node is full', '2026-11-15T09:00:00Z')
    const succeeds =
      (image: string) =>
      ({ id: capture }: ImageCapture) =>
        changeCaptured(collections, { id: capture, image }, withoutCapture)
    const byId = { orka_vm_name: id }
    const steps = [
      ['save', { ...byId, new_name: 'kept' }, 'kept', succeeds, 'saved'],
      [
        'save',
        { ...byId, new_name: 'lost' },
        'lost',
        fails,
        /image "lost" could not be made: the disk of the node is full/,
      ],
      ['commit', { orka_vm_name: name }, 'ventura', fails, /image "ventura" could not be made: the disk of the node/],
      ['commit', byId, 'ventura', succeeds, 'committed'],
    ] as const
    for (const [verb, body, image, end, said] of steps) {
      const answering = service.call('POST', `/resources/image/${verb}`, { body })
      await captured(image, end(image))
      const { status, body: answer, text } = await answering
      assert.equal(status, typeof said === 'string' ? 200 : 500, text)
      if (typeof said === 'string') assert.equal(answer.message, said)
      else assert.match(answer.errors[0].message, said)
    }
    for (const image of ['kept', 'lost']) await ok('POST', '/resources/image/delete', { body: { image } })
  })

  it('the legacy API deploys a second VM of a configuration under a generated name', async () => {
    const { vm_id: second } = await ok('POST', '/resources/vm/deploy', { body: { orka_vm_name: name } })
    const { virtual_machine_resources: all } = await ok('GET', '/resources/vm/list/all')
    assert.equal(all.length, 1)
    assert.deepEqual(
      all[0].status.map((vm: { virtual_machine_id: string }) => vm.virtual_machine_id).sort(),
      [id, second].sort(),
    )
    assert.deepEqual(
      all[0].status.map((vm: { replicas: number }) => vm.replicas),
      [2, 2],
    )
    const names = service.services.collections.vms.list('svc-default').map(({ value }) => value.name)
    assert.ok(names.includes(name) && names.some((each) => /^ios-build-[a-z0-9]{5}$/.test(each)), names.join())
    const one = await ok('GET', `/resources/vm/status/${second}`)
    assert.equal(one.virtual_machine_resources[0].status.length, 1)
    await refused(409, /2 VMs go by the name/, 'POST', '/resources/image/save', {
      body: { orka_vm_name: name, new_name: 'x' },
    })
  })

  it('the legacy API refuses a VM without room, with the message that clients look for', async () => {
    await refused(409, /^No available nodes with sufficient CPU\.$/, 'POST', '/resources/vm/deploy', {
      body: { orka_vm_name: name },
    })
    await ok(
      'POST',
      '/resources/vm/create',
      { body: { orka_vm_name: 'huge', orka_base_image: 'ventura', orka_cpu_core: 64 } },
      201,
    )
    await refused(409, /^Requested CPU is not available in the cluster$/, 'POST', '/resources/vm/deploy', {
      body: { orka_vm_name: 'huge' },
    })
    const { message } = await ok('DELETE', '/resources/vm/purge', { body: { orka_vm_name: 'huge' } })
    assert.equal(message, 'Successfully purged VM')
  })

  it('the legacy API lists the VMs that a user owns', async () => {
    assert.equal((await ok('GET', '/resources/vm/list/admin@example.com')).virtual_machine_resources.length, 1)
    assert.deepEqual((await ok('GET', '/resources/vm/list/bob@example.com')).virtual_machine_resources, [])
  })

  it('the legacy API does not change VMs of other owners', async () => {
    const answer = await service.call('DELETE', '/resources/vm/delete', {
      token: service.devToken,
      body: { orka_vm_name: id },
    })
    assert.equal(answer.status, 403, answer.text)
  })

  it('the legacy API deletes a VM by id, with a body on DELETE that has no Content-Type', async () => {
    const { statusCode, payload } = await service.app.inject({
      method: 'DELETE',
      url: '/resources/vm/delete',
      headers: { authorization: `Bearer ${service.adminToken}` },
      payload: Buffer.from(JSON.stringify({ orka_vm_name: id })),
    })
    assert.equal(statusCode, 200, payload)
    assert.equal(JSON.parse(payload).message, 'Successfully deleted VM')
    const { virtual_machine_resources: all } = await ok('GET', '/resources/vm/list', { body: '{"ignored": true}' })
    assert.equal(all[0].status.length, 1)
    await refused(500, /^No VMs with that name are currently deployed$/, 'DELETE', '/resources/vm/delete', {
      body: { orka_vm_name: id },
    })
  })

  it('the legacy API deploys replicas, all or none', async () => {
    const { message, replicas } = await ok(
      'POST',
      '/resources/vm/create',
      { body: { orka_vm_name: 'small', orka_base_image: 'ventura', orka_cpu_core: 2 } },
      201,
    ).then(() => ok('POST', '/resources/vm/deploy', { body: { orka_vm_name: 'small', replicas: 3 } }))
    assert.equal(message, '3 of 3 VMs deployed successfully.')
    assert.equal(new Set(replicas.map((each: { vm_id: string }) => each.vm_id)).size, 3)
    const { virtual_machine_resources: all } = await ok('GET', '/resources/vm/status/small')
    assert.equal(all[0].status.length, 3)
    await ok('DELETE', '/resources/vm/delete', { body: { orka_vm_name: 'small' } })
    assert.equal(
      (await ok('GET', '/resources/vm/status/small')).virtual_machine_resources[0].vm_deployment_status,
      'Not Deployed',
    )
  })

  it('the legacy API lists a VM that is Pending as not deployed, and deletes it', async () => {
    const inDefault = '/api/v1/namespaces/svc-default'
    const vms = `${inDefault}/vms`
    await service.call('POST', `${inDefault}/nodes/macpro-1/cordon`)
    const pending = { name: 'waits', image: 'ventura', cpu: 1 }
    const created = await service.call('POST', `${vms}?wait=false`, { body: pending })
    assert.equal(created.status, 202, created.text)
    const listed = async (): Promise<string[]> =>
      (await ok('GET', '/resources/vm/list')).virtual_machine_resources.map(
        (each: { virtual_machine_name: string }) => each.virtual_machine_name,
      )
    assert.ok(!(await listed()).includes('waits'))
    await ok('DELETE', '/resources/vm/delete', { body: { orka_vm_name: 'waits' } })
    assert.equal((await service.call('GET', `${vms}/waits`)).status, 404)
    await service.call('POST', `${inDefault}/nodes/macpro-1/uncordon`)
  })

  it('the legacy API purges VMs and their configuration', async () => {
    for (const each of [name, 'small'])
      assert.equal(
        (await ok('DELETE', '/resources/vm/purge', { body: { orka_vm_name: each } })).message,
        'Successfully purged VM',
      )
    assert.deepEqual((await ok('GET', '/resources/vm/list')).virtual_machine_resources, [])
    await refused(404, /No VMs with that name/, 'DELETE', '/resources/vm/purge', { body: { orka_vm_name: name } })
  })

  it('the legacy API records events, as the requests of 3.0 do', async () => {
    const { body } = await service.call('GET', '/api/v1/namespaces/svc-default/events')
    const reasons = new Set(body.items.map((event: { reason: string }) => event.reason))
    for (const reason of ['CreateVmConfig', 'DeployVm', 'StopVm', 'StartVm', 'DeleteVm', 'DeleteVmConfig'])
      assert.ok(reasons.has(reason), reason)
  })
})

describe('nodes', () => {
  it('the legacy API lists, tags and untags nodes', async () => {
    const { message } = await ok('POST', '/resources/node/tag/ios', { body: { orka_node_name: 'macpro-1' } })
    assert.equal(message, "Successfully tagged node 'macpro-1' with a tag 'ios'")
    const { nodes } = await ok('GET', '/resources/node/list')
    assert.deepEqual(nodes, [
      {
        name: 'macpro-1', host_name: 'macpro-1', address: '127.0.0.1', hostIP: '127.0.0.1', available_cpu: 12,
        allocatable_cpu: 12, available_gpu: 'N/A', allocatable_gpu: 'N/A', available_memory: '16.00G', total_cpu: 12,
        total_memory: '16.00G', node_type: 'WORKER', state: 'READY', orka_tags: ['ios'],
      }, // biome-ignore format: a record
    ])
    const untagged = await ok('DELETE', '/resources/node/tag/ios', { body: 'orka_node_name=macpro-1', headers: form })
    assert.equal(untagged.message, "Successfully untagged node 'macpro-1'")
    await refused(404, /not found/, 'POST', '/resources/node/tag/ios', { body: { orka_node_name: 'none' } })
  })
})

describe('images and ISOs', () => {
  it('the legacy API generates, uploads, copies, downloads, lists and deletes images and ISOs', async () => {
    assert.equal(
      (await ok('POST', '/resources/image/generate', { body: { file_name: 'empty.img', file_size: '1G' } })).message,
      'Successfully generated image',
    )
    const upload = await fileForm({ image: '\0'.repeat(512) })
    assert.match((await ok('POST', '/resources/image/upload', upload)).message, /^Successfully uploaded /)
    const name = (await ok('POST', '/resources/image/copy', { body: { image: 'ventura', new_name: 'ventura-2.img' } }))
      .message
    assert.equal(name, 'Successfully copied')
    const records = service.services.collections.images
    const record = records.get('', 'empty.img')
    assert.ok(record)
    await records.update(record, { ...record.value, updatedAt: '2026-11-15T10:00:00Z' })
    const { images, image_attributes: attributes } = await ok('GET', '/resources/image/list')
    assert.deepEqual(images.sort(), ['empty.img', 'ventura', 'ventura-2.img', 'x.pem'])
    const empty = attributes.find((each: { image: string }) => each.image === 'empty.img')
    assert.deepEqual(empty, {
      image: 'empty.img',
      image_size: '1G',
      modified: '2026-11-15T10:00:00Z',
      date_added: '2026-11-15T09:00:00Z',
      owner: 'all',
    })
    for (const image of images) {
      // Without a Content-Type, as one client does.
      const { statusCode, payload } = await service.app.inject({
        method: 'POST', url: '/resources/image/delete', headers: { authorization: `Bearer ${service.adminToken}` },
        payload: Buffer.from(JSON.stringify({ image })),
      }) // biome-ignore format: a request
      assert.equal(statusCode, 200, payload)
      assert.equal(JSON.parse(payload).message, `Successfully deleted: ${image}`)
    }
    const answer = await refused(404, /^image file not found: none$/, 'GET', '/resources/image/download/none')
    assert.ok(answer.headers.deprecation)
  })

  it('the legacy API downloads images and ISOs as they were uploaded', async () => {
    const bytes = `${'the bytes of an installer\0'.padEnd(0x8001, '\0')}CD001`.padEnd(0x8200, '\0')
    const uploaded = await ok('POST', '/resources/iso/upload', await fileForm({ iso: bytes }))
    const [, name = ''] = /^Successfully uploaded (.+)$/.exec(uploaded.message) ?? []
    assert.equal(
      (await ok('POST', '/resources/iso/copy', { body: { iso: name, new_name: 'b.iso' } })).message,
      'Successfully copied iso.',
    )
    const { isos, iso_attributes: attributes } = await ok('GET', '/resources/iso/list')
    assert.deepEqual(isos.sort(), [name, 'b.iso'].sort())
    assert.deepEqual(Object.keys(attributes[0]), ['iso', 'iso_size', 'modified'])
    await ok('POST', '/resources/image/upload', await fileForm({ image: bytes }))
    const { images } = await ok('GET', '/resources/image/list')
    const answer = await service.call('GET', `/resources/image/download/${images[0]}`)
    assert.equal(answer.status, 200)
    assert.ok(answer.text.startsWith(bytes))
    assert.equal(answer.headers['content-disposition'], `attachment; filename="${images[0]}"`)
    assert.equal(Number(answer.headers['content-length']), Buffer.byteLength(answer.text))
    assert.match(String(answer.headers.link), new RegExp(`/images/${images[0]}/download`))
    for (const iso of isos) await ok('POST', '/resources/iso/delete', { body: { iso } })
  })
})

describe('a download whose client leaves', () => {
  it('is not an error of the server', async () => {
    await ok('POST', '/resources/image/generate', { body: { file_name: 'large.img', file_size: '8G' } })
    const left = new AbortController()
    const headers = { authorization: `Bearer ${service.adminToken}` }
    const url = `${await service.listen()}/resources/image/download/large.img`
    const answer = await fetch(url, { headers, signal: left.signal })
    assert.equal(answer.status, 200)
    await answer.body?.getReader().read()
    left.abort()
    await eventually(() => assert.equal(service.services.metrics.watches.open, 0))
    await new Promise(setImmediate)
    assert.deepEqual(
      service.logLines.filter((line) => line.includes('/image/download/') && line.includes('"stack"')),
      [],
    )
  })
})

describe('remote images and ISOs', () => {
  it('the legacy API lists remote images and ISOs, and answers a pull when it ends', async () => {
    await using remote = await startRemote()
    const remotes = [{ name: 'lab', url: remote.url, allowInsecure: true }]
    await using own = await startService({ settings: { legacy: { enabled: true }, remotes } })
    const pulls = pullImages(own.services, createPulls(own.services))
    remote.items.set('sonoma', { bytes: randomBytes(2 ** 16) })
    remote.items.set('disc.iso', { bytes: randomDisc(40_000), kind: 'iso' })
    remote.items.set('broken', { bytes: randomBytes(2 ** 12), index: { sha256: '0'.repeat(64) } })
    const get = async (url: string) => (await own.call('GET', url)).body
    const images = ['broken', 'sonoma']
    assert.deepEqual((await get('/resources/image/list-remote')).images.sort(), images)
    const both = await get('/resources/iso/list-remote')
    assert.deepEqual([both.isos, both.images.sort()], [['disc.iso'], images])

    const pulled = await own.call('POST', '/resources/image/pull', { body: { image: 'sonoma', new_name: 'mine' } })
    assert.deepEqual([pulled.status, pulled.body.message], [200, 'Successfully copied image.'], pulled.text)
    assert.equal(own.services.collections.images.get('', 'mine')?.value.state, undefined)
    const disc = await own.call('POST', '/resources/iso/pull', { body: 'iso=disc.iso', headers: form })
    assert.deepEqual([disc.status, disc.body.message], [200, 'Successfully copied iso.'], disc.text)
    assert.deepEqual((await get('/resources/iso/list')).isos, ['disc.iso'])
    const broken = await own.call('POST', '/resources/image/pull', { body: { image: 'broken', new_name: 'never' } })
    assert.equal(broken.status, 500)
    assert.match(broken.body.errors[0].message, /image "never" could not be made: ./)
    await pulls.stop()
  })
})

describe('the certificate', () => {
  it('the legacy API sets the certificate like the operation', async () => {
    const { cert, key } = await makePair()
    const { message } = await ok('POST', '/resources/cert/set', await fileForm({ certPath: cert, keyPath: key }))
    assert.equal(message, 'Successfully set certificate')
    await refused(400, /not multipart/, 'POST', '/resources/cert/set', { body: {} })
  })
})

describe('usage', () => {
  it('legacy calls are counted by endpoint, subject and client, across a restart', async () => {
    await service.call('GET', '/resources/ports', { headers: { 'user-agent': 'old-script/1.0' } })
    await service.call('GET', '/resources/ports', { headers: { 'user-agent': 'old-script/1.0' } })
    const { body } = await service.call('GET', '/api/v1/legacy/usage')
    assert.equal(body.enabled, true)
    const row = body.items.find((item: { client: string }) => item.client === 'old-script/1.0')
    assert.deepEqual(row, {
      endpoint: 'GET /resources/ports', subject: 'admin@example.com', client: 'old-script/1.0', calls: 2, refused: 2,
      firstAt: '2026-11-15T09:00:00Z', lastAt: '2026-11-15T09:00:00Z',
    }) // biome-ignore format: a record
    const again = await openCollections(service.services.store)
    assert.ok(again.legacyUsage.list().some(({ value }) => value.client === 'old-script/1.0' && value.calls === 2))
    await again[Symbol.asyncDispose]()
    const metrics = await service.call('GET', '/metrics')
    assert.match(metrics.text, /svc3_legacy_requests_total\{endpoint="GET \/resources\/ports",status="410"\} 2/)
  })
})
