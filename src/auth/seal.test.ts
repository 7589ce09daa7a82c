// Sealed secrets open only in their own record and after rotations; where master keys come from.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import {
  formatKeyring,
  KeyringError,
  loadKeyring,
  makeKeyring,
  onlyActive,
  parseKeyring,
  takeKeySource,
  withNewKey,
} from './keyring.ts'
import { SealError, seal, sealedWith, unseal } from './seal.ts'

const ring = makeKeyring([randomBytes(32)])
const binding = { key: '/things/ns/a', fields: { name: 'a', flag: true } }
const refused = (work: () => unknown, text: RegExp): void =>
  assert.throws(work, (error) => error instanceof SealError && text.test(error.message))

describe('seal', () => {
  it('a sealed secret opens to the same text, with another nonce each time', () => {
    for (const secret of ['x', 'pässwörd 🔑', 'x'.repeat(20_000)])
      assert.equal(unseal(ring, seal(ring, secret, binding), binding), secret)
    assert.notEqual(seal(ring, 'x', binding), seal(ring, 'x', binding))
  })

  it('a sealed secret does not open under another key of the record, with other fields, or with a changed byte', () => {
    const sealed = seal(ring, 'secret', binding)
    refused(() => unseal(ring, sealed, { ...binding, key: '/things/ns/b' }), /changed or moved from another record/)
    refused(() => unseal(ring, sealed, { ...binding, fields: { ...binding.fields, flag: false } }), /changed or moved/)
    refused(() => unseal(ring, sealed, { ...binding, fields: { ...binding.fields, extra: 1 } }), /changed or moved/)
    const bytes = [...sealed]
    for (const index of [20, sealed.length - 3]) {
      const changed = bytes.with(index, bytes[index] === 'A' ? 'B' : 'A').join('')
      refused(() => unseal(ring, changed, binding), /changed or moved|format/)
    }
    refused(() => unseal(ring, 'plain text', binding), /unknown format/)
    refused(() => unseal(ring, sealed.slice(0, 40), binding), /changed or moved/)
  })

  it('the error for a missing key names it', () => {
    const other = makeKeyring([randomBytes(32)])
    refused(
      () => unseal(other, seal(ring, 'x', binding), binding),
      new RegExp(`key ${ring.active.id}, which is not in the key ring`),
    )
  })

  it('a sealed secret opens regardless of the order of fields', () => {
    const sealed = seal(ring, 'x', binding)
    assert.equal(unseal(ring, sealed, { key: binding.key, fields: { flag: true, name: 'a' } }), 'x')
  })

  it('a sealed secret opens after a rotation', () => {
    const sealed = seal(ring, 'x', binding)
    const both = withNewKey(ring)
    assert.equal(unseal(both, sealed, binding), 'x')
    assert.equal(sealedWith(seal(both, 'x', binding)), both.active.id)
    refused(() => unseal(onlyActive(both), sealed, binding), /not in the key ring/)
  })
})

describe('key ring', () => {
  it('the key ring is text: base64 keys, the active one first', () => {
    const both = withNewKey(ring)
    const read = parseKeyring(formatKeyring(both), 'test')
    assert.equal(read.active.id, both.active.id)
    assert.deepEqual([...read.keys.keys()], [...both.keys.keys()])
    assert.throws(() => parseKeyring('c2hvcnQ=', 'the file x'), /the file x does not hold master keys/)
    assert.throws(() => parseKeyring('', 'it'), KeyringError)
    assert.throws(() => parseKeyring(`!!${formatKeyring(ring)}`, 'it'), KeyringError)
  })

  it('the key ring is created once, at the first start, with mode 0600', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-'))
    const found = takeKeySource(folder, {})
    const first = await loadKeyring(found, true)
    assert.equal((await fs.stat(path.join(folder, 'master.key'))).mode & 0o777, 0o600)
    assert.equal((await loadKeyring(found, false)).active.id, first.active.id)
    await fs.chmod(path.join(folder, 'master.key'), 0o644)
    await assert.rejects(loadKeyring(found, false), /readable by other users.*chmod 600/)
    await fs.rm(path.join(folder, 'master.key'))
    await assert.rejects(loadKeyring(found, false), /not found: restore it from your backup/)
    await fs.rm(folder, { recursive: true })
  })

  it('the key ring comes from a variable, which is then removed, or from a credential', async () => {
    const environment = { SVC3_MASTER_KEY: formatKeyring(ring) }
    const found = takeKeySource('/nowhere', environment)
    assert.deepEqual(environment, {})
    assert.equal((await loadKeyring(found, false)).active.id, ring.active.id)

    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-'))
    const credential = takeKeySource('/nowhere', { CREDENTIALS_DIRECTORY: folder })
    assert.equal(credential.source.kind, 'file')
    await fs.writeFile(path.join(folder, 'svc3-master-key'), formatKeyring(ring))
    const there = takeKeySource('/nowhere', { CREDENTIALS_DIRECTORY: folder })
    assert.equal((await loadKeyring(there, false)).active.id, ring.active.id)
    await fs.rm(folder, { recursive: true })
  })

  it('an unreadable key ring is not replaced, even if there are no secrets yet', async () => {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-'))
    const places = {
      'master.key': () => takeKeySource(folder, {}),
      'svc3-master-key': () => takeKeySource('/nowhere', { CREDENTIALS_DIRECTORY: folder }),
    }
    for (const [name, find] of Object.entries(places)) {
      const file = path.join(folder, name)
      const faults: [() => Promise<unknown>, RegExp][] = [
        [() => fs.mkdir(file), /cannot be read \(EISDIR\): it is a folder/],
        [() => fs.symlink('missing', file), /cannot be read \(ENOENT\): it is a broken link/],
        [() => fs.writeFile(file, '\n', { mode: 0o600 }), /is empty: it must hold/],
      ]
      for (const [make, problem] of faults) {
        await make()
        const refused = await loadKeyring(find(), true).then(String, (error: Error) => error)
        assert.ok(refused instanceof KeyringError, `${name} ${problem}`)
        assert.ok(refused.message.startsWith(`Master key ${file} `), refused.message)
        assert.match(refused.message, problem)
        await fs.rm(file, { recursive: true })
      }
    }
    const notAFolder = path.join(folder, 'file')
    await fs.writeFile(notAFolder, '')
    const found = takeKeySource(folder, { CREDENTIALS_DIRECTORY: notAFolder })
    await assert.rejects(loadKeyring(found, true), /file\/svc3-master-key cannot be read \(ENOTDIR\)/)
    assert.deepEqual(await fs.readdir(folder), ['file'])
    await fs.rm(folder, { recursive: true })
  })
})
