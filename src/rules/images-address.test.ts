// Valid addresses of the images' registry, and that no refusal repeats a password.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseImagesAddress } from './images-address.ts'

it('images may be in a repository of a registry, by TLS unless somebody says otherwise', () => {
  const good: Readonly<Record<string, readonly [string, string, string]>> = {
    'oci://ghcr.io/org/svc3': ['oci://ghcr.io/org/svc3', 'https://ghcr.io', 'org/svc3'],
    'oci://GHCR.io:443/a/': ['oci://ghcr.io/a', 'https://ghcr.io', 'a'],
    'oci://registry.local:5000/a/b__c/d-e': ['oci://registry.local:5000/a/b__c/d-e', 'https://registry.local:5000', 'a/b__c/d-e'], // biome-ignore format: one line
    'oci+http://127.0.0.1:5000/x': ['oci+http://127.0.0.1:5000/x', 'http://127.0.0.1:5000', 'x'],
    'oci://[::1]:5000/x': ['oci://[::1]:5000/x', 'https://[::1]:5000', 'x'],
  }
  for (const [text, expected] of Object.entries(good)) {
    const parsed = parseImagesAddress(text)
    assert.ok(parsed.ok, text)
    assert.deepEqual([parsed.text, parsed.server, parsed.repository], expected)
    assert.equal(parsed.isPlain, text.startsWith('oci+http:'))
  }
})

it('anything else is refused, without a word of what it was', () => {
  const bad = [
    '', 'folder', 'oci://', 'oci://host', 'oci://host/', 'oci:///x', 'http://host/x', 'oci://host/X', 'oci://host/a//b',
    'oci://host/a/../b', 'oci://host/a?b', 'oci://host/a#b', 'oci://host:99999/a', 'oci://secret:secret@host/a',
    `oci://host/${'a'.repeat(300)}`, 'oci://host/a:secret', 'oci+https://host/secret',
  ] // biome-ignore format: a list to read
  for (const text of bad) {
    const parsed = parseImagesAddress(text)
    assert.ok(!parsed.ok, text)
    assert.ok(!`${parsed.problem} ${parsed.hint}`.includes('secret'), parsed.problem)
  }
})
