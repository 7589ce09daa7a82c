// Valid and invalid registry addresses, and that the normal form is stable.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseRegistryServer } from './registry-server.ts'

const normal: readonly (readonly [string, string])[] = [
  ['https://ghcr.io', 'https://ghcr.io'],
  ['https://GHCR.io', 'https://ghcr.io'],
  ['HTTPS://ghcr.io:443', 'https://ghcr.io'],
  ['https://ghcr.io:0443', 'https://ghcr.io'],
  ['http://localhost:80', 'http://localhost'],
  ['http://localhost:5000', 'http://localhost:5000'],
  ['https://localhost:80', 'https://localhost:80'],
  ['https://[2001:DB8:0::1]:5000', 'https://[2001:db8::1]:5000'],
  ['https://[::1]', 'https://[::1]'],
  ['https://192.168.1.10:65535', 'https://192.168.1.10:65535'],
  ['https://a-b.c-d.example', 'https://a-b.c-d.example'],
]

const refused: readonly (readonly [string, RegExp])[] = [
  ['', /use the form/],
  ['ghcr.io', /use the form/],
  ['https:/ghcr.io', /use the form/],
  ['ftp://ghcr.io', /scheme "ftp"/],
  ['https://', /host name is invalid/],
  ['https://:443', /host name is invalid/],
  ['https://ghcr.io/', /has a path/],
  ['https://ghcr.io/org', /has a path/],
  ['https://ghcr.io\\org', /has a path/],
  ['https://ghcr.io?x=1', /has a query/],
  ['https://ghcr.io#x', /has a fragment/],
  ['https://user:pass@ghcr.io', /user name or password/],
  ['user:pass@ghcr.io', /user name or password/],
  ['https://ghcr.io:', /port ""/],
  ['https://ghcr.io:0', /port "0"/],
  ['https://ghcr.io:65536', /port "65536"/],
  ['https://ghcr.io:-1', /host is invalid/],
  ['https://ghcr.io:80x', /host is invalid/],
  ['https://2001:db8::1', /host is invalid/],
  ['https://[2001:db8::1', /host is invalid/],
  ['https://[nonsense]', /host is invalid/],
  ['https://[::1::2]', /host name is invalid/],
  ['https://-ghcr.io', /host name is invalid/],
  ['https://ghcr..io', /host name is invalid/],
  ['https://ghcr.io.', /host name is invalid/],
  ['https://gh cr.io', /host name is invalid/],
  [' https://ghcr.io', /use the form/],
  ['https://ghcr.io\n', /host name is invalid/],
  ['https://gh\u0000cr.io', /host name is invalid/],
  ['https://münchen.example', /host name is invalid/],
  ['https://1.2.3.999', /host name is invalid/],
  [`https://${'a'.repeat(64)}.io`, /host name is invalid/],
]

describe('parseRegistryServer', () => {
  for (const [text, server] of normal) {
    it(`parseRegistryServer takes ${text} as ${server}`, () => {
      const parsed = parseRegistryServer(text)
      assert.ok(parsed.ok)
      assert.equal(parsed.server, server)
    })
  }

  for (const [text, problem] of refused) {
    it(`parseRegistryServer refuses ${JSON.stringify(text).slice(0, 40)}`, () => {
      const parsed = parseRegistryServer(text)
      assert.ok(!parsed.ok)
      assert.match(parsed.problem, problem)
      assert.ok(parsed.hint.length > 0)
    })
  }

  const meant = {
    'ghcr.io': 'https://ghcr.io',
    'Harbor.lab:5000/team': 'https://harbor.lab:5000',
    '10.221.188.5:30080': 'https://10.221.188.5:30080',
    '[::1]:5000': 'https://[::1]:5000',
    ':5000': undefined,
    'x y': undefined,
    'a:b:c': undefined,
  }
  for (const [text, server] of Object.entries(meant)) {
    it(`parseRegistryServer ${server ? `takes ${text} to mean ${server}` : `has no guess at ${text}`}`, () => {
      const parsed = parseRegistryServer(text)
      assert.ok(!parsed.ok)
      assert.deepEqual(
        [parsed.meant, parsed.hint],
        [server, server ? `Use ${server}` : 'Use for example https://ghcr.io'],
      )
    })
  }

  for (const [registry, ...servers] of [
    ['ghcr.io', 'https://ghcr.io', 'https://GHCR.io:443', 'http://ghcr.io', 'https://ghcr.io:80', 'http://ghcr.io:443'],
    ['10.0.0.7:5000', 'http://10.0.0.7:5000', 'https://10.0.0.7:5000'],
    ['[::1]:5000', 'http://[::1]:5000', 'https://[0:0::1]:5000'],
    ['docker.io', 'https://docker.io', 'https://Index.docker.io', 'https://registry-1.docker.io', 'http://docker.io'],
    ['docker.io:5000', 'https://docker.io:5000'],
    ['index.docker.io:5000', 'https://index.docker.io:5000'],
    ['hub.docker.io', 'https://hub.docker.io'],
  ] as const)
    it(`parseRegistryServer finds the registry ${registry} at each of its addresses`, () => {
      for (const server of servers) {
        const parsed = parseRegistryServer(server)
        assert.equal(parsed.ok && parsed.registry, registry)
      }
    })

  it('parseRegistryServer never repeats user info', () => {
    const parsed = parseRegistryServer('https://me:hunter2@ghcr.io')
    assert.ok(!JSON.stringify(parsed).includes('hunter2'))
  })

  it('parseRegistryServer is stable: the normal form of a normal form is itself, and no text throws', () => {
    const near = fc.oneof(
      fc.string(),
      fc.webUrl(),
      fc.tuple(fc.domain(), fc.nat(70_000)).map(([d, p]) => `https://${d}:${p}`),
    )
    fc.assert(
      fc.property(near, (text) => {
        const first = parseRegistryServer(text)
        if (!first.ok) return
        const second = parseRegistryServer(first.server)
        assert.ok(second.ok)
        assert.deepEqual(second, first)
      }),
      { numRuns: 2_000 },
    )
  })
})
