// The images of a node and what depends on them: pins, the packer of captures, and the server for peers.
import path from 'node:path'
import { findPeers, getBlob, noteBootOrder } from '../api/nodes/agent.ts'
import { getImageRegistry } from '../api/nodes/captures.ts'
import type { Driver } from '../drivers/driver.ts'
import type { Log } from '../platform/log.ts'
import { Packer, PretendPacker } from './captures/pack.ts'
import { socketFolderOf } from './images/arrivals.ts'
import { Pins } from './images/cache-pins.ts'
import type { NodeContent, OpenBlob } from './images/content-source.ts'
import { openHolders } from './images/holders.ts'
import { type Images, openImages, pretendImages } from './images/images.ts'
import { type PeerServer, startPeerServer } from './images/peer-server.ts'
import { createPeers } from './images/peers.ts'
import { type Recipe, recipes } from './images/recipes.ts'
import { type AgentConnection, isRetriable } from './link/connection.ts'
import type { NodeCredentials } from './link/peer-tls.ts'

export interface NodeImagesOptions {
  /** Holds the identity and the VMs of this node. */
  readonly folder: string
  /** Agents of one host may share it. */
  readonly imageFolder: string
  readonly driver: Driver
  /** The space for copies of images; by default four fifths of the free space. */
  readonly imageQuotaBytes?: number | undefined
  /** The port for exchanging content with other nodes; 0 chooses a free one. Undefined: none is exchanged. */
  readonly peerPort?: number | undefined
  /** Tests only: how long a peer may send nothing. */
  readonly peerSilenceMs?: number
  /** Tests only. */
  readonly recipes?: Readonly<Record<string, Recipe>>
  readonly log: Log
}

interface Connections {
  readonly content: AgentConnection
  readonly chunks: AgentConnection
  credentials(): NodeCredentials | undefined
}

export interface NodeImages {
  readonly images: Images
  readonly packer: Packer
  content(): Promise<NodeContent>
  readonly pins: Pins
  readonly peerServer: PeerServer | undefined
}

export async function openNodeImages(
  options: NodeImagesOptions,
  connections: Connections,
  changed: () => void,
): Promise<NodeImages> {
  const { folder, imageFolder, driver, peerPort, log } = options
  const { isSimulation = false } = driver
  const peers =
    peerPort === undefined
      ? undefined
      : createPeers({
          find: async (query, signal) => (await connections.content.call(findPeers, { body: query }, signal)).peers,
          credentials: connections.credentials,
          log,
          silenceMs: options.peerSilenceMs,
        })
  const opened = await openImages({
    folder: isSimulation ? folder : imageFolder,
    recipes: isSimulation ? {} : (options.recipes ?? recipes),
    openBlob: blobsOf(connections.chunks),
    bootOrder: async (digest, read, signal) => {
      const body = { content: digest, ...(read && { chunks: [...read] }) }
      return (await connections.content.call(noteBootOrder, { body }, signal)).chunks
    },
    askLogin: (vmOrImage, signal) => connections.content.call(getImageRegistry, { params: { vmOrImage } }, signal),
    peers,
    ...(!isSimulation && { holders: await openHolders(imageFolder, folder, driver.name) }),
    quotaBytes: options.imageQuotaBytes,
    socketFolder: socketFolderOf(folder),
    changed,
    log,
  })
  const content = () => opened.content()
  const images = isSimulation ? pretendImages() : opened
  return {
    images,
    content,
    packer: isSimulation ? new PretendPacker(content) : new Packer(path.join(folder, 'packed'), content),
    pins: new Pins({ images, changed, log }),
    peerServer:
      peerPort === undefined
        ? undefined
        : await startPeerServer({ port: peerPort, store: () => images.store(), fetches: images.fetches, log }),
  }
}

const blobsOf =
  (chunks: AgentConnection): OpenBlob =>
  async (digest, signal) => {
    try {
      return (await chunks.open({ ...getBlob, path: getBlob.path.replace('{digest}', digest) }, signal)).body
    } catch (error) {
      if (isRetriable(error)) chunks.turn()
      throw error
    }
  }
