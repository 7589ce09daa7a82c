// Makes a self-signed certificate, for clients that pin it. Imported lazily, because loading takes 100 ms.
import { createPublicKey } from 'node:crypto'
import net from 'node:net'
import { generate } from 'selfsigned'
import type { Pair } from './certificate-check.ts'

const dayMs = 86_400_000
/** Some clients refuse certificates that are valid for more than 825 days. */
const validDays = 820
/** Clients' clocks may be behind. */
const skewMs = 3_600_000

/** With the key of an earlier certificate, clients that pinned the key accept the new one. */
export async function makeSelfSigned(names: readonly string[], now: Date, key?: string): Promise<Pair> {
  const made = await generate([{ name: 'commonName', value: 'svc3' }], {
    keyType: 'ec',
    curve: 'P-256',
    ...(key !== undefined && { keyPair: { privateKey: key, publicKey: publicPem(key) } }),
    algorithm: 'sha256',
    notBeforeDate: new Date(now.getTime() - skewMs),
    notAfterDate: new Date(now.getTime() + validDays * dayMs - skewMs),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) => (net.isIP(name) ? { type: 7, ip: name } : { type: 2, value: name })),
      },
    ],
  })
  return { certificate: made.cert, key: key ?? made.private }
}

const publicPem = (key: string): string => createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()
