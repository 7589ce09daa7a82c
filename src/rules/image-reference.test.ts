// Valid and invalid references, their normal form, and which credentials apply to them.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { credentialFor, noCredentials, parseImageReference, serversOf } from './image-reference.ts'

const digest = `sha256:${'ab'.repeat(32)}`

const good: readonly (readonly [string, string, string])[] = [
  ['ghcr.io/team/image', 'ghcr.io/team/image:latest', 'latest'],
  ['GHCR.io/team/image:V1', 'ghcr.io/team/image:V1', 'V1'],
  ['localhost:5000/team/image:v1', 'localhost:5000/team/image:v1', 'v1'],
  ['localhost:05000/team/image', 'localhost:5000/team/image:latest', 'latest'],
  ['[::1]:5000/team/image', '[::1]:5000/team/image:latest', 'latest'],
  ['10.0.0.7:443/a/b', '10.0.0.7:443/a/b:latest', 'latest'],
  [
    '123456789012.dkr.ecr.eu-west-1.amazonaws.com/name:tag',
    '123456789012.dkr.ecr.eu-west-1.amazonaws.com/name:tag',
    'tag',
  ],
  ['registry/a/b/c/d-e/f__g/h.i', 'registry/a/b/c/d-e/f__g/h.i:latest', 'latest'],
]

const bad: readonly (readonly [string, RegExp])[] = [
  ['', /has no registry/],
  ['image', /has no registry/],
  ['image:tag', /has no registry/],
  ['ghcr.io/', /has no repository/],
  ['ghcr.io/:v1', /has no repository/],
  ['ghcr.io//image', /empty part/],
  ['ghcr.io/team/', /empty part/],
  ['ghcr.io/Team/image', /"Team" may have only/],
  ['ghcr.io/team/..', /".." may have only/],
  ['ghcr.io/../image', /".." may have only/],
  ['ghcr.io/team/im%2fage', /may have only/],
  ['ghcr.io/team/image:', /the tag ""/],
  ['ghcr.io/team/image:a b', /the tag "a b"/],
  ['ghcr.io/team/image:-a', /: the tag cannot begin with a dash$/],
  ['ghcr.io/team/image:-', /: the tag cannot begin with a dash$/],
  ['ghcr.io/team/image:.a', /: the tag cannot begin with a period$/],
  [`ghcr.io/team/image:${'t'.repeat(129)}`, /the tag/],
  [`ghcr.io/team/${'i'.repeat(255)}`, /more than 255/],
  ['https://ghcr.io/team/image', /starts with a scheme/],
  ['ghcr_io/team/image', /registry host is invalid/],
  ['ghcr.io:0/team/image', /registry host is invalid/],
  ['-x/team/image', /starts with a dash/],
  [`ghcr.io/team/image@${digest}`, /a push cannot have a digest/],
]

describe('image references', () => {
  for (const [text, normal, target] of good) {
    it(`image reference ${text} is ${normal}`, () => {
      const parsed = parseImageReference(text, 'push')
      assert.ok(parsed.ok, JSON.stringify(parsed))
      assert.equal(parsed.reference.text, normal)
      assert.equal(parsed.reference.target, target)
      assert.deepEqual(parseImageReference(normal, 'push'), parsed)
    })
  }

  for (const [text, problem] of bad) {
    it(`image reference ${JSON.stringify(text.slice(0, 40))} is refused for pushes`, () => {
      const parsed = parseImageReference(text, 'push')
      assert.ok(!parsed.ok)
      assert.match(parsed.problem, problem)
      assert.notEqual(parsed.hint, '')
    })
  }

  it('an image reference may have a digest for pulls, with a tag or without', () => {
    const alone = parseImageReference(`ghcr.io/team/image@${digest}`, 'pull')
    assert.ok(alone.ok)
    assert.equal(alone.reference.tag, undefined)
    assert.equal(alone.reference.target, digest)
    assert.equal(alone.reference.text, `ghcr.io/team/image@${digest}`)
    const both = parseImageReference(`ghcr.io/team/image:v1@${digest}`, 'pull')
    assert.ok(both.ok)
    assert.equal(both.reference.target, digest)
    assert.ok(!parseImageReference('ghcr.io/team/image@sha256:12', 'pull').ok)
    assert.ok(!parseImageReference('ghcr.io/team/image@md5:12', 'pull').ok)
    assert.ok(parseImageReference('localhost:5000/image', 'pull').ok)
  })

  it('an image reference never repeats a password', () => {
    for (const text of [
      'https://user:canary@ghcr.io/team/image',
      'user:canary@ghcr.io/team/image',
      'canary@ghcr.io/team/image',
    ]) {
      const parsed = parseImageReference(text, 'pull')
      assert.ok(!parsed.ok)
      assert.doesNotMatch(parsed.problem + parsed.hint, /canary/)
    }
  })

  it('an image reference of any text is parsed or refused', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200, unit: 'grapheme' }), (text) => {
        const parsed = parseImageReference(text, 'pull')
        if (parsed.ok) assert.deepEqual(parseImageReference(parsed.reference.text, 'pull'), parsed)
        else assert.ok(parsed.problem.length < 400)
      }),
    )
  })
})

describe('credentials for a reference', () => {
  const stored = [
    { server: 'https://ghcr.io', allowInsecure: false },
    { server: 'http://localhost:5000', allowInsecure: true },
    { server: 'http://plain.example', allowInsecure: false },
    { server: 'http://both.example:80', allowInsecure: true },
    { server: 'https://both.example:80', allowInsecure: false },
  ]
  const cases: Readonly<Record<string, string | undefined>> = {
    'ghcr.io': 'https://ghcr.io',
    'ghcr.io:443': 'https://ghcr.io',
    'ghcr.io:444': undefined,
    'localhost:5000': 'http://localhost:5000',
    localhost: undefined,
    'plain.example': undefined,
    'both.example:80': 'https://both.example:80',
  }
  for (const [registry, server] of Object.entries(cases))
    it(`credentials for a reference of ${registry} are those of ${server ?? 'no server'}`, () =>
      assert.equal(credentialFor({ registry }, stored)?.server, server))

  describe('Docker Hub', () => {
    const hosts = ['docker.io', 'index.docker.io', 'registry-1.docker.io']
    const at = (host: string, scheme = 'https') => ({ server: `${scheme}://${host}`, allowInsecure: scheme === 'http' })
    const found = (registry: string, stored: ReturnType<typeof at>[]) => credentialFor({ registry }, stored)?.server

    for (const registry of hosts)
      it(`credentials on Docker Hub are found for ${registry} under each of its names, its own first`, () => {
        for (const host of hosts) assert.equal(found(registry, [at('ghcr.io'), at(host)]), `https://${host}`)
        assert.equal(found(`${registry}:443`, [at('docker.io')]), 'https://docker.io')
        assert.equal(
          found(
            registry,
            hosts.map((host) => at(host)),
          ),
          `https://${registry}`,
        )
      })

    it('credentials for Docker Hub apply to no other registry, and HTTPS comes first', () => {
      for (const registry of ['ghcr.io', 'hub.docker.io', 'docker.io.example', 'docker.io:444'])
        assert.equal(
          found(
            registry,
            hosts.map((host) => at(host)),
          ),
          undefined,
        )
      for (const host of ['ghcr.io', 'hub.docker.io', 'docker.io:444'])
        assert.equal(found('docker.io', [at(host)]), undefined)
      assert.equal(found('docker.io', [at('index.docker.io', 'http')]), 'http://index.docker.io')
      assert.equal(found('docker.io', [at('docker.io', 'http'), at('index.docker.io')]), 'https://index.docker.io')
    })
  })

  it('the hint for missing credentials has the registry, the namespace and a command', () => {
    const parsed = parseImageReference('localhost:5000/team/image', 'push')
    assert.ok(parsed.ok)
    assert.deepEqual(serversOf(parsed.reference), ['https://localhost:5000', 'http://localhost:5000'])
    const { problem, hint } = noCredentials(parsed.reference, 'svc-team')
    assert.match(problem, /localhost:5000 in svc-team/)
    assert.match(hint, /svc3 regcred add https:\/\/localhost:5000 -u USER .*-n svc-team/)
    const plain = noCredentials(parsed.reference, 'svc-team', { isPlain: true })
    assert.match(plain.hint, /run svc3 regcred add http:\/\/localhost:5000 --allow-insecure -u USER .*-n svc-team/)
    const both = noCredentials(parsed.reference, 'svc-team', { isPlain: true, hasStored: true })
    assert.match(both.hint, /run svc3 regcred add http:\/\/localhost:5000 --allow-insecure --replace -u USER/)
  })
})
