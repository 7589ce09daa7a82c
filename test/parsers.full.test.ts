// Every parser that outsiders reach (callers, registries, remotes, guests, files that are uploaded) takes time in
// proportion to its input, up to the most that it is ever given, or refuses it by a stated limit. A parser that is in
// no table here fails the last test.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import fsp from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import WebSocket from 'ws'
import { readTicket } from '../src/agent/link/peer-tls.ts'
import { ApiError } from '../src/api/errors.ts'
import { parseJson } from '../src/api/json.ts'
import { parseNodeKey } from '../src/auth/node-keys.ts'
import { parseSizes, parseSystem } from '../src/drivers/guest-growth.ts'
import { readBootPath } from '../src/images/boot-path.ts'
import { checkDisc } from '../src/images/disc.ts'
import { decodeManifest } from '../src/images/format/manifest.ts'
import { readQcow2Header } from '../src/images/qcow2/header.ts'
import { decodeArtifact } from '../src/oci/artifact/artifact.ts'
import { dockerManifestType, ociManifestType, parseIndex, parseOciManifest } from '../src/oci/artifact/oci-manifest.ts'
import { parseChallenges } from '../src/oci/registry/challenge.ts'
import { nextOf } from '../src/oci/registry/tags.ts'
import { decodeAppleLz4 } from '../src/oci/tart/lz4.ts'
import { parseRetryAfter } from '../src/platform/retry.ts'
import { contentOf, readTar } from '../src/platform/tar.ts'
import { parseDuration, parseTtl } from '../src/rules/durations.ts'
import { isImageName } from '../src/rules/image-names.ts'
import { parseImageReference } from '../src/rules/image-reference.ts'
import { parseImagesAddress } from '../src/rules/images-address.ts'
import { decodeJoinString } from '../src/rules/join-string.ts'
import { isNamespaceName, isNodeName, isServiceAccountName, isTag, isUserName, isVmName } from '../src/rules/names.ts'
import { parseCron } from '../src/rules/pools/cron.ts'
import { parseScheduleLine } from '../src/rules/pools/schedule-line.ts'
import { parseReservedPorts } from '../src/rules/ports.ts'
import { parseRegistryServer } from '../src/rules/registry-server.ts'
import { parseRunnerScope } from '../src/rules/runners/scope.ts'
import { parseFieldSelector, parseLabelSelector } from '../src/rules/selectors.ts'
import { parseDiskSize } from '../src/rules/sizes.ts'
import { errorIn } from '../src/runners/github/http.ts'
import { batchOf } from '../src/runners/github/messages.ts'
import { refuseExcessiveJson } from '../src/server/http/json-limits.ts'
import { parseAccept } from '../src/server/kubernetes/accept.ts'
import { managedShape } from '../src/server/kubernetes/changes/client-metadata.ts'
import { duplicateFields } from '../src/server/kubernetes/changes/duplicate-fields.ts'
import { applied } from '../src/server/kubernetes/changes/field-owners.ts'
import { decoded } from '../src/server/kubernetes/changes/field-paths.ts'
import { patches } from '../src/server/kubernetes/changes/patch.ts'
import { vmConfigKind } from '../src/server/kubernetes/kinds/vm-configs.ts'
import { decodeProtobuf } from '../src/server/kubernetes/protobuf.ts'
import { parseFolderIndex } from '../src/server/remotes/folder.ts'
import { checkPair } from '../src/server/tls/certificate-check.ts'
import { parseRange } from '../src/server/transfer/downloads.ts'
import { startService, type TestService } from './support/rigs/service.ts'

type Grow = (bytes: number) => string

interface Row {
  /** The largest input that reaches the parser, or one that its own limit refuses. */
  readonly maxBytes: number
  /** What it takes: grown by its own characters and by those that parsers trip over. */
  readonly examples: readonly string[]
  /** Additional shapes for this parser. */
  readonly grows?: readonly Grow[]
  parse(text: string): unknown
}

const header = 16_384
const body = 1_048_576

const repeated =
  (unit: string, before = '', behind = ''): Grow =>
  (bytes) =>
    before + unit.repeat(Math.max(1, Math.floor((bytes - before.length - behind.length) / unit.length))) + behind

/** One after the other, all different. */
const counted =
  (of: (index: number) => string, before = '', behind = ''): Grow =>
  (bytes) => {
    const parts = [before]
    for (let index = 0, size = before.length; size < bytes; index++) {
      const part = of(index)
      parts.push(part)
      size += part.length
    }
    return parts.join('') + behind
  }

const units = ['a', '0', ' ', '\t', ',', ';', '/', '=', '!', '(', ')', '[', '<', '"', '\\', '-', '.', ':', '@', '%', '\n', '\0', 'é', 'a,', ' a', 'a=', 'a.', '://', '"a"', ', a in ('] // biome-ignore format: a list

/** Shapes, and up to how many bytes. */
const growsOf = ({ maxBytes, examples, grows = [] }: Row): (readonly [Grow, number])[] => {
  const own = examples.flatMap((example) => [
    repeated(example),
    ...units.flatMap((unit) => [repeated(unit, example), repeated(unit, '', example)]),
    ...[...new Set(example)].map((unit) => repeated(unit, example.slice(0, example.indexOf(unit)), '\u0001')),
  ])
  // There are many of these, and the square of 64 KiB is seconds.
  return [...grows.map((grow) => [grow, maxBytes] as const), ...own.map((grow) => [grow, Math.min(maxBytes, 65_536)] as const)] // biome-ignore format: two lists
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')
async function* pieces(text: string): AsyncGenerator<Buffer> {
  yield bytesOf(text)
}

let folder = ''
let service: TestService
let watching: WebSocket
const inFile = async <T>(text: string, work: (file: string) => Promise<T>): Promise<T> => {
  const file = path.join(folder, 'disk')
  await fsp.writeFile(file, bytesOf(text))
  return work(file)
}

const digest = `sha256:${'0'.repeat(64)}`
const descriptor = (more = ''): string =>
  `{"mediaType":"application/octet-stream","digest":"${digest}","size":1${more}}`
const manifest = (layers: string, more = ''): string =>
  `{"schemaVersion":2,"config":${descriptor()},"layers":[${layers}]${more}}`
const nested: Grow[] = [repeated('['), repeated('{"a":'), (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2)]
const oci = (text: string, mediaType = ociManifestType) => parseOciManifest({ bytes: Buffer.from(text), mediaType })

function tarHeader(type: string, bytes: number): string {
  const block = Buffer.alloc(512)
  block.write('name', 0)
  block.write('0000644\0', 100)
  block.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124)
  block.write(type, 156)
  block.fill(' ', 148, 156)
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  return block.toString('latin1')
}
const tarEntry = (type: string, content: string): string =>
  tarHeader(type, content.length) + content + '\0'.repeat((512 - (content.length % 512)) % 512)

function qcow2Head(): string {
  const head = Buffer.alloc(112)
  head.write('QFI\xfb', 'latin1')
  head.writeUInt32BE(3, 4)
  head.writeUInt32BE(16, 20)
  head.writeUInt32BE(2 ** 20, 28)
  head.writeUInt32BE(104, 100)
  return head.toString('latin1')
}

function gptHead(): string {
  const head = Buffer.alloc(1_024)
  head.write('EFI PART', 512)
  head.writeBigUInt64LE(2n, 512 + 72)
  head.writeUInt32LE(0xffffffff, 512 + 80)
  head.writeUInt32LE(128, 512 + 84)
  return head.toString('latin1')
}

const lz4Block = (size: number): string => {
  const head = Buffer.alloc(8)
  head.write('bv4-')
  head.writeUInt32LE(size, 4)
  return head.toString('latin1') + 'x'.repeat(size)
}

/** A request to the whole API: the answer must not be a 500. */
async function ask(method: string, url: string, options: Parameters<TestService['call']>[2] = {}): Promise<void> {
  const { status, text } = await service.call(method, url, options)
  assert.notEqual(status, 429)
  assert.ok(status < 500, `${method} ${url.slice(0, 80)}: ${status} ${text.slice(0, 200)}`)
}
const vms = '/api/v1/namespaces/svc-default/vms'

/** Behind the parser of bodies, which refuses what nests too deep. */
const ofJson =
  (work: (value: unknown) => unknown) =>
  (text: string): unknown => {
    try {
      refuseExcessiveJson(text)
      return work(JSON.parse(text))
    } catch (error) {
      if (!(error instanceof ApiError) && !(error instanceof SyntaxError)) throw error
      return undefined
    }
  }

/** Parser → how outsiders reach it. The key is what the source calls it, where it has a name. */
const parsers: Readonly<Record<string, Row>> = {
  parseLabelSelector: {
    maxBytes: body,
    examples: ['a=b', 'a in (b,c)', '!a', 'a!=b,c notin (d)'],
    parse: parseLabelSelector,
  },
  parseFieldSelector: {
    maxBytes: body,
    examples: ['metadata.name=b', 'a!=b,c==d'],
    parse: (text) => parseFieldSelector(text, { metadata: { name: 'b' } } as never),
  },
  parseImageReference: {
    maxBytes: body,
    examples: ['ghcr.io/team/image:v1', `ghcr.io/a/b@${digest}`],
    grows: [repeated('a-', 'ghcr.io/a/', '!'), repeated('a__', 'ghcr.io/a/', '!'), repeated('a/', 'ghcr.io/', 'A')],
    parse: (text) => parseImageReference(text, 'pull'),
  },
  parseRegistryServer: {
    maxBytes: body,
    examples: ['https://harbor.lab:5000', 'https://[::1]:5000/team'],
    parse: parseRegistryServer,
  },
  parseImagesAddress: { maxBytes: header, examples: ['oci://ghcr.io/team/images'], parse: parseImagesAddress },
  names: {
    maxBytes: header,
    examples: ['svc-a', 'a-b', 'ada@example.com', 'a.b_c'],
    parse: (text) =>
      [isNamespaceName, isNodeName, isServiceAccountName, isTag, isUserName, isVmName, isImageName].map((is) =>
        is(text),
      ),
  },
  parseDuration: { maxBytes: header, examples: ['1.5h', '8760h0m0s'], parse: parseDuration },
  parseCron: { maxBytes: header, examples: ['0 8 * * mon-fri', '*/5 1,2,3 1-9 jan-dec 1-5/2'], parse: parseCron },
  parseScheduleLine: { maxBytes: header, examples: ['0 7 * * mon-fri Europe/Berlin=4'], parse: parseScheduleLine },
  parseTtl: { maxBytes: header, examples: ['2h'], parse: parseTtl },
  parseDiskSize: { maxBytes: header, examples: ['30G', '1.5 TiB'], parse: parseDiskSize },
  parseReservedPorts: {
    maxBytes: body,
    examples: ['8080:80', '5353:53/udp'],
    grows: [counted((index) => `${1_024 + (index % 64_000)}:80,`)],
    parse: parseReservedPorts,
  },
  decodeJoinString: {
    maxBytes: body,
    examples: [`svc3-join-1-${Buffer.from('{"urls":["https://a"],"token":"b"}').toString('base64url')}`],
    parse: decodeJoinString,
  },
  parseNodeKey: { maxBytes: body, examples: ['MCowBQYDK2VwAyEA'], parse: parseNodeKey },
  readTicket: { maxBytes: header, examples: ['svc3-ticket a AAAA='], parse: readTicket },
  parseAccept: {
    maxBytes: header,
    examples: ['application/json;as=Table;v=v1;g=meta.k8s.io,application/json', '*/*;q=0.5'],
    parse: parseAccept,
  },
  decodeProtobuf: {
    maxBytes: body,
    examples: ['k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a'],
    grows: [
      repeated('\x12\x00', 'k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace'),
      repeated('\x0a\x00', 'k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace'),
    ],
    parse: (text) => {
      try {
        return decodeProtobuf(Buffer.from(text, 'latin1'))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        return error.reason
      }
    },
  },
  decoded: {
    maxBytes: body,
    examples: ['{"f:spec":{".":{},"f:cpu":{},"v:\\"a\\"":{}}}'],
    grows: [
      counted((index) => `"f:a${index}":{},`, '{"f:spec":{', '"f:b":{}}}'),
      // A few long steps that thousands of fields share.
      (bytes) =>
        `${`{"f:${'a'.repeat(bytes / 80)}":`.repeat(40)}${counted((index) => `"f:${index}":{},`, '{', '"f:b":{}}')(bytes / 2)}${'}'.repeat(40)}`,
      ...nested,
    ],
    parse: ofJson(decoded),
  },
  duplicateFields: {
    maxBytes: body,
    examples: ['{"spec":{"cpu":1,"cpu":2},"a":[{"b":1,"b":2}]}', '{"\\u0061":1,"a":2}'],
    grows: [
      counted((index) => `"a${index}":1,`, '{', '"a1":2}'),
      repeated('"a":1,', '{', '"a":1}'),
      repeated(' ', '{"a"', ':1}'),
      repeated('"a" ', '{'),
      ...nested,
    ],
    parse: duplicateFields,
  },
  'an object that is applied to another': {
    maxBytes: body,
    examples: [
      '{"metadata":{"labels":{"a":"b"},"finalizers":["a/b"],"ownerReferences":[{"uid":"1"}]},"spec":{"cpu":2}}',
    ],
    grows: [
      counted((index) => `"a${index}":"",`, '{"metadata":{"annotations":{', '"b":""}}}'),
      counted((index) => `"${index}",`, '{"metadata":{"finalizers":[', '"b"]}}'),
      counted((index) => `{"uid":"${index}"},`, '{"metadata":{"ownerReferences":[', '{"uid":"b"}]}}'),
    ],
    parse: ofJson((config) =>
      applied([], {
        live: { metadata: { labels: { a: 'c' } } },
        config,
        shape: managedShape(vmConfigKind),
        by: { manager: 'a', apiVersion: 'v1', time: '' },
        isForced: true,
      }),
    ),
  },
  'patches of an object': {
    maxBytes: body,
    examples: [
      '[{"op":"test","path":"/a","value":1},{"op":"copy","from":"/a","path":"/b"}]',
      '{"metadata":{"$patch":"replace","$retainKeys":["a"],"$deleteFromPrimitiveList/finalizers":["b"],"finalizers":["c"]}}',
    ],
    grows: [
      repeated('{"op":"copy","from":"/a","path":"/b"},', '[', '{"op":"remove","path":"/b"}]'),
      counted((index) => `"a/${index}",`, '{"metadata":{"finalizers":[', '"b"]}}'),
      counted((index) => `"a/${index}",`, '{"metadata":{"$deleteFromPrimitiveList/finalizers":[', '"b"]}}'),
      counted((index) => `"a${index}":{},`, '{"metadata":{', '"b":1}}'),
      repeated('/a', '[{"op":"add","value":1,"path":"', '"}]'),
    ],
    parse: ofJson((patch) => {
      for (const apply of Object.values(patches))
        ofJson((value) => apply({ a: 1, metadata: { finalizers: ['b'] } }, value, managedShape(vmConfigKind)))(
          JSON.stringify(patch),
        )
    }),
  },
  parseRange: {
    maxBytes: header,
    examples: ['bytes=0-1', 'bytes= 5-', 'bytes=0-1,2-3'],
    parse: (text) => parseRange(text, 1_000),
  },
  parseRetryAfter: {
    maxBytes: header,
    examples: ['120', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    parse: (text) => parseRetryAfter(text, 0),
  },
  parseRunnerScope: {
    maxBytes: body,
    examples: ['https://github.com/acme', 'https://github.com/acme/app', 'https://acme.ghe.com/enterprises/acme'],
    parse: parseRunnerScope,
  },
  'jobs of GitHub': {
    maxBytes: body,
    examples: [
      '[{"messageType":"JobAssigned","jobId":"a","runnerRequestId":0,"queueTime":"2026-11-17T09:00:00Z"}]',
      '[{"messageType":"JobCompleted","jobId":"a","result":"succeeded","runnerName":"ios-1"}]',
    ],
    grows: [
      repeated('[', '[', ']'),
      counted((index) => `{"messageType":"JobStarted","jobId":"${index}"},`, '[', '{}]'),
    ],
    parse: (text) => batchOf({ messageId: 1, body: text, statistics: { totalAssignedJobs: 1 } }),
  },
  'refusals of GitHub': {
    maxBytes: body,
    examples: ['{"typeName":"GitHub.DistributedTask.WebApi.AgentExistsException, GitHub","message":"exists"}'],
    grows: [repeated('a.', '{"typeName":"', '"}'), repeated('\\u0001', '{"message":"', '"}')],
    parse: errorIn,
  },
  parseChallenges: {
    maxBytes: header,
    examples: ['Bearer realm="https://a/token",service="a",scope="b"', 'Basic realm="a", Bearer realm=b'],
    grows: [repeated('\\"', 'Bearer realm="'), repeated('Bearer '), repeated('Bearer a=b, ')],
    parse: parseChallenges,
  },
  nextOf: {
    maxBytes: header,
    examples: ['</v2/a/tags/list?last=b>; rel="next"', '<a>; a="b"; rel=next, <c>; rel=last'],
    grows: [repeated('<a>; ;'), repeated('; a', '<a>'), repeated(';', '<a>'), repeated('<a>;rel="next')],
    parse: (link) =>
      nextOf({ status: 200, headers: { link }, url: new URL('https://a'), body: undefined as never }, new URL('https://a')), // biome-ignore format: one call
  },
  parseOciManifest: {
    maxBytes: 4 * body,
    examples: [manifest(descriptor())],
    grows: [
      ...nested,
      counted((index) => `${descriptor()}${index < 0 ? '' : ','}`, `{"schemaVersion":2,"config":${descriptor()},"layers":[`, `${descriptor()}]}`), // biome-ignore format: one shape
      (bytes) => manifest(descriptor(`,"annotations":{${counted((index) => `"k${index}":"v",`)(bytes)}"k":"v"}`)),
      (bytes) => manifest('', `,"mediaType":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`),
      (bytes) => manifest(descriptor().replace('"size":1', `"size":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`)),
    ],
    parse: (text) => oci(text, text.includes('docker') ? dockerManifestType : ociManifestType),
  },
  parseIndex: {
    maxBytes: 4 * body,
    examples: [`{"schemaVersion":2,"manifests":[${descriptor()}]}`],
    grows: nested,
    parse: (text) => parseIndex({ bytes: Buffer.from(text) }),
  },
  decodeArtifact: {
    maxBytes: body,
    examples: [manifest(descriptor())],
    grows: nested,
    parse: (text) => decodeArtifact(oci(manifest(descriptor())), Buffer.from(text)),
  },
  decodeManifest: {
    maxBytes: body,
    examples: [
      '{"architecture":"arm64","boot":{"kind":"firmware"},"formatVersion":1,"layers":[{"chunks":[]}],"virtualSizeBytes":512}',
    ],
    grows: [
      ...nested,
      repeated('{"chunks":[]},', '{"architecture":"arm64","boot":{"kind":"firmware"},"formatVersion":1,"layers":[', '{"chunks":[]}],"virtualSizeBytes":512}'), // biome-ignore format: one shape
    ],
    parse: (text) => decodeManifest(Buffer.from(text)),
  },
  parseFolderIndex: {
    maxBytes: 4 * body,
    examples: ['{"version":1,"items":[]}'],
    grows: [
      ...nested,
      counted((index) => `{"kind":"image","name":"i${index}","type":"arm64","size":1,"sha256":"${'0'.repeat(64)}","file":"f${index}"},`, '{"version":1,"items":[', '{}]}'), // biome-ignore format: one shape
    ],
    parse: (text) => parseFolderIndex(text, { name: 'a', url: new URL('https://a/b/') }),
  },
  decodeAppleLz4: {
    maxBytes: body,
    examples: [`${lz4Block(16)}bv4$`],
    grows: [repeated(lz4Block(1)), repeated(lz4Block(0)), repeated(`bv41\x40\0\0\0\x06\0\0\0\x1fa\x01\0\x2f\0`)],
    async parse(text) {
      for await (const _ of decodeAppleLz4(pieces(text), 2 ** 30));
    },
  },
  readTar: {
    maxBytes: body,
    examples: [tarEntry('0', 'content')],
    grows: [
      repeated(tarEntry('L', 'long name')),
      (bytes) => tarEntry('x', repeated('12 path=abc\n')(bytes)) + tarEntry('0', ''),
      (bytes) => tarEntry('x', repeated('9')(bytes)) + tarEntry('0', ''),
      (bytes) => tarEntry('L', repeated('/')(bytes)) + tarEntry('0', ''),
      (bytes) => tarEntry('0', repeated('a')(bytes)),
    ],
    async parse(text) {
      for await (const entry of readTar(pieces(text))) await contentOf(entry)
    },
  },
  readQcow2Header: {
    maxBytes: body,
    examples: [qcow2Head()],
    grows: [repeated('\0\0\0\x01\0\0\0\0', qcow2Head().slice(0, 104)), repeated('\xff', qcow2Head())],
    parse: (text) =>
      inFile(text, async (file) => {
        await using handle = await fsp.open(file)
        return await readQcow2Header(handle)
      }),
  },
  readBootPath: {
    maxBytes: body,
    examples: [gptHead()],
    parse: (text) => inFile(text, readBootPath),
  },
  checkDisc: { maxBytes: body, examples: ['ER'], parse: (text) => inFile(text, checkDisc) },
  parseSystem: {
    maxBytes: body,
    examples: ['svc3-system Linux 1024\n'],
    parse: parseSystem,
  },
  parseSizes: { maxBytes: body, examples: ['svc3-sizes 1 2 3\n'], parse: parseSizes },
  parseJson: { maxBytes: body, examples: ['{"a":[1,"b"]}'], grows: nested, parse: parseJson },
  checkPair: {
    maxBytes: 262_144,
    examples: ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    grows: [
      repeated('-----BEGIN CERTIFICATE-----'),
      repeated('-----BEGIN PRIVATE KEY-----a'),
      repeated('A ', '-----BEGIN '),
      repeated('A', '-----BEGIN CERTIFICATE-----'),
    ],
    parse: (text) => checkPair({ certPath: text, keyPath: text } as never, new Date()),
  },
}

/**
 * Parsers that only a request reaches, through every hook of the API: where the input arrives → the request that sends
 * it.
 */
const requests: Readonly<Record<string, Row>> = {
  'a JSON body': {
    maxBytes: body,
    examples: ['{"image":"a","metadata":{"a":"b"}}'],
    grows: [
      ...nested,
      counted((index) => `"k${index}":"v",`, '{"metadata":{', '"k":"v"}}'),
      counted((index) => `"k${index}":1,`, '{', '"k":"v"}'),
      counted((index) => `{"key":"k${index}","value":1},`, '{"vm_metadata":{"items":[', '{}]}}'),
      repeated('"a":1,', '{', '"a":1}'),
      repeated('\\ud800', '{"name":"', '"}'),
    ],
    parse: (text) => ask('POST', vms, { body: text, headers: { 'idempotency-key': `${text.length}${Math.random()}` } }),
  },
  'a form of 2.4.x': {
    maxBytes: body,
    examples: ['email=a&password=b', 'a[]=1&a[]=2'],
    grows: [repeated('a&'), repeated('a[]=1&'), counted((index) => `k${index}=1&`), repeated('%41'), repeated('[', 'a'), ...nested], // biome-ignore format: a list
    parse: (text) => ask('POST', '/token', { body: text, token: null }),
  },
  'a multipart form': {
    maxBytes: body,
    examples: ['--b\r\nContent-Disposition: form-data; name="cert_path"; filename="a"\r\n\r\nx\r\n--b--\r\n'],
    grows: [repeated('--b\r\n'), repeated('\r\n', '--b\r\n'), repeated('\r\n--', '--b\r\n\r\n'), repeated('a: b\r\n', '--b\r\n')], // biome-ignore format: a list
    parse: (text) =>
      ask('POST', '/api/v1/cluster/certificate', { body: bytesOf(text), headers: { 'content-type': 'multipart/form-data; boundary=b' } }), // biome-ignore format: one call
  },
  'a message of a watching WebSocket': {
    maxBytes: body,
    examples: ['{"watch":1,"path":"/api/v1/namespaces/svc-default/vms","query":{"labelSelector":"a=b"}}'],
    grows: [
      ...nested,
      repeated(',', `{"watch":1,"path":"${vms}","query":{"labelSelector":"`, '"}}'),
      repeated('a', '{"watch":1,"path":"/api/v1/namespaces/', '/vms"}'),
      repeated('/', '{"watch":1,"path":"', '"}'),
      repeated('.svc-a', '{"watch":1,"path":"', '"}'),
      counted((index) => `"k${index}":"",`, '{"watch":1,"path":"","query":{', '"k":""}}'),
    ],
    parse: (text) =>
      new Promise((resolve, reject) => {
        watching.once('message', resolve).once('close', (code) => reject(new TypeError(`closed with ${code}`)))
        watching.send(text.slice(0, body))
      }),
  },
  'a path': {
    maxBytes: header,
    examples: ['api/v1/namespaces/svc-default/vms/a', 'resources/vm/status/a', 'token'],
    parse: (text) => ask('GET', `/${encodeURI(text)}`),
  },
  'a query': {
    maxBytes: header,
    examples: ['labelSelector=a%3Db', 'limit=5&limit=6'],
    grows: [repeated('a&'), counted((index) => `k${index}=1&`), repeated('%2C', 'labelSelector=')],
    parse: (text) => ask('GET', `${vms}?${encodeURI(text)}`),
  },
  ...Object.fromEntries(
    Object.entries({
      authorization: ['Bearer a.b.c', 'Bearer eyJhbGciOiJFZERTQSJ9.e30.AA'],
      cookie: ['svc3_console=a; b=c', 'a=b'],
      range: ['bytes=0-1'],
      'if-none-match': ['"a", W/"b"', '*'],
      'if-modified-since': ['Wed, 21 Oct 2026 07:28:00 GMT'],
      'idempotency-key': ['a-b'],
      'accept-encoding': ['br;q=0.5, gzip'],
      accept: ['text/html, */*;q=0.1'],
      'content-type': ['application/json; charset=utf-8', 'multipart/form-data; boundary="a"'],
      origin: ['https://a:1'],
      'x-forwarded-for': ['10.0.0.1, 10.0.0.2'],
      'x-request-id': ['a'],
      host: ['a:1'],
    }).map(([name, examples]): [string, Row] => [
      `the header ${name}`,
      {
        maxBytes: header,
        examples,
        // What Node's parser lets through.
        parse: (text) => ask(name === 'content-type' ? 'POST' : 'GET', name === 'accept-encoding' || name === 'accept' ? '/' : vms, { headers: { [name]: text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '-') }, ...(name === 'content-type' && { body: '{}' }) }), // biome-ignore format: one call
      },
    ]),
  ),
}

/** Parser → why only the operator reaches it. */
const insiders: Readonly<Record<string, string>> = {
  parseSettings: 'config.json',
  parseKeyring: "the master key's file",
  parseEtcdAddress: 'an option of the server',
  parseLabelChange: "a word of a person's own command line",
  parseListeners: 'the kernel writes it',
  parseNetstat: 'netstat writes it',
  readFields: 'etcd writes it; forms of 2.4.x are among the requests',
  decodeRange: 'etcd writes it',
  decodeTxn: 'etcd writes it',
  decodeWatch: 'etcd writes it',
  decodeToken: 'etcd writes it',
  decodeStatus: 'etcd writes it',
  decodeAlarms: 'etcd writes it',
}

/** CPU time, so that other work on the machine does not count. */
async function millisecondsOf(row: Row, text: string): Promise<number> {
  const before = process.cpuUsage()
  try {
    await row.parse(text)
  } catch (error) {
    // A refusal has an error class; a stack overflow or a TypeError is not a refusal.
    const isFault = [RangeError, TypeError, ReferenceError].some((fault) => error instanceof fault)
    if (isFault || error instanceof assert.AssertionError) throw error
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

/** Measured again when it looks bad: only what is slow every time is slow. */
async function growsTooFast(row: Row, grow: Grow, from: number, times: number): Promise<string | undefined> {
  let seen = ''
  for (let attempt = 0; attempt < 5; attempt++) {
    const small = await millisecondsOf(row, grow(from))
    const large = await millisecondsOf(row, grow(from * times))
    const allowed = 3 * times * small + 50
    if (large <= allowed) return undefined
    seen = `${from} bytes ${small.toFixed(1)} ms, ${from * times} bytes ${large.toFixed(1)} ms`
    // A square is five times as much and more: nothing else is worth waiting for.
    if (large > 1_000 && large > 3 * allowed) break
  }
  return seen
}

async function check(row: Row): Promise<void> {
  for (const [grow, maxBytes] of growsOf(row)) {
    const from = maxBytes / 16
    const problem = (await growsTooFast(row, grow, from, 4)) ?? (await growsTooFast(row, grow, from, 16))
    assert.equal(problem, undefined, `${JSON.stringify(grow(60)).slice(0, 100)}: ${problem}`)
  }
}

describe('parsers', () => {
  before(async () => {
    folder = await fsp.mkdtemp(path.join(os.tmpdir(), 'svc3-parsers-'))
    service = await startService({
      settings: { legacy: { enabled: true }, limits: { requestsPerMinute: 1_000_000, anonymousPerMinute: 1_000_000 } },
    })
  })
  after(async () => {
    watching.terminate()
    await service[Symbol.asyncDispose]()
    await fsp.rm(folder, { recursive: true })
  })

  before(async () => {
    const url = (await service.listen()).replace('http', 'ws')
    watching = new WebSocket(`${url}/api/v1/watch`, { headers: { authorization: `Bearer ${service.adminToken}` } })
    watching.setMaxListeners(0)
    await once(watching, 'open')
  })

  for (const [name, row] of Object.entries(parsers))
    it(`${name} takes time in proportion to its input`, () => check(row))
  for (const [name, row] of Object.entries(requests))
    it(`a request with ${name} takes time in proportion to it`, () => check(row))

  it('a parser that takes the square of its input is found, and one that runs out of stack', async () => {
    const grows = [repeated('/', '', 'a')]
    const square: Row = { maxBytes: 65_536, examples: [], grows, parse: (text) => text.replace(/\/+$/, '') }
    await assert.rejects(check(square), /65536|16384/)
    const recursive: Row = { maxBytes: body, examples: [], grows: nested, parse: (text) => JSON.stringify(JSON.parse(text)) } // biome-ignore format: one row
    await assert.rejects(check(recursive), RangeError)
  })

  it('every parser of the source is tested here, or only the operator reaches it', () => {
    const root = path.resolve(import.meta.dirname, '..')
    const files = fs.globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.includes('.test.'))
    const found = files
      // People's own command lines and files.
      .filter((file) => !/^src\/(cli|operator|legacy|host|drivers|control-plane)\//.test(file))
      .flatMap((file) => [
        ...fs
          .readFileSync(path.join(root, file), 'utf8')
          .matchAll(/^export (?:async )?function\*? ((?:parse|decode)\w*)/gm),
      ])
      .map(([, name = '']) => name)
    const through = ['parseBodies', 'parseText', 'parseLegacyBodies']
    const missing = found.filter((name) => !Object.hasOwn(parsers, name) && !Object.hasOwn(insiders, name) && !through.includes(name)) // biome-ignore format: one line
    assert.deepEqual(missing, [])
  })
})
