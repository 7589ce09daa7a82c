// `svc3 server`: the control plane alone, by HTTPS. Nobody is logged in by it: users come from the identity provider.
import path from 'node:path'
import type { ServerOptions } from '../cli/programs.ts'
import type { ControlPlane } from '../control-plane/control-plane.ts'
import { programLine } from '../control-plane/next-steps.ts'
import { serve } from '../control-plane/serve.ts'

/** Several times as long as load balancers usually take to ask again. */
const noticeSeconds = 5

export const runServer = ({
  dataDir,
  listen,
  plainHttp,
  publicUrl,
  storeAddress,
  internalUrl,
  images,
}: ServerOptions): Promise<number> =>
  serve({
    dataDir,
    listen,
    plainHttp,
    publicUrl,
    storeAddress,
    internalUrl,
    images,
    noticeSeconds: storeAddress === undefined ? 0 : noticeSeconds,
    note: async () => ({}),
    greet: async (plane) =>
      [
        plainHttp ? '' : await certificateLine(plane),
        addressLine(plane),
        plane.consoleUrl === undefined ? '' : `The console is at ${plane.consoleUrl}\n`,
        firstUser(plane, dataDir),
      ].join(''),
  })

async function certificateLine({ certificates }: ControlPlane): Promise<string> {
  const { publicKeyFingerprint, selfSigned } = (await certificates.current()).facts
  const advice = selfSigned ? 'svc3 shows it on first use: compare the two before you say yes.\n' : ''
  return `Fingerprint of its public key (SHA-256):\n  ${publicKeyFingerprint}\n${advice}`
}

/** Where it listens everywhere, only the operator knows by which name others reach it. */
const addressLine = ({ apiUrl, localUrl }: ControlPlane): string =>
  apiUrl === localUrl && new URL(apiUrl).hostname === '127.0.0.1'
    ? 'Clients on other machines can log in only when --url names the address that they use.\n'
    : ''

const firstUser = ({ localUsers }: ControlPlane, dataDir: string): string => `
${
  localUsers
    ? `To make the first user, on this machine:\n  ${programLine()} server users add EMAIL --admin --data ${path.resolve(dataDir)}`
    : 'Users come from the identity provider in config.json.'
}
The API is described at /api/v1/swagger. Ctrl-C stops the service; the data stays.
`
