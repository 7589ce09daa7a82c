// `tart clone` of an image in a registry at plain HTTP without a password, for the stand-in. It reads the format with our own
// decoder of LZ4, so it does not show that tart reads what svc3 wrote.
import fs from 'node:fs'
import path from 'node:path'
import { decodeAppleLz4 } from '../../../../src/oci/tart/lz4.ts'
import { tartAnnotation, tartTypes } from '../../../../src/oci/tart/read.ts'
import { readConfig, StandInError, vmFolder, writeConfig } from './folder.ts'

interface Layer {
  readonly mediaType: string
  readonly digest: string
  readonly annotations?: Readonly<Record<string, string>>
}

export async function cloneImage(reference: string, name: string): Promise<void> {
  const [, host = '', repository = '', tag = ''] = /^([^/]+)\/(.+):([^:/]+)$/.exec(reference) ?? []
  const get = async (what: string): Promise<Response> => {
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' }
    const response = await fetch(`http://${host}/v2/${repository}/${what}`, { headers })
    if (!response.ok) throw new StandInError(`the registry answered ${response.status} for ${what}`)
    return response
  }
  const { layers } = (await (await get(`manifests/${tag}`)).json()) as { layers: Layer[] }
  fs.mkdirSync(vmFolder(name), { recursive: true })
  const write = (file: string, bytes: Uint8Array): void => fs.appendFileSync(path.join(vmFolder(name), file), bytes)
  for (const { mediaType, digest, annotations = {} } of layers) {
    const bytes = Buffer.from(await (await get(`blobs/${digest}`)).arrayBuffer())
    if (mediaType === tartTypes.config) write('config.json', bytes)
    else if (mediaType === tartTypes.nvram) write('nvram.bin', bytes)
    else
      for await (const piece of decodeAppleLz4(once(bytes), Number(annotations[tartAnnotation.size])))
        write('disk.img', piece)
  }
  // tart does so, too, where another VM has the same address.
  const macAddress = `02:00:00:${crypto
    .randomUUID()
    .slice(0, 6)
    .replace(/..(?=.)/g, '$&:')}`
  writeConfig(name, { ...readConfig(name), macAddress })
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
